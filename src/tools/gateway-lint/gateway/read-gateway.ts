/** Reads the text of a file into a {@link Gateway}. */
import type { Gateway, Resource } from './gateway.ts';
import { readPatches } from './patches.ts';
import { dumpsOfPods, readEnvoy } from './read-envoy.ts';
import { readSources, UnreadableText } from './source-file.ts';
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

/** Objects that configure a gateway, and others that rules need. */
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

/**
 * A List contains several objects. Files that were joined without `---` form one document: values of a chart, followed
 * by an object.
 */
function readResources(document: View): readonly Resource[] {
  const values =
    document.get('mesh_config') === undefined
      ? []
      : [{ kind: 'HelmValues', name: '', namespace: undefined, view: document, spec: document }];
  return [...readObjects(document), ...values];
}

function readObjects(document: View): readonly Resource[] {
  const kind = document.get('kind')?.text;
  if (kind === undefined || document.get('api_version') === undefined) return [];
  if (kind.endsWith('List')) return document.list('items').flatMap(readObjects);
  return [
    {
      kind,
      name: document.at('metadata', 'name')?.text ?? '',
      namespace: document.at('metadata', 'namespace')?.text,
      view: document,
      spec: document.get('spec') ?? document,
    },
  ];
}

/** Places of `meshConfig` in an IstioOperator. Each is merged over the previous ones, so all are linted. */
const MESH_HOLDERS = [[], ['values'], ['unvalidated_values']];

/** Istio's mesh configuration in an object. @throws UnreadableText for a ConfigMap whose text is not YAML */
function meshesOf({ kind, spec, view }: Resource): readonly View[] {
  if (kind === 'IstioOperator' || kind === 'HelmValues') {
    return MESH_HOLDERS.flatMap((names) => spec.at(...names, 'mesh_config') ?? []);
  }
  return kind === 'ConfigMap' ? (view.at('data', 'mesh')?.documents() ?? []) : [];
}

/** Documents in a ConfigMap's files, such as a bootstrap. Files that are not YAML are ignored. */
function mountedFiles(document: View): readonly View[] {
  if (document.get('kind')?.text !== 'ConfigMap') return [];
  const files = (document.get('data')?.members() ?? []).filter(({ name }) => /\.(?:ya?ml|json)$/.test(name));
  return files.flatMap(({ view }) => {
    try {
      return view.documents();
    } catch (error) {
      if (error instanceof UnreadableText) return [];
      throw error;
    }
  });
}
