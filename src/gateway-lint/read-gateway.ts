/** From the text of a file to what it configures. */
import { WORKLOADS } from './ambient.ts';
import { exposedChains } from './exposure.ts';
import type { Gateway, Settings } from './gateway.ts';
import { dumpsOfPods, type EnvoyConfiguration, readEnvoy } from './read-envoy.ts';
import { readOverrides } from './read-filters.ts';
import { bootstrapsOf, meshOf, mountedFiles, readResources } from './read-kubernetes.ts';
import { readPatches } from './read-patches.ts';
import { readSources } from './source.ts';
import { everyMapping, View } from './view.ts';

/** Undefined when nothing in it configures a gateway. @throws UnreadableText */
export function readGateway(text: string): Gateway | undefined {
  const written = readSources(text).flatMap((source) => View.ofDocument(source) ?? []);
  const unwrapped = written.flatMap((document) => {
    const pods = dumpsOfPods(document);
    return pods.length === 0 ? [document] : pods;
  });
  const documents = [...unwrapped, ...unwrapped.flatMap(mountedFiles)];
  const envoys = documents.map((document) => ({ document, envoy: readEnvoy(document) }));
  const others = envoys.filter(({ envoy }) => envoy === undefined).map(({ document }) => document);
  const objects = others.map((document) => ({ document, resources: readResources(document) }));
  const all = objects.flatMap(({ resources }) => resources);
  const resources = all.filter(({ kind }) => KINDS.has(kind));
  const surroundings = all.filter(({ kind }) => SURROUNDINGS.has(kind));
  const meshes = all.flatMap(meshOf);
  if (resources.length + meshes.length === 0 && others.length === documents.length) return undefined;
  const bootstraps = resources.flatMap(bootstrapsOf).flatMap((document) => {
    const envoy = readEnvoy(document);
    // What these fetch is what Envoy Gateway or Istio makes of the manifests.
    return envoy === undefined ? [] : [{ document, envoy: { ...envoy, unseen: [] } }];
  });
  const understood = [
    ...bootstraps.map(({ document }) => document),
    ...envoys.filter(({ envoy }) => envoy !== undefined).map(({ document }) => document),
    ...resources.map(({ view }) => view),
    ...meshes,
  ];
  const read = [...envoys, ...bootstraps].flatMap(({ envoy }) => envoy ?? []);
  return { ...joined(read, readPatches(resources)), documents: understood, resources, surroundings, meshes };
}

/** Objects that say something about a gateway. */
const KINDS = new Set([
  'AuthorizationPolicy',
  'Backend',
  'BackendTLSPolicy',
  'BackendTrafficPolicy',
  'ClientTrafficPolicy',
  'EnvoyExtensionPolicy',
  'EnvoyFilter',
  'EnvoyPatchPolicy',
  'EnvoyProxy',
  'GRPCRoute',
  'Gateway',
  'HTTPRoute',
  'HTTPRouteFilter',
  'HelmValues',
  'IstioOperator',
  'ListenerSet',
  'RequestAuthentication',
  'SecurityPolicy',
  'TCPRoute',
  'TLSRoute',
  'TrafficExtension',
  'UDPRoute',
  'VirtualService',
  'WasmPlugin',
  'XListenerSet',
]);

/** Objects that matter beside those; a file of them alone configures no gateway. */
const SURROUNDINGS = new Set(['DestinationRule', 'Namespace', 'ServiceEntry', ...WORKLOADS]);

function joined(
  read: readonly EnvoyConfiguration[],
  patched: ReturnType<typeof readPatches>,
): Omit<Gateway, 'documents' | 'resources' | 'surroundings' | 'meshes'> {
  const listeners = read.flatMap((envoy) => envoy.listeners);
  const chains = listeners.flatMap((listener) => listener.chains);
  const whole = (view: View): Settings => ({ view, isWhole: true });
  const filters = [...chains, ...read.map((envoy) => ({ filters: envoy.namedFilters }))]
    .flatMap((one) => one.filters)
    .filter(({ kind }) => kind === 'ext_authz');
  const routeParts = everyMapping(read.flatMap((envoy) => envoy.routeConfigurations));
  const parts = [...routeParts, ...patched.routeParts];
  return {
    ...patched,
    listeners: [...listeners, ...patched.listeners],
    managers: [...exposedChains(listeners).map(({ manager }) => whole(manager)), ...patched.managers],
    checks: [...filters.flatMap(({ settings }) => settings ?? []).map(whole), ...patched.checks],
    routeParts: parts,
    overrides: readOverrides(parts),
    clusters: [...read.flatMap((envoy) => envoy.clusters), ...patched.clusters],
    endpoints: read.flatMap((envoy) => envoy.endpoints),
    admins: read.flatMap((envoy) => envoy.admins),
    unseen: read.flatMap((envoy) => envoy.unseen),
  };
}
