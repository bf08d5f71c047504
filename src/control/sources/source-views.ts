/** API views of sources and revisions. */

import type { SourceKeysView, SourceRevisionView, SourceView } from '../contract/sources-contract.ts';
import { MAX_SHOWN_TARGETS } from '../contract/vocabulary.ts';
import { parseKeySetText } from '../issuers/key-set.ts';
import { DEFAULT_REFRESH_INTERVAL_MS } from '../issuers/key-set-cache.ts';
import { isTimely, MAX_KEY_AGE_MS } from '../issuers/source-keys.ts';
import { momentOf, versionOf } from '../resource/change.ts';
import type { RowOf } from '../store/repositories/records.ts';
import type { Transaction } from '../store/transaction.ts';
import { LIVE_STATES } from './key-set-records.ts';

/** View of a revision with the targets that it waits for now. */
export async function revisionViewNow(
  tx: Transaction,
  row: RowOf<'sourceRevision'>,
): Promise<SourceRevisionView> {
  const targets = await awaitedTargets(tx, row);
  if (targets.length === 0) return revisionView(row);
  return { ...revisionView(row), waiting_for: targets.map(({ id, name }) => ({ target_id: id, name })) };
}

export function revisionView(row: RowOf<'sourceRevision'>): SourceRevisionView {
  const { state } = row;
  // Removing a revision deletes its row.
  if (state === 'removed') throw new Error('a removed revision is still there');
  return {
    source_id: row.sourceId,
    revision: row.revision,
    state,
    issuer: row.issuer,
    jwks_uri: row.jwksUri,
    audience: row.audience,
    discovery: row.discovery,
    ...(row.fingerprint === null ? {} : { fingerprint: row.fingerprint }),
    ...(row.detectedScope === null ? {} : { detected_scope: row.detectedScope }),
    ...(row.validatedAtMs === null ? {} : { validated_at: momentOf(row.validatedAtMs) }),
    ...(row.failureCode === null
      ? {}
      : { failure: { code: row.failureCode, detail: row.failureDetail ?? row.failureCode } }),
    ...(row.awaitedRevision === null ? {} : { awaited_bundle_revision: row.awaitedRevision }),
    state_since: momentOf(row.stateSinceMs),
    ...versionOf(row),
  };
}

export async function sourceView(tx: Transaction, row: RowOf<'source'>): Promise<SourceView> {
  const revisions: SourceRevisionView[] = [];
  for (const revision of await tx.sources.revisions(row.id)) {
    revisions.push(await revisionViewNow(tx, revision));
  }
  return {
    source_id: row.id,
    site_id: row.siteId,
    kind: row.kind,
    display_name: row.displayName,
    on_suspend: row.onSuspend,
    on_retire: row.onRetire,
    revisions,
    ...versionOf(row),
  };
}

/** Uses the stored records, so that every instance returns the same. */
export async function sourceKeysView(
  tx: Transaction,
  sourceId: string,
  nowMs: number,
): Promise<SourceKeysView> {
  const view: SourceKeysView = { source_id: sourceId, key_sets: [], keys: [] };
  for (const row of await tx.sources.revisions(sourceId)) {
    const keySet = await tx.sources.keySet(sourceId, row.revision);
    if (keySet === undefined || row.state === 'retired') continue;
    view.key_sets.push(keySetView(row, keySet, nowMs));
    for (const { kid, algorithms, thumbprint } of parseKeySetText(keySet.jwks) ?? []) {
      view.keys.push({ revision: row.revision, kid, algorithms: [...algorithms], thumbprint });
    }
  }
  return view;
}

function keySetView(
  { state }: RowOf<'sourceRevision'>,
  { revision, fetchedAtMs, failedAtMs, failureCode }: RowOf<'keySet'>,
  nowMs: number,
): SourceKeysView['key_sets'][number] {
  // Keys that are too old are fetched at every opportunity, not on schedule.
  const isScheduled = LIVE_STATES.includes(state) && isTimely(fetchedAtMs, nowMs);
  const nextMs = Math.max(fetchedAtMs, failedAtMs ?? 0) + DEFAULT_REFRESH_INTERVAL_MS;
  return {
    revision,
    refreshed_at: momentOf(fetchedAtMs),
    usable_until: momentOf(fetchedAtMs + MAX_KEY_AGE_MS),
    ...(isScheduled ? { next_refresh_at: momentOf(nextMs) } : {}),
    ...(failedAtMs === null || failureCode === null
      ? {}
      : { last_failure: { at: momentOf(failedAtMs), code: failureCode } }),
  };
}

/** The first {@link MAX_SHOWN_TARGETS} targets; none until the bundle that lists the revision is published. */
async function awaitedTargets(
  tx: Transaction,
  { awaitedRevision, siteId, state }: RowOf<'sourceRevision'>,
): Promise<readonly RowOf<'target'>[]> {
  if (state !== 'publishing' || awaitedRevision === null) return [];
  const attached = await tx.targets.attached(siteId);
  return attached
    .filter(({ ackedRevision }) => ackedRevision !== null && ackedRevision < awaitedRevision)
    .slice(0, MAX_SHOWN_TARGETS);
}

/** Message for operators; it names targets. */
export async function whyNotActive(tx: Transaction, row: RowOf<'sourceRevision'>): Promise<string> {
  if (row.state !== 'publishing') return `the revision is ${row.state}`;
  const targets = await awaitedTargets(tx, row);
  if (targets.length === 0) return 'the revision is publishing: its bundle is not published yet';
  const names = targets.map(({ id, name }) => `${name} (${id})`).join(', ');
  return `the revision is publishing: not acknowledged yet by target ${names}`;
}
