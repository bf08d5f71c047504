/** Envoy's own configuration: a bootstrap, files of resources, and what its admin interface shows of all of it. */
import { isBlackHole, isCheckFilter, isForWorkloads } from './exposure.ts';
import type { Chain, HttpFilter, Listener } from './gateway.ts';
import { isConnectionRefused } from './istio-condition.ts';
import { isManager, PROXY, readHttpFilter, type Typed, typed } from './read-filters.ts';
import { everyMapping, type View } from './view.ts';

export interface EnvoyConfiguration {
  readonly listeners: readonly Listener[];
  readonly routeConfigurations: readonly View[];
  readonly clusters: readonly View[];
  readonly endpoints: readonly View[];
  readonly admins: readonly View[];
  /** Configured by their names, for listeners that may be elsewhere. */
  readonly namedFilters: readonly HttpFilter[];
  readonly unseen: readonly View[];
}

/** As they stand in the file. */
interface Parts {
  readonly listeners: View[];
  readonly routes: View[];
  /** Virtual hosts that are fetched one by one. */
  readonly hosts: View[];
  readonly clusters: View[];
  readonly endpoints: View[];
  /** By name. */
  readonly filters: Map<string, View>;
  readonly admins: View[];
  readonly unseen: View[];
}

function noParts(): Parts {
  return {
    listeners: [],
    routes: [],
    hosts: [],
    clusters: [],
    endpoints: [],
    filters: new Map(),
    admins: [],
    unseen: [],
  };
}

/** Undefined for what is no configuration of Envoy's. */
export function readEnvoy(document: View): EnvoyConfiguration | undefined {
  const parts = noParts();
  const dumps = DUMP.test(typed(document)?.type ?? '') ? [document] : document.list('configs');
  if (dumps.length > 0) readDumps(dumps, parts);
  else if (document.list('resources').some((resource) => typed(unwrapped(resource)) !== undefined)) {
    for (const resource of document.list('resources')) readResource(resource, parts);
  } else if (BOOTSTRAP_MEMBERS.some((name) => document.get(name) !== undefined)) {
    readBootstrap(document, parts);
  } else return undefined;
  return assemble(parts);
}

/** Dumps of single pods, by namespace and name, as `egctl config envoy-proxy` prints them; a dump of one kind too. */
export function dumpsOfPods(document: View): readonly View[] {
  const pods = document.members().flatMap(({ view }) => view.members());
  const dumps = pods
    .map(({ view }) => view)
    .filter((pod) => pod.get('configs') !== undefined || DUMP.test(typed(pod)?.type ?? ''));
  return dumps.length === pods.length ? dumps : [];
}

const DUMP = /^envoy\.admin\.v\w+\.\w+ConfigDump$/;

const BOOTSTRAP_MEMBERS = ['static_resources', 'dynamic_resources', 'admin', 'layered_runtime'];

function readBootstrap(bootstrap: View, parts: Parts): void {
  const resources = bootstrap.get('static_resources');
  parts.listeners.push(...(resources?.list('listeners') ?? []));
  parts.clusters.push(...(resources?.list('clusters') ?? []));
  const admin = bootstrap.get('admin');
  if (admin !== undefined) parts.admins.push(admin);
  const dynamic = bootstrap.get('dynamic_resources');
  const elsewhere = dynamic?.get('lds_config') ?? dynamic?.get('lds_resources_locator');
  if (elsewhere !== undefined) parts.unseen.push(elsewhere);
}

/** Listeners of the bootstrap are among the dumped ones again, and inline routes among the dumped routes. */
function readDumps(dumps: readonly View[], parts: Parts): void {
  const types = new Set(dumps.map((dump) => dumpType(dump)));
  for (const dump of dumps) {
    const type = dumpType(dump);
    const hasListeners = [...types].some((one) => one.startsWith('ListenersConfigDump'));
    if (type === 'BootstrapConfigDump') {
      const admin = dump.at('bootstrap', 'admin');
      if (admin !== undefined) parts.admins.push(admin);
      const bootstrap = dump.get('bootstrap');
      if (!hasListeners && bootstrap !== undefined) readBootstrap(bootstrap, { ...parts, admins: [] });
    } else if (type.startsWith('RoutesConfigDump')) {
      const names = hasListeners
        ? ['dynamic_route_configs']
        : ['static_route_configs', 'dynamic_route_configs'];
      parts.routes.push(...dumped(dump, names, 'route_config'));
    } else {
      readDump(dump, type, parts);
    }
  }
}

