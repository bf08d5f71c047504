/** A listener: its connection managers with their filters and routes, and what forwards bytes beside them. */
import { isBlackHole, isForWorkloads } from './exposure.ts';
import type { Chain, Listener } from './gateway.ts';
import { isConnectionRefused } from './istio-condition.ts';
import { isManager, PROXY, readHttpFilter, type Typed, typed } from './read-filters.ts';
import { everyMapping, type View } from './view.ts';

/** What listeners refer to, of the same document. */
interface Surroundings {
  readonly listeners: readonly View[];
  readonly clusters: readonly View[];
  readonly routes: readonly View[];
  /** HTTP filters that are configured by name. */
  readonly filters: readonly View[];
}

export function readListener(view: View, around: Surroundings): Listener {
  const filters = [...networkFilters(view), ...view.list('listener_filters')];
  const api = typed(view.at('api_listener', 'api_listener'));
  const messages = filters.flatMap((filter) => messagesIn(filter.get('typed_config')));
  return {
    view,
    chains: [...messages, ...(api === undefined ? [] : [api])]
      .filter(isManager)
      .map(({ settings }) => readChain(settings, around)),
    proxies: proxiesOf(view, around),
    isOutbound: isForWorkloads(view, around),
  };
}

export function networkFilters(listener: View): readonly View[] {
  return filterChains(listener).flatMap((chain) => chain.list('filters'));
}

function filterChains(listener: View): readonly View[] {
  return [...listener.list('filter_chains'), listener.get('default_filter_chain')].flatMap(
    (one) => one ?? [],
  );
}

/** Those that forward connections which no check refuses, to a cluster with endpoints. */
function proxiesOf(view: View, { clusters }: Surroundings): readonly View[] {
  const isProxy = (filter: View) =>
    messagesIn(filter.get('typed_config')).some(({ type }) => PROXY.test(type));
  const early = view.list('listener_filters');
  const ofChains = filterChains(view).flatMap((chain) => {
    const filters = chain.list('filters');
    return filters.filter((filter, at) => {
      const before = filters.slice(0, at);
      const isHarmless = isConnectionRefused(before) || isBlackHole(filter, [...early, ...before], clusters);
      return isProxy(filter) && !isHarmless;
    });
  });
  return [...ofChains, ...early.filter(isProxy)];
}

/** What a network filter is, or what a matcher around others may make of it. */
function messagesIn(config: View | undefined): readonly Typed[] {
  const outer = typed(config);
  if (config === undefined || outer === undefined || isManager(outer) || PROXY.test(outer.type)) {
    return outer === undefined ? [] : [outer];
  }
  return everyMapping([config]).flatMap((view) => typed(view) ?? []);
}

function readChain(manager: View, { filters, routes }: Surroundings): Chain {
  const inline = manager.get('route_config');
  const name = manager.at('rds', 'route_config_name')?.text;
  const fetched = routes.filter((one) => name !== undefined && one.get('name')?.text === name);
  const isUnseen = inline === undefined && fetched.length === 0;
  return {
    manager,
    filters: manager.list('http_filters').map((entry) => readHttpFilter(entry, filters)),
    routes: inline === undefined ? fetched : [inline],
    unseenRoutes: isUnseen ? (manager.get('rds') ?? manager.get('scoped_routes')) : undefined,
  };
}
