/** What callers reach of a configuration, and whether anything is behind it. */
import type { Chain, Listener } from './gateway.ts';
import { typed } from './read-filters.ts';
import type { View } from './view.ts';

/** Redirects and fixed answers reach no API. */
export function forwards(route: View): boolean {
  return route.get('direct_response') === undefined && route.get('redirect') === undefined;
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

export function isCheckFilter({ kind }: { readonly kind: string }): boolean {
  return kind === 'ext_authz';
}

/** Their settings say something of requests that an API gets. */
export function exposedChains(listeners: readonly Listener[]): readonly Chain[] {
  return listeners
    .filter(({ isOutbound }) => !isOutbound)
    .flatMap(({ chains }) => chains)
    .filter((chain) => chain.filters.some(isCheckFilter) || forwardsAnything(chain));
}

/**
 * Istio's proxies say `OUTBOUND` of what workloads send; its gateways say it of everything, and have nothing inbound.
 */
export function hasInbound(listeners: readonly View[]): boolean {
  return listeners.some((listener) => listener.get('traffic_direction')?.isOneOf('INBOUND', 1) === true);
}

/** One that is there, and has no endpoint: Istio's BlackHoleCluster. */
export function isBlackHole(name: string | undefined, clusters: readonly View[]): boolean {
  const cluster = clusters.find((one) => name !== undefined && one.get('name')?.text === name);
  return (
    cluster !== undefined &&
    (cluster.get('type')?.isOneOf('STATIC', 0) ?? true) &&
    cluster.get('cluster_type') === undefined &&
    (cluster.at('load_assignment', 'endpoints')?.items() ?? []).length === 0
  );
}

/** The cluster of a tcp_proxy. */
export function proxiedCluster(filter: View): string | undefined {
  return typed(filter.get('typed_config'))?.settings.get('cluster')?.text;
}
