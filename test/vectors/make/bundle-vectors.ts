/** The bundles for the request vectors: one whole and signed, the others as patches of it. */
import { signWholeBundle } from '../../../src/bundle/authoring/publishing-documents.ts';
import { asContent } from '../../../src/bundle/format/shape.ts';
import { TABLE } from '../../support/cases/table.ts';
import type { BundleVariant } from '../../support/cases/vector-case.ts';
import { siteContent } from '../../support/fixtures/snapshot.ts';
import { OTHER_TEST_KEYS, TEST_SITE_KEYS } from '../../support/fixtures/test-keys.ts';
import type { BundleVector } from './format.ts';
import { patchBetween } from './json-patch.ts';
import { BASE_BUNDLE } from './request-vectors.ts';

export function bundleVectors(): readonly BundleVector[] {
  return [baseBundle(), ...variants().map(patchedBundle)];
}

function baseBundle(): BundleVector {
  const { bundleSigner } = OTHER_TEST_KEYS;
  const content = asContent('bundle', asJson(siteContent(TEST_SITE_KEYS)), 'bundle.jws');
  const { document, position } = signWholeBundle(content, [bundleSigner]);
  return {
    name: BASE_BUNDLE,
    content,
    document: JSON.parse(document.toString('utf8')),
    pinned_key: bundleSigner.publicKey.jwk,
    head: position.head,
  };
}

/** Each once; of one name all are the same. */
function variants(): readonly BundleVariant[] {
  const found = new Map<string, BundleVariant>();
  for (const { bundle } of TABLE) {
    if (bundle !== undefined && bundle !== 'none') found.set(bundle.name, found.get(bundle.name) ?? bundle);
  }
  return [...found.values()];
}

function patchedBundle({ change, name }: BundleVariant): BundleVector {
  const changed = siteContent(TEST_SITE_KEYS);
  change(changed);
  return {
    name,
    from: BASE_BUNDLE,
    patch: patchBetween(asJson(siteContent(TEST_SITE_KEYS)), asJson(changed)),
  };
}

function asJson(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value));
}
