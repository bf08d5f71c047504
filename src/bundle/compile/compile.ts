/**
 * Compiles a bundle's content to the immutable snapshot that requests are decided from. All faults of the content are
 * reported together, each with its position.
 * Source: docs/design/bundle.md "Content" and "Life in the verifier".
 */

import { DEFAULT_SKEW_SECONDS } from '../../protocol/limits.ts';
import { parseOrigin } from '../../protocol/request-target.ts';
import { bundleError, Faults, pointer, showValue } from '../format/bundle-error.ts';
import type { BundleContent } from '../format/schema.ts';
import { TimeSlice } from '../format/time-slice.ts';
import { compileBlocked } from './compile-blocked.ts';
import { acceptsDpop } from './compile-dpop.ts';
import { compileClients, compileIssuers } from './compile-identities.ts';
import { type KeyImporter, KeyTableBuilder, requiredTime } from './compile-keys.ts';
import { compileOAuthIssuers } from './compile-oauth.ts';
import { compileObservation } from './compile-observation.ts';
import { compileRoutesInSteps, groupByFreshness } from './compile-routes.ts';
import { addShard, type ShardReader } from './key-shards.ts';
import { LiveKeyTable } from './key-table.ts';
import type { Snapshot } from './snapshot.ts';

export interface CompileOptions {
  /** Name of the bundle's file, for errors. */
  readonly file: string;
  /** See `headOf`. */
  readonly head: string;
  /** Required when the content names shards. */
  readonly readShard?: ShardReader | undefined;
  readonly importKey?: KeyImporter | undefined;
  /** Whether the content is about to be signed: warnings are then errors. Default: false. */
  readonly isBeingWritten?: boolean | undefined;
  /** Derived keys that expire before this time, in seconds, are skipped. Default: none is. */
  readonly forgetBeforeSeconds?: number | undefined;
}

const UNMATCHED = { mode: 'unmatched', untilPath: '/unmatched_until' };

/** A snapshot whose keys and clients can be changed by deltas. */
export interface LiveSnapshot extends Snapshot {
  readonly keys: LiveKeyTable;
}

/**
 * Applies every rule across members and compiles. Works in slices of a few milliseconds.
 * @param content already of the right shape
 * @throws BundleError with every fault found
 */
export async function compileBundle(content: BundleContent, options: CompileOptions): Promise<LiveSnapshot> {
  const faults = new Faults(options.file, options.isBeingWritten);
  const issuedAtSeconds = requiredTime(content.issued_at, '/issued_at', faults);
  const expiresAtSeconds = requiredTime(content.expires_at, '/expires_at', faults);
  if (issuedAtSeconds >= expiresAtSeconds) faults.add('time_order', '/expires_at', 'not after issued_at');
  const issuers = [...(content.issuers ?? []), ...(content.oauth_issuers ?? [])];
  const table = new LiveKeyTable(new Set(issuers.map(({ issuer }) => issuer)));
  compileClients(content, table, faults);
  const slice = new TimeSlice();
  const routes = await slice.run(compileRoutesInSteps(content, compileOrigins(content, faults), faults));
  checkTrustAnchorSources(content, faults);
  const blocked = compileBlocked(content, faults);
  const oauthIssuers = compileOAuthIssuers(content, faults);
  const unmatched = { mode: content.unmatched, until: content.unmatched_until };
  const unmatchedUntilSeconds = compileObservation(unmatched, UNMATCHED, issuedAtSeconds, faults);
  const keys = await compileKeys(content, table, options, { faults, slice });
  return {
    authSite: content.auth_site,
    revision: content.revision,
    head: options.head,
    issuedAtSeconds,
    expiresAtSeconds,
    freshAsOfSeconds: issuedAtSeconds,
    breakGlass: undefined,
    skewSeconds: content.skew_seconds ?? DEFAULT_SKEW_SECONDS,
    singleVerifier: content.single_verifier ?? false,
    routesByFreshness: groupByFreshness(content),
    routes,
    acceptsDpop: content.routes.some(acceptsDpop),
    needsDpopNonces: content.routes.some(({ dpop_nonce }) => dpop_nonce !== undefined),
    unmatchedUntilSeconds,
    keys,
    oauthIssuers,
    blocked,
    warnings: faults.warnings,
  };
}

function compileOrigins(content: BundleContent, faults: Faults): ReadonlySet<string> {
  for (const [index, origin] of content.origins.entries()) {
    if (parseOrigin(origin) !== undefined) continue;
    const text = `${showValue(origin)} is not scheme://authority in canonical form`;
    faults.add('origin_invalid', pointer('origins', index), text);
  }
  return new Set(content.origins);
}

function checkTrustAnchorSources(content: BundleContent, faults: Faults): void {
  const seen = new Set<string>();
  for (const [index, { id }] of (content.trust_anchor_sources ?? []).entries()) {
    if (seen.has(id)) {
      faults.add('duplicate', pointer('trust_anchor_sources', index, 'id'), `${showValue(id)} occurs twice`);
    }
    seen.add(id);
  }
}

/** Reads shards last, and only if the bundle is valid without them. */
async function compileKeys(
  content: BundleContent,
  table: LiveKeyTable,
  options: CompileOptions,
  { faults, slice }: { readonly faults: Faults; readonly slice: TimeSlice },
): Promise<LiveKeyTable> {
  const keys = new KeyTableBuilder({ table, ...options });
  const issuers = compileIssuers(content, faults);
  for (const [index, entry] of (content.issuers ?? []).entries()) {
    const issuer = issuers[index];
    if (issuer !== undefined) keys.addIssuerKeys(entry, issuer, pointer('issuers', index), faults);
    if (slice.isUsedUp) await slice.next();
  }
  for (const [index, entry] of (content.derived_keys ?? []).entries()) {
    keys.addDerivedKey(entry, pointer('derived_keys', index), faults);
    if (slice.isUsedUp) await slice.next();
  }
  const files = new Set<string>();
  for (const [index, { file }] of (content.key_shards ?? []).entries()) {
    if (files.has(file))
      faults.add('duplicate', pointer('key_shards', index, 'file'), `${file} occurs twice`);
    files.add(file);
  }
  faults.throwIfAny();
  for (const shard of content.key_shards ?? []) {
    if (options.readShard === undefined) {
      throw bundleError('file_missing', shard.file, '', 'shards cannot be read here');
    }
    await addShard(shard, await options.readShard(shard.file), keys, slice);
  }
  return table;
}
