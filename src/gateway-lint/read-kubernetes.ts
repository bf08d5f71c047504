/** Objects of Kubernetes: their documents, and Istio's mesh configuration wherever it is written. */
import type { Resource } from './gateway.ts';
import { isSelector, targetOf } from './json-patch.ts';
import { UnreadableText } from './source.ts';
import type { View } from './view.ts';

/** Of one document; a List holds several. Files that were joined without `---` are one document: values, and an object behind them. */
export function readResources(document: View): readonly Resource[] {
  return [...readObjects(document), ...readHelmValues(document)];
}

/** None for what is no object of Kubernetes. */
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

/** What Istio's charts are installed with. */
function readHelmValues(document: View): readonly Resource[] {
  if (document.get('mesh_config') === undefined) return [];
  return [{ kind: 'HelmValues', name: '', namespace: undefined, view: document, spec: document }];
}

/** Of an IstioOperator; each is merged over the ones before it, so none may be bad. */
const MESH_HOLDERS = [[], ['values'], ['unvalidated_values']];

/** @throws UnreadableText for a ConfigMap whose text is no YAML */
export function meshOf({ kind, spec, view }: Resource): readonly View[] {
  if (kind === 'IstioOperator' || kind === 'HelmValues') {
    return MESH_HOLDERS.flatMap((names) => spec.at(...names, 'mesh_config') ?? []);
  }
  if (kind !== 'ConfigMap') return [];
  return view.at('data', 'mesh')?.documents() ?? [];
}

/**
 * What Envoy Gateway's EnvoyProxy says of the bootstrap: its text, or values of patches, as they would stand in one. And what Istio's
 * EnvoyFilter merges into it.
 * @throws UnreadableText for a text that is no YAML
 */
export function bootstrapsOf({ kind, spec }: Resource): readonly View[] {
  if (kind === 'EnvoyFilter') {
    return spec
      .list('config_patches')
      .filter((entry) => entry.get('apply_to')?.text === 'BOOTSTRAP')
      .flatMap((entry) => entry.at('patch', 'value') ?? []);
  }
  const bootstrap = kind === 'EnvoyProxy' ? spec.get('bootstrap') : undefined;
  const placed = bootstrap?.list('json_patches').flatMap((operation) => {
    const { filter, members } = targetOf(operation, 'path');
    const value = operation.get('value');
    const names = members.map((member) => (isSelector(member) ? '-' : member));
    return value === undefined || filter !== undefined ? [] : [value.below(names)];
  });
  return [...(bootstrap?.get('value')?.documents() ?? []), ...(placed ?? [])];
}

/** Documents that a ConfigMap holds as files: a bootstrap, say. Files that are no YAML are somebody else's. */
export function mountedFiles(document: View): readonly View[] {
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
