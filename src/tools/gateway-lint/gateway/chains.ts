/** Queries of rules about chains of HTTP filters and their routes. */
import type { Chain, Gateway, HttpFilter, Listener, Override } from './gateway.ts';
import { mayBe } from './read-filters.ts';
import type { View } from './view.ts';

export function isCheckFilter({ kind }: { readonly kind: string }): boolean {
  return kind === 'ext_authz';
}

export function allChains({ listeners }: Pick<Gateway, 'listeners'>): readonly Chain[] {
  return listeners.flatMap(({ chains }) => chains);
}

/** Chains that callers can reach. */
export function reachableChains({ listeners }: Pick<Gateway, 'listeners'>): readonly Chain[] {
  return allChains({ listeners: listeners.filter(({ isOutbound }) => !isOutbound) });
}

export function checkedChains(gateway: Gateway): readonly Chain[] {
  return reachableChains(gateway).filter(({ filters }) => filters.some(isCheckFilter));
}

/** Chains in front of an API: those with the check, and those without it that have a forwarding route. */
export function exposedChains(listeners: readonly Listener[]): readonly Chain[] {
  return reachableChains({ listeners }).filter(
    (chain) => chain.filters.some(isCheckFilter) || forwardsAnything(chain),
  );
}

export function forwardsAnything({ routes, unseenRoutes }: Chain): boolean {
  if (unseenRoutes !== undefined || routes.length === 0) return true;
  return routes.some((configuration) => {
    const hosts = configuration.list('virtual_hosts');
    const isSeen =
      configuration.get('vhds') === undefined && hosts.every((host) => host.get('matcher') === undefined);
    return !isSeen || hosts.some((host) => host.list('routes').some(forwards));
  });
}

/** Whether a route forwards requests; redirects and fixed answers do not. */
export function forwards(route: View): boolean {
  return route.get('direct_response') === undefined && route.get('redirect') === undefined;
}

/** Filters before the check; none in a chain without it. */
export function filtersBeforeCheck({ filters }: Chain): readonly HttpFilter[] {
  return filters.slice(0, Math.max(filters.findIndex(isCheckFilter), 0));
}

/** Filters after the check; none in a chain without it. */
export function filtersBehindCheck({ filters }: Chain): readonly HttpFilter[] {
  const check = filters.findIndex(isCheckFilter);
  return check === -1 ? [] : filters.slice(check + 1);
}

/** Whether a filter runs for every request, unless a route overrides it. */
export function runsAlways({ condition, entry }: HttpFilter): boolean {
  return condition === undefined && !mayBe(entry.get('disabled'));
}

export function overridesOf(
  filters: readonly HttpFilter[],
  overrides: readonly Override[],
): readonly Override[] {
  const names = new Set(filters.map(({ name }) => name));
  return overrides.filter(({ name }) => names.has(name));
}