function readDump(dump: View, type: string, parts: Parts): void {
  if (type.startsWith('ListenersConfigDump')) {
    parts.listeners.push(...dumped(dump, ['static_listeners', 'dynamic_listeners'], 'listener'));
  } else if (type.startsWith('ScopedRoutesConfigDump')) {
    parts.routes.push(...everyMapping([dump]).filter((view) => view.get('virtual_hosts') !== undefined));
  } else if (type.startsWith('ClustersConfigDump')) {
    const names = ['static_clusters', 'dynamic_active_clusters', 'dynamic_warming_clusters'];
    parts.clusters.push(...dumped(dump, names, 'cluster'));
  } else if (type.startsWith('EndpointsConfigDump')) {
    const names = ['static_endpoint_configs', 'dynamic_endpoint_configs'];
    parts.endpoints.push(...dumped(dump, names, 'endpoint_config'));
  } else if (type.startsWith('EcdsConfigDump')) {
    for (const filter of dumped(dump, ['ecds_filters'], 'ecds_filter')) readNamedFilter(filter, parts);
  } else readResource(dump, parts);
}

function dumpType(dump: View): string {
  return typed(dump)?.type.replace(/^envoy\.admin\.v\w+?\./, '') ?? '';
}

/** Entries of a dump, or the entry that a dump of one resource type is. */
function dumped(dump: View, names: readonly string[], member: string): readonly View[] {
  const entries = names.flatMap((name) => dump.list(name));
  return [dump, ...entries].flatMap((entry) => {
    const states = ['active_state', 'warming_state'].flatMap((state) => entry.get(state) ?? []);
    return [entry, ...states].flatMap((holder) => {
      const resource = holder.get(member);
      return resource === undefined ? [] : [resource];
    });
  });
}

/** Of an envelope that says more of a resource, as delta xDS has them and lists may. */
function unwrapped(resource: View): View {
  const type = typed(resource)?.type;
  const inner = resource.get('resource');
  return inner !== undefined && (type === undefined || /\.Resource$/.test(type)) ? inner : resource;
}

function readResource(wrapped: View, parts: Parts): void {
  const resource = unwrapped(wrapped);
  const type = typed(resource)?.type ?? '';
  if (/\.Listener$/.test(type)) parts.listeners.push(resource);
  else if (/\.RouteConfiguration$/.test(type)) parts.routes.push(resource);
  else if (/\.VirtualHost$/.test(type)) parts.hosts.push(resource);
  else if (/\.Cluster$/.test(type)) parts.clusters.push(resource);
  else if (/\.ClusterLoadAssignment$/.test(type)) parts.endpoints.push(resource);
  else if (/\.TypedExtensionConfig$/.test(type)) readNamedFilter(resource, parts);
  else if (!SAYS_NOTHING.test(type)) readScope(resource, type, parts);
}

/** A scope that has its routes within. Of anything else nothing can be said. */
function readScope(resource: View, type: string, parts: Parts): void {
  const isScope = /\.ScopedRouteConfiguration$/.test(type);
  const routes = isScope ? resource.get('route_configuration') : undefined;
  if (routes === undefined) parts.unseen.push(resource);
  else parts.routes.push(routes);
}

/** Types of what no rule looks at, or wherever it is (Runtime). */
const SAYS_NOTHING = /\.(?:Runtime|Secret|SecretsConfigDump)$/;

function readNamedFilter(filter: View, parts: Parts): void {
  const name = filter.get('name')?.text;
  if (name === undefined) parts.unseen.push(filter);
  else parts.filters.set(name, filter);
}

