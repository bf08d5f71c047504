/** Reads Envoy's own configuration: a bootstrap, files of resources, or the `config_dump` of its admin interface. */
import { exposedChains, isCheckFilter } from './chains.ts';
import { isBlackHole, isForWorkloads } from './exposure.ts';
import type { Chain, EnvoyConfiguration, HttpFilter, Listener } from './gateway.ts';
import { isConnectionRefused } from './istio-condition.ts';
import { isManager, PROXY, readHttpFilter, readOverrides, type Typed, typed } from './read-filters.ts';
import { everyMapping, type View } from './view.ts';

/** Parts of one document. */
interface Parts {
  readonly listeners: View[];
  readonly routes: View[];
  /** Virtual hosts that are fetched on demand. */
  readonly hosts: View[];
  readonly clusters: View[];
  readonly endpoints: View[];
  /** HTTP filters that are configured by name, for listeners that may be elsewhere. */
  readonly filters: View[];
  readonly admins: View[];
  readonly unseen: View[];
}

type PartName = keyof Parts;

interface EnvoyDocuments {
  readonly configuration: EnvoyConfiguration;
  readonly understood: readonly View[];
  readonly others: readonly View[];
}

export function readEnvoy(documents: readonly View[]): EnvoyDocuments {
  const read = documents.map((document) => ({ document, parts: partsOf(document) }));
  const isEnvoys = ({ parts }: (typeof read)[number]) => parts !== undefined;
  return {
    configuration: joined(read.flatMap(({ parts }) => (parts === undefined ? [] : assemble(parts)))),
    understood: read.filter(isEnvoys).map(({ document }) => document),
    others: read.filter((one) => !isEnvoys(one)).map(({ document }) => document),
  };
}

/** Dumps of single pods, by namespace and name, as `egctl config envoy-proxy` prints them. */
export function dumpsOfPods(document: View): readonly View[] {
  const pods = document.members().flatMap(({ view }) => view.members());
  const dumps = pods
    .map(({ view }) => view)
    .filter((pod) => pod.get('configs') !== undefined || DUMP.test(typed(pod)?.type ?? ''));
  return dumps.length === pods.length ? dumps : [];
}

const DUMP = /^envoy\.admin\.v\w+\.(\w+ConfigDump)$/;

const BOOTSTRAP_MEMBERS = ['static_resources', 'dynamic_resources', 'admin', 'layered_runtime'];

/** Undefined for a document that is not an Envoy configuration. */
function partsOf(document: View): Parts | undefined {
  const parts: Parts = {
    ...{ listeners: [], routes: [], hosts: [], clusters: [] },
    ...{ endpoints: [], filters: [], admins: [], unseen: [] },
  };
  const dumps = DUMP.test(typed(document)?.type ?? '') ? [document] : document.list('configs');
  const resources = document.list('resources').map(unwrapped);
  if (dumps.length > 0) readDumps(dumps, parts);
  else if (resources.some((resource) => typed(resource) !== undefined)) {
    for (const resource of resources) readResource(resource, parts);
  } else if (BOOTSTRAP_MEMBERS.some((name) => document.get(name) !== undefined)) {
    readBootstrap(document, parts);
  } else return undefined;
  return parts;
}

function readBootstrap(bootstrap: View, parts: Parts): void {
  const dynamic = bootstrap.get('dynamic_resources');
  parts.listeners.push(...(bootstrap.get('static_resources')?.list('listeners') ?? []));
  parts.clusters.push(...(bootstrap.get('static_resources')?.list('clusters') ?? []));
  parts.admins.push(...present(bootstrap.get('admin')));
  parts.unseen.push(...present(dynamic?.get('lds_config') ?? dynamic?.get('lds_resources_locator')));
}

function present(view: View | undefined): readonly View[] {
  return view === undefined ? [] : [view];
}

/** The part to which the entries of a dump belong, and the member of an entry that contains the resource. */
const DUMPED: { readonly [dump: string]: { readonly part: PartName; readonly member: string } } = {
  ClustersConfigDump: { part: 'clusters', member: 'cluster' },
  EcdsConfigDump: { part: 'filters', member: 'ecds_filter' },
  EndpointsConfigDump: { part: 'endpoints', member: 'endpoint_config' },
  ListenersConfigDump: { part: 'listeners', member: 'listener' },
  RoutesConfigDump: { part: 'routes', member: 'route_config' },
};

function readDumps(dumps: readonly View[], parts: Parts): void {
  const nameOf = (dump: View) => DUMP.exec(typed(dump)?.type ?? '')?.[1] ?? '';
  const hasListeners = dumps.some((dump) => nameOf(dump) === 'ListenersConfigDump');
  for (const dump of dumps) {
    const name = nameOf(dump);
    const known = DUMPED[name];
    const bootstrap = name === 'BootstrapConfigDump' ? dump.get('bootstrap') : undefined;
    if (bootstrap !== undefined) {
      parts.admins.push(...present(bootstrap.get('admin')));
      if (!hasListeners) readBootstrap(bootstrap, { ...parts, admins: [] });
    } else if (name === 'ScopedRoutesConfigDump') {
      parts.routes.push(...everyMapping([dump]).filter((view) => view.get('virtual_hosts') !== undefined));
    } else if (known !== undefined) {
      // Static route configurations are inline routes of listeners, which are already in the file.
      const skipped = name === 'RoutesConfigDump' && hasListeners ? 'static_route_configs' : undefined;
      parts[known.part].push(...dumped(dump, known.member, skipped));
    } else readResource(dump, parts);
  }
}

