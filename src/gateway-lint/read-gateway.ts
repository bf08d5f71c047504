/** Reads the text of a file into a {@link Gateway}. */
import type { Gateway } from './gateway.ts';
import { readPatches } from './patches.ts';
import { dumpsOfPods, readEnvoy } from './read-envoy.ts';
import { meshesOf, mountedFiles, readResources } from './read-kubernetes.ts';
import { readSources } from './source.ts';
import { View } from './view.ts';

/** Undefined when nothing in it configures a gateway. @throws UnreadableText */
export function readGateway(text: string): Gateway | undefined {
  const written = readSources(text).flatMap((source) => View.ofDocument(source) ?? []);
  const unwrapped = written.flatMap((document) => {
    const pods = dumpsOfPods(document);
    return pods.length === 0 ? [document] : pods;
  });
  const documents = [...unwrapped, ...unwrapped.flatMap(mountedFiles)];
  const { configuration, others, understood } = readEnvoy(documents);
  const objects = others.flatMap(readResources);
  const resources = objects.filter(({ kind }) => KINDS.has(kind));
  const meshes = objects.flatMap(meshesOf);
  const all = [...understood, ...resources.map(({ view }) => view), ...meshes];
  if (all.length === 0) return undefined;
  return { ...configuration, documents: all, resources, meshes, patches: readPatches(resources) };
}

/** Objects that configure a gateway, or that rules need beside those. */
const KINDS = new Set([
  'AuthorizationPolicy',
  'Backend',
  'BackendTLSPolicy',
  'BackendTrafficPolicy',
  'ClientTrafficPolicy',
  'DestinationRule',
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
  'RequestAuthentication',
  'SecurityPolicy',
  'ServiceEntry',
  'TCPRoute',
  'TLSRoute',
  'TrafficExtension',
  'UDPRoute',
  'VirtualService',
  'WasmPlugin',
]);
