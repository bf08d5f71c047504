/** The gateway manifests below envoy/ and in docs/operate/gateways.md. */
import { parseAllDocuments } from 'yaml';
import { MANIFEST_SETS } from '../support/docs/manifest-sets.ts';
import { readText } from '../support/docs/markdown.ts';
import type { ApiObject } from './objects.ts';

export interface GatewayManifest {
  readonly file: string;
  readonly object: ApiObject;
}

export function gatewayManifests(): readonly GatewayManifest[] {
  const files = new Set(MANIFEST_SETS.flatMap((set) => set.files.map((file) => `envoy/${file}`)));
  const blocks = readText('docs/operate/gateways.md').matchAll(/^```yaml\n([\s\S]*?)^```/gm);
  return [
    ...[...files].flatMap((file) => objectsOf(file, readText(file))),
    ...[...blocks].flatMap(([, text = '']) => objectsOf('docs/operate/gateways.md', text)),
  ];
}

/** Skips chart values, which are not objects. */
function objectsOf(file: string, text: string): readonly GatewayManifest[] {
  return parseAllDocuments(text)
    .map((document) => document.toJS())
    .filter((each) => each?.apiVersion !== undefined)
    .map((object) => ({ file, object }));
}