/** Reads the entries of a dump, or the single entry of a dump of one resource type. */
function dumped(dump: View, member: string, skipped: string | undefined): readonly View[] {
  const lists = dump.members().filter(({ view }) => view.identity !== dump.get(skipped ?? '')?.identity);
  return [dump, ...lists.flatMap(({ view }) => view.items())]
    .flatMap((entry) => [entry, entry.get('active_state'), entry.get('warming_state')])
    .flatMap((holder) => holder?.get(member) ?? []);
}

/** Removes the envelope of delta xDS around a resource. */
function unwrapped(resource: View): View {
  const type = typed(resource)?.type;
  const inner = resource.get('resource');
  return inner !== undefined && (type === undefined || /\.Resource$/.test(type)) ? inner : resource;
}

/** Parts by the message's name. */
const RESOURCES: { readonly [message: string]: PartName } = {
  Cluster: 'clusters',
  ClusterLoadAssignment: 'endpoints',
  Listener: 'listeners',
  RouteConfiguration: 'routes',
  TypedExtensionConfig: 'filters',
  VirtualHost: 'hosts',
};

/** Resources that no rule reads, or that rules read wherever they are (Runtime). */
const IRRELEVANT = new Set(['Runtime', 'Secret', 'SecretsConfigDump']);

function readResource(resource: View, parts: Parts): void {
  const message = typed(resource)?.type.replace(/^.*\./, '') ?? '';
  const scoped = message === 'ScopedRouteConfiguration' ? resource.get('route_configuration') : undefined;
  const part = RESOURCES[message];
  if (scoped !== undefined) parts.routes.push(scoped);
  else if (part !== undefined) parts[part].push(resource);
  else if (!IRRELEVANT.has(message)) parts.unseen.push(resource);
}

function assemble(parts: Parts): EnvoyConfiguration {
  const listeners = parts.listeners.map((listener) => readListener(listener, parts));
  const chains = listeners.flatMap((listener) => listener.chains);
  const namedFilters = parts.filters.map((filter) => readHttpFilter(filter, []));
  const routes = [...new Set([...parts.routes, ...chains.flatMap((chain) => chain.routes)])];
  const routeParts = everyMapping([...routes, ...parts.hosts]);
  const checks = [...chains.flatMap(({ filters }) => filters), ...namedFilters].filter(isCheckFilter);
  return {
    listeners,
    managers: exposedChains(listeners).map(({ manager }) => manager),
    checks: checks.flatMap(({ settings }) => settings ?? []),
    routeParts,
    overrides: readOverrides(routeParts),
    clusters: parts.clusters,
    endpoints: parts.endpoints,
    admins: parts.admins,
    unseen: [
      ...parts.unseen,
      ...parts.listeners.flatMap(unseenChains),
      ...chains.flatMap((chain) => chain.unseenRoutes ?? []),
      ...routes.flatMap((one) => one.get('vhds') ?? []),
      ...chains.flatMap((chain) => unseenFilters(chain, parts)),
      ...unplaced(namedFilters, chains),
    ],
  };
}

/** Network filters or whole chains that are fetched from another source. */
function unseenChains(listener: View): readonly View[] {
  const discovered = networkFilters(listener).flatMap((filter) => filter.get('config_discovery') ?? []);
  return [...discovered, ...present(listener.get('fcds_config'))];
}

function unseenFilters({ filters }: Chain, parts: Parts): readonly View[] {
  const known = new Set(parts.filters.map((filter) => filter.get('name')?.text));
  return filters.flatMap(({ entry, name }) => (known.has(name) ? [] : (entry.get('config_discovery') ?? [])));
}

/**
 * Filters that are in no chain of the file. Their effect depends on their position, but the check's settings can be
 * linted on their own.
 */
function unplaced(filters: readonly HttpFilter[], chains: readonly Chain[]): readonly View[] {
  const names = new Set(chains.flatMap((chain) => chain.filters.map(({ name }) => name)));
  return filters
    .filter((filter) => !names.has(filter.name) && !(isCheckFilter(filter) && filter.condition === undefined))
    .map(({ entry }) => entry);
}

function joined(all: readonly EnvoyConfiguration[]): EnvoyConfiguration {
  return {
    listeners: all.flatMap(({ listeners }) => listeners),
    managers: all.flatMap(({ managers }) => managers),
    checks: all.flatMap(({ checks }) => checks),
    routeParts: all.flatMap(({ routeParts }) => routeParts),
    overrides: all.flatMap(({ overrides }) => overrides),
    clusters: all.flatMap(({ clusters }) => clusters),
    endpoints: all.flatMap(({ endpoints }) => endpoints),
    admins: all.flatMap(({ admins }) => admins),
    unseen: all.flatMap(({ unseen }) => unseen),
  };
}

/** Parts of the same document to which listeners refer. */
interface Surroundings {
  readonly listeners: readonly View[];
  readonly clusters: readonly View[];
  readonly routes: readonly View[];
  /** HTTP filters that are configured by name. */
  readonly filters: readonly View[];
}

/** A listener: its connection managers with their filters and routes, and other filters that forward bytes. */
function readListener(view: View, around: Surroundings): Listener {
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

function networkFilters(listener: View): readonly View[] {
  return filterChains(listener).flatMap((chain) => chain.list('filters'));
}

function filterChains(listener: View): readonly View[] {
  return [...listener.list('filter_chains'), listener.get('default_filter_chain')].flatMap(
    (one) => one ?? [],
  );
}

/** Filters that forward unchecked connections to a cluster with endpoints. */
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

/** The type of a network filter, or the possible types if a matcher selects it. */
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
