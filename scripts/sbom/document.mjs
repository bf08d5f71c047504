/** Writes a bill of materials in CycloneDX 1.6 JSON; the same inputs give the same bytes. */
import { createHash } from 'node:crypto';
import { licensesOf, purlOf } from './npm-packages.mjs';

const SCHEMA = 'http://cyclonedx.org/schema/bom-1.6.schema.json';

export function rootComponent({ license, name, version }) {
  const purl = purlOf(name, version);
  return { type: 'application', 'bom-ref': purl, name, version, licenses: licensesOf(license), purl };
}

/** @param content components and dependencies @param root of {@link rootComponent} */
export function documentOf(content, { epochSeconds, root }) {
  const metadata = {
    timestamp: new Date(epochSeconds * 1000).toISOString(),
    tools: {
      components: [{ type: 'application', name: `${root.name} scripts/sbom`, version: root.version }],
    },
    component: root,
  };
  const body = { metadata, ...content };
  return {
    $schema: SCHEMA,
    bomFormat: 'CycloneDX',
    specVersion: '1.6',
    serialNumber: `urn:uuid:${uuidOf(JSON.stringify(body))}`,
    version: 1,
    ...body,
  };
}

/** Made of a content, so of version 8. Source: RFC 9562, section 5.8. */
function uuidOf(text) {
  const hex = createHash('sha256').update(text).digest('hex');
  const variant = ((Number.parseInt(hex[16], 16) & 0x3) | 0x8).toString(16);
  return [
    hex.slice(0, 8),
    hex.slice(8, 12),
    `8${hex.slice(13, 16)}`,
    variant + hex.slice(17, 20),
    hex.slice(20, 32),
  ].join('-');
}
