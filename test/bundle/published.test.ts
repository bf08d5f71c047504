/** What the project publishes about bundles: schemas and examples. */
import { readFile, writeFile } from 'node:fs/promises';
import { describe, expect, it } from '@jest/globals';
import { signBundle } from '../../src/bundle/authoring.ts';
import { lintBundleYaml } from '../../src/bundle/lint.ts';
import { BUNDLE_CONTENT, DELTA_CONTENT, FRESHNESS_CONTENT, LINK_CONTENT } from '../../src/bundle/schema.ts';
import { NOW_SECONDS, newSigningKey } from '../fakes/bundle-content.ts';
import { newDirectory } from './bundle-directory.ts';

const root = new URL('../../', import.meta.url);
const read = (path: string) => readFile(new URL(path, root), 'utf8');

describe('schemas', () => {
  it.each([
    ['docs/schema/bundle.schema.json', BUNDLE_CONTENT],
    ['docs/schema/delta.schema.json', DELTA_CONTENT],
    ['docs/schema/link.schema.json', LINK_CONTENT],
    ['docs/schema/freshness.schema.json', FRESHNESS_CONTENT],
  ])('%s is the one that is checked', async (path, schema) => {
    const text = `${JSON.stringify(schema, null, 2)}\n`;
    // To make them anew: UPDATE_SCHEMAS=1 npm run jest -- test/bundle/published, then npm run format.
    if (process.env.UPDATE_SCHEMAS === '1') await writeFile(new URL(path, root), text);
    expect(JSON.parse(await read(path))).toEqual(JSON.parse(text));
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
