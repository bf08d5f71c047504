/**
 * A small chain with one document of each kind: an old bundle, and after it a whole bundle with a shard, a delta, a
 * link and a freshness statement. Three keys of both algorithms sign, two of them are needed; of the two that sign statements
 * one is enough.
 */

import {
  linkOf,
  signDelta,
  signFreshness,
  signLink,
  signWholeBundle,
} from '../../../../src/bundle/authoring/publishing-documents.ts';
import { makeShards } from '../../../../src/bundle/compile/key-shards.ts';
import type { ChainPosition } from '../../../../src/bundle/format/chain.ts';
import type { Signers } from '../../../../src/bundle/format/documents.ts';
import type { BundleContent, DeltaContent } from '../../../../src/bundle/format/schema.ts';
import { formatTime } from '../../../../src/protocol/rfc3339.ts';
import type { SigningKey } from '../../../../src/protocol/signing.ts';
import { clientNamed, deltaAfter, keyNamed } from '../../../support/bundle/deltas.ts';
import {
  AUTH_SITE,
  bundleContent,
  NOW_SECONDS,
  newSigningKey,
} from '../../../support/fixtures/bundle-content.ts';
import { newSiteKeys, type SiteKeys } from '../../../support/fixtures/snapshot.ts';

/** One document of each kind, in the order in which they are applied. */
export const TARGETS = [
  'bundle.jws',
  'keys-0001.jsonl',
  'delta-3.jws',
  'link-4.jws',
  'freshness.jws',
] as const;
export type Target = (typeof TARGETS)[number];

const DAY_SECONDS = 86_400;
/** Of the bounded route, seconds. */
export const MAX_STALENESS_SECONDS = 7200;
/** The clock of these tests: later than any statement. */
export const CLOCK_SECONDS = NOW_SECONDS + 3000;
/** `as_of` of the chain's own statement. */
export const AS_OF_SECONDS = NOW_SECONDS + 2900;

export interface SignedChain {
  readonly bundleSigners: Signers;
  readonly freshnessSigners: Signers;
  readonly bundleKeys: readonly SigningKey[];
  readonly freshnessKeys: readonly SigningKey[];
  /** Of the callers; `billing` is the derived key of the bundle. */
  readonly siteKeys: SiteKeys;
  readonly old: {
    readonly bundle: Buffer;
    readonly position: ChainPosition;
    readonly content: BundleContent;
  };
  readonly documents: { readonly [T in Target]: Buffer };
  /** The position of the chain before each document. */
  readonly before: { readonly [T in Target]: ChainPosition };
  readonly end: ChainPosition;
  /** Content of revision 2, its keys among it. */
  readonly content: BundleContent;
  statement(position: ChainPosition, asOfSeconds: number, keys?: readonly SigningKey[]): Buffer;
  delta(previous: ChainPosition, more: Partial<DeltaContent>): Buffer;
}

export function newSignedChain(): SignedChain {
  // P-256 keys cost less to load, and these tests load often.
  const siteKeys: SiteKeys = { ...newSiteKeys(), billing: newSigningKey('ES256') };
  const bundleKeys = [newSigningKey(), newSigningKey('ES256'), newSigningKey()];
  // ES256 signs differently each time, so no two statements are the same bytes.
  const freshnessKeys = [newSigningKey(), newSigningKey('ES256')];
  const oldContent = firstContent(siteKeys);
  const old = signWholeBundle(oldContent, bundleKeys);
  const { content, shard } = secondContent(oldContent, old.position, newSigningKey('ES256'));
  const { key_shards: shards = [], ...others } = content;
  const whole = signWholeBundle({ ...others, key_shards: shards }, bundleKeys);
  const added = newSigningKey('ES256').publicKey.jwk;
  const delta = signDelta(
    deltaAfter(whole.position, {
      clients_put: [clientNamed('reporting')],
      keys_put: [keyNamed('dk_delta', 'reporting', added)],
    }),
    bundleKeys,
  );
  const next = { ...content, revision: 4, previous_head: delta.position.head };
  const linked = linkOf(next, signWholeBundle(next, bundleKeys));
  if (linked === undefined) throw new Error('a first bundle has no link');
  const link = signLink({ ...linked, expires_at: formatTime(NOW_SECONDS + 21 * DAY_SECONDS) }, bundleKeys);
  const statement: SignedChain['statement'] = (position, asOfSeconds, keys = freshnessKeys) =>
    signFreshness({ auth_site: AUTH_SITE, ...position, as_of: formatTime(asOfSeconds) }, keys);
  return {
    bundleSigners: { keys: bundleKeys.map(({ publicKey }) => publicKey), threshold: 2 },
    freshnessSigners: { keys: freshnessKeys.map(({ publicKey }) => publicKey), threshold: 1 },
    bundleKeys,
    freshnessKeys,
    siteKeys,
    old: { bundle: old.document, position: old.position, content: oldContent },
    documents: {
      'bundle.jws': whole.document,
      'keys-0001.jsonl': shard,
      'delta-3.jws': delta.document,
      'link-4.jws': link.document,
      'freshness.jws': statement(link.position, AS_OF_SECONDS),
    },
    before: {
      'bundle.jws': old.position,
      'keys-0001.jsonl': old.position,
      'delta-3.jws': whole.position,
      'link-4.jws': delta.position,
      'freshness.jws': link.position,
    },
    end: link.position,
    content,
    statement,
    delta: (previous, more) => signDelta(deltaAfter(previous, more), bundleKeys).document,
  };
}

function firstContent({ broker: _, billing: derived }: SiteKeys): BundleContent {
  const content = bundleContent({ broker: newSigningKey('ES256'), derived });
  const far = formatTime(NOW_SECONDS + 20 * DAY_SECONDS);
  return {
    ...content,
    expires_at: far,
    derived_keys: (content.derived_keys ?? []).map((key) => ({ ...key, expires_at: far })),
    routes: content.routes.map((route) =>
      route.freshness_class === 'bounded'
        ? { ...route, max_staleness_seconds: MAX_STALENESS_SECONDS }
        : route,
    ),
  };
}

/** Its keys are in a shard, with one more than before. */
function secondContent(first: BundleContent, previous: ChainPosition, more: SigningKey) {
  const { derived_keys: derivedKeys = [], ...others } = first;
  const [shard] = makeShards([...derivedKeys, keyNamed('dk_shard', 'billing', more.publicKey.jwk)]);
  if (shard === undefined) throw new Error('no shard');
  const content: BundleContent = {
    ...others,
    revision: 2,
    previous_head: previous.head,
    issued_at: formatTime(NOW_SECONDS + 60),
    skew_seconds: 9,
    key_shards: [shard.entry],
  };
  return { content, shard: shard.bytes };
}