function assemble(parts: Parts): EnvoyConfiguration {
  const listeners = parts.listeners.map((listener) => readListener(listener, parts));
  const chains = listeners.flatMap((listener) => listener.chains);
  const used = new Set([...parts.routes, ...chains.flatMap(({ routes }) => routes)]);
  const virtualHostDiscovery = [...used].flatMap((routes) => routes.get('vhds') ?? []);
  const unseenRoutes = chains.flatMap((chain) => chain.unseenRoutes ?? []);
  const unseenChains = parts.listeners.flatMap((listener) => [
    ...networkFilters(listener).flatMap((filter) => filter.get('config_discovery') ?? []),
    ...[listener.get('fcds_config')].flatMap((config) => config ?? []),
  ]);
  const unseenFilters = chains.flatMap(({ filters }) =>
    filters.flatMap(({ entry, name }) =>
      parts.filters.has(name) ? [] : (entry.get('config_discovery') ?? []),
    ),
  );
  const namedFilters = [...parts.filters.values()].map((filter) => readHttpFilter(filter, new Map()));
  return {
    listeners,
    routeConfigurations: [...used, ...parts.hosts],
    clusters: parts.clusters,
    endpoints: parts.endpoints,
    admins: parts.admins,
    namedFilters,
    unseen: [
      ...parts.unseen,
      ...unseenChains,
      ...unseenRoutes,
      ...virtualHostDiscovery,
      ...unseenFilters,
      ...unplaced(namedFilters, chains),
    ],
  };
}

/** Of no chain that is there: what they do depends on where they stand. Settings of the check say enough by themselves. */
function unplaced(filters: readonly HttpFilter[], chains: readonly Chain[]): readonly View[] {
  const names = new Set(chains.flatMap((chain) => chain.filters.map(({ name }) => name)));
  return filters
    .filter((filter) => !names.has(filter.name) && !(isCheckFilter(filter) && filter.condition === undefined))
    .map(({ entry }) => entry);
}

function networkFilters(listener: View): readonly View[] {
  const filterChains = [...listener.list('filter_chains'), listener.get('default_filter_chain')];
  return filterChains.flatMap((chain) => chain?.list('filters') ?? []);
}

/** One without the rest of its configuration: what it names is elsewhere. */
export function readListenerAlone(view: View): Listener {
  return readListener(view, noParts());
}

function readListener(view: View, parts: Parts): Listener {
  const filters = [...networkFilters(view), ...view.list('listener_filters')];
  const api = typed(view.at('api_listener', 'api_listener'));
  const messages = [
    ...filters.flatMap((filter) => messagesIn(filter.get('typed_config'))),
    ...(api ? [api] : []),
  ];
  return {
    view,
    chains: messages.filter(isManager).map(({ settings }) => readChain(settings, parts)),
    proxies: proxiesOf(view, parts),
    isOutbound: isForWorkloads(view, parts),
  };
}

/** Those that forward what nobody was asked about, to somewhere. */
function proxiesOf(view: View, { clusters }: Parts): readonly View[] {
  const isProxy = (filter: View) =>
    messagesIn(filter.get('typed_config')).some(({ type }) => PROXY.test(type));
  const early = view.list('listener_filters');
  const chains = [...view.list('filter_chains'), view.get('default_filter_chain')];
  const ofChains = chains.flatMap((chain) => {
    const filters = chain?.list('filters') ?? [];
    return filters.filter((filter, at) => {
      const before = filters.slice(0, at);
      return (
        isProxy(filter) &&
        !isConnectionRefused(before) &&
        !isBlackHole(filter, [...early, ...before], clusters)
      );
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

function readChain(manager: View, parts: Parts): Chain {
  const inline = manager.get('route_config');
  const name = manager.at('rds', 'route_config_name')?.text;
  const fetched = parts.routes.filter((routes) => name !== undefined && routes.get('name')?.text === name);
  const isUnseen = inline === undefined && fetched.length === 0;
  return {
    manager,
    filters: manager.list('http_filters').map((entry) => readHttpFilter(entry, parts.filters)),
    routes: inline === undefined ? fetched : [inline],
    unseenRoutes: isUnseen ? (manager.get('rds') ?? manager.get('scoped_routes')) : undefined,
  };
}
