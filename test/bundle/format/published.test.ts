/** Tests what the project publishes about bundles: schemas and examples. */
import { readFile } from 'node:fs/promises';
import { describe, expect, it } from '@jest/globals';
import { signBundle } from '../../../src/bundle/authoring/authoring.ts';
import { lintBundleYaml } from '../../../src/bundle/authoring/lint-content.ts';
import { POLL_ANSWER } from '../../../src/bundle/format/distribution-contract.ts';
import {
  BREAK_GLASS_CONTENT,
  BUNDLE_CONTENT,
  DELTA_CONTENT,
  DERIVED_KEY,
  FRESHNESS_CONTENT,
  LINK_CONTENT,
} from '../../../src/bundle/format/schema.ts';
import { publishedSchema } from '../../../src/bundle/format/shape.ts';
import { newDirectory } from '../../support/bundle/bundle-directory.ts';
import { NOW_SECONDS, newSigningKey } from '../../support/fixtures/bundle-content.ts';

const root = new URL('../../../', import.meta.url);
const read = (path: string) => readFile(new URL(path, root), 'utf8');

/** `make schemas` writes them. */
describe('schemas', () => {
  it.each([
    ['bundle', [], BUNDLE_CONTENT],
    ['bundle', ['properties', 'derived_keys', 'items'], DERIVED_KEY],
    ['delta', [], DELTA_CONTENT],
    ['link', [], LINK_CONTENT],
    ['freshness', [], FRESHNESS_CONTENT],
    ['break-glass', [], BREAK_GLASS_CONTENT],
    ['target-bundle', [], POLL_ANSWER],
    // Compared as text, because faults are reported in the order of the members.
  ] as const)('%s.schema.json is up to date at %j', (name, path, schema) => {
    expect(JSON.stringify(publishedSchema(name, path))).toBe(JSON.stringify(schema));
  });

  it.each([
    ['docs/reference/schema', ['break-glass', 'bundle', 'delta', 'freshness', 'link']],
    ['proto', ['target-bundle']],
  ])('%s has copies of them', async (folder, names) => {
    for (const name of names) {
      const loaded = await read(`src/bundle/format/schemas/${name}.schema.json`);
      expect(await read(`${folder}/${name}.schema.json`)).toBe(loaded);
    }
  });

  it('has no part that is not there', () => {
    expect(() => publishedSchema('bundle', ['properties', 'toString'])).toThrow('no schema');
  });
});

describe('examples', () => {
  it.each([
    ['bundles/minimal.yaml', []],
    // GET /v1/orders/search is no order: its literal was taken by the search.
    ['bundles/example.yaml', ['body_unbound', 'route_shadowed']],
  ])('%s lints and can be signed', async (path, findings) => {
    const yamlText = await read(path);
    const options = { yamlText, fileName: path, nowSeconds: NOW_SECONDS };
    expect((await lintBundleYaml(options)).map(({ code }) => code)).toEqual(findings);
    const signed = await signBundle({
      ...options,
      signingKeys: [newSigningKey()],
      outDirectory: await newDirectory(),
    });
    expect(signed.revision).toBe(1);
  });
});
