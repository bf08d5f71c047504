/** What the project publishes about bundles: schemas and examples. */
import { readFile } from 'node:fs/promises';
import { describe, expect, it } from '@jest/globals';
import { signBundle } from '../../../src/bundle/authoring/authoring.ts';
import { lintBundleYaml } from '../../../src/bundle/authoring/lint-content.ts';
import { POLL_ANSWER } from '../../../src/bundle/format/distribution-contract.ts';
import {
  BUNDLE_CONTENT,
  DELTA_CONTENT,
  DERIVED_KEY,
  FRESHNESS_CONTENT,
  LINK_CONTENT,
} from '../../../src/bundle/format/schema.ts';
import * as shapes from '../../../src/bundle/format/schemas.generated.ts';
import { NOW_SECONDS, newSigningKey } from '../../fakes/bundle-content.ts';
import { newDirectory } from '../bundle-directory.ts';

const root = new URL('../../../', import.meta.url);
const read = (path: string) => readFile(new URL(path, root), 'utf8');

/** What `src/bundle/format/schemas.generated.ts` has of each schema. */
const SHAPES = {
  BUNDLE_SHAPE: BUNDLE_CONTENT,
  DELTA_SHAPE: DELTA_CONTENT,
  DERIVED_KEY_SHAPE: DERIVED_KEY,
  FRESHNESS_SHAPE: FRESHNESS_CONTENT,
  LINK_SHAPE: LINK_CONTENT,
  POLL_ANSWER_SHAPE: POLL_ANSWER,
};
/** `make schemas` writes them. */
describe('schemas', () => {
  it.each([
    ['docs/schema/bundle.schema.json', BUNDLE_CONTENT],
    ['docs/schema/delta.schema.json', DELTA_CONTENT],
    ['docs/schema/link.schema.json', LINK_CONTENT],
    ['docs/schema/freshness.schema.json', FRESHNESS_CONTENT],
  ])('%s is the one that is checked', async (path, schema) => {
    expect(JSON.parse(await read(path))).toEqual(JSON.parse(JSON.stringify(schema)));
  });

  // The order too: faults are told in it.
  it('src/bundle/format/schemas.generated.ts has them as they are', async () => {
    const texts = Object.entries(SHAPES).map(([name, schema]) => [name, JSON.stringify(schema)] as const);
    expect(Object.entries(shapes).map(([name, shape]) => [name, JSON.stringify(shape)])).toEqual(texts);
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
