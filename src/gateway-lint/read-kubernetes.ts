/** Objects of Kubernetes, and what some of them hold as text. */
import type { Resource } from './gateway.ts';
import { UnreadableText } from './source.ts';
import type { View } from './view.ts';

/** A List holds several. Files that were joined without `---` are one document: values of a chart, and an object behind them. */
export function readResources(document: View): readonly Resource[] {
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

/** Where an IstioOperator has `meshConfig`. Each is merged over the ones before it, so all are linted. */
const MESH_HOLDERS = [[], ['values'], ['unvalidated_values']];

/** Istio's mesh configuration, of an object that holds one. @throws UnreadableText for a ConfigMap whose text is not YAML */
export function meshesOf({ kind, spec, view }: Resource): readonly View[] {
  if (kind === 'IstioOperator' || kind === 'HelmValues') {
    return MESH_HOLDERS.flatMap((names) => spec.at(...names, 'mesh_config') ?? []);
  }
  return kind === 'ConfigMap' ? (view.at('data', 'mesh')?.documents() ?? []) : [];
}

/** Documents that a ConfigMap holds as files, such as a bootstrap. Files that are not YAML do not matter here. */
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
