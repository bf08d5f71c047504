/**
 * Computes the five conditions of runtime readiness of a key: each with its state, its start, and what blocks it.
 * Source: specification "Derived key"; docs/operate/control.md "From key to traffic".
 */

import type { KeyReadinessView } from '../contract/derived-keys-contract.ts';
import type { ReadinessCondition } from '../contract/enrollment-contract.ts';
import { ApiProblem } from '../domain/api-problem.ts';
import { keyStateAt } from '../domain/enrollment-rules.ts';
import type { RowOf } from '../store/repositories/records.ts';
import type { Transaction } from '../store/transaction.ts';
import { isRefusing } from './acknowledgements.ts';
import { isOver } from './held-revision.ts';
import { clientSigningProfiles, keyGrants } from './signing-profiles.ts';

type Key = RowOf<'derivedKey'>;
type Target = RowOf<'target'>;

/**
 * @param targetId the selected target; undefined for all attached targets
 * @throws ApiProblem `not_found` unless the target is attached to the key's site
 */
export async function keyReadiness(
  tx: Transaction,
  key: Key,
  targetId: string | undefined,
  nowMs: number,
): Promise<KeyReadinessView> {
  const selected = await selectedTargets(tx, key.siteId, targetId);
  // Those that deny everything need nothing, unless there is no other.
  const counted = selected.filter((target) => !isOver(target, nowMs));
  const targets = counted.length > 0 ? counted : selected;
  const conditions = [
    keyCondition(key, nowMs),
    await grantCondition(tx, key),
    await profileCondition(tx, key),
    acknowledgedCondition(key, targets),
    await currentCondition(tx, key.siteId, targets),
  ];
  return {
    key_id: key.keyId,
    ...(targetId === undefined ? {} : { target_id: targetId }),
    ready: conditions.every(({ satisfied }) => satisfied),
    conditions,
  };
}

async function selectedTargets(
  tx: Transaction,
  siteId: string,
  targetId: string | undefined,
): Promise<readonly Target[]> {
  if (targetId === undefined) return tx.targets.attached(siteId);
  const target = await tx.targets.find(targetId);
  if (target?.siteId !== siteId || target.state !== 'attached') throw new ApiProblem('not_found');
  return [target];
}

function keyCondition(key: Key, nowMs: number): ReadinessCondition {
  const state = keyStateAt(key.status, key.expiresAtSeconds, Math.floor(nowMs / 1000));
  const sinceMs = { active: key.createdAtMs, revoked: key.revokedAtMs, expired: key.expiresAtSeconds * 1000 }[
    state
  ];
  return condition('derived_key', {
    state,
    sinceMs,
    blockedBy: state === 'active' ? undefined : `the key is ${state}`,
  });
}

async function grantCondition(tx: Transaction, key: Key): Promise<ReadinessCondition> {
  const grants = await keyGrants(tx, key);
  const active = grants.filter(({ state }) => state === 'active');
  const blockedBy = grants[0]?.blocked_by ?? `no route needs what client ${key.clientId} was granted`;
  return condition('route_grant', {
    state: active.length > 0 ? 'active' : 'inactive',
    sinceMs: earliest(active.map(({ since }) => since)),
    blockedBy: active.length > 0 ? undefined : blockedBy,
  });
}

async function profileCondition(tx: Transaction, key: Key): Promise<ReadinessCondition> {
  const profiles = await clientSigningProfiles(tx, key.siteId, key.clientId);
  const isActive = profiles.some(({ state }) => state === 'active');
  return condition('signing_profile', {
    state: isActive ? 'active' : 'inactive',
    sinceMs: undefined,
    blockedBy: isActive ? undefined : (profiles[0]?.blocked_by ?? 'there is no active route grant'),
  });
}

function acknowledgedCondition(key: Key, targets: readonly Target[]): ReadinessCondition {
  const name = 'target_acknowledged';
  if (targets.length === 0) return condition(name, NO_TARGET);
  const { listedRevision } = key;
  if (listedRevision === null) {
    return condition(name, { state: 'pending', blockedBy: 'the key is not published yet' });
  }
  const late = targetsBelow(targets, listedRevision);
  if (late !== undefined) return condition(name, late);
  // All targets have it since then. For a single target: at the latest since its last acknowledgement.
  const sinceMs = key.listedEverywhereAtMs ?? latest(targets);
  return condition(name, { state: 'acknowledged', sinceMs });
}

async function currentCondition(
  tx: Transaction,
  siteId: string,
  targets: readonly Target[],
): Promise<ReadinessCondition> {
  const name = 'version_current';
  const site = await tx.sites.find(siteId);
  if (site === undefined) throw new ApiProblem('not_found');
  const waitingSinceMs = await tx.publication.contentChangedSince(siteId);
  if (waitingSinceMs !== undefined || site.head === null) {
    const blockedBy = 'the latest policy is not published yet';
    return condition(name, { state: 'publishing', sinceMs: waitingSinceMs, blockedBy });
  }
  if (targets.length === 0) return condition(name, NO_TARGET);
  const late = targetsBelow(targets, site.policyRevision);
  if (late !== undefined) return condition(name, { ...late, state: 'outdated' });
  return condition(name, { state: 'current', sinceMs: latest(targets) });
}

interface Finding {
  readonly state: string;
  readonly sinceMs?: number | null | undefined;
  /** Reason that the condition is not satisfied; undefined when it is. */
  readonly blockedBy?: string | undefined;
}

const NO_TARGET: Finding = { state: 'no_target', blockedBy: 'no target is attached' };

/** Why targets do not have a revision; undefined when all have it. */
function targetsBelow(targets: readonly Target[], revision: number): Finding | undefined {
  const isLate = ({ ackedRevision, aheadRevision }: Target) =>
    aheadRevision !== null || (ackedRevision ?? 0) < revision;
  const late = targets.filter(isLate);
  const first = late.find(isRefusing) ?? late[0];
  if (first === undefined) return undefined;
  const others = late.length === 1 ? '' : ` (and ${late.length - 1} more)`;
  if (isRefusing(first)) {
    const blockedBy = `target ${first.id} refused revision ${first.refusedRevision}: ${first.refusedCode}${others}`;
    return { state: 'refused', sinceMs: first.refusedAtMs, blockedBy };
  }
  if (first.aheadRevision !== null) {
    const blockedBy = `target ${first.id} is at revision ${first.aheadRevision}, which was not published here${others}`;
    return { state: 'pending', sinceMs: first.aheadSinceMs, blockedBy };
  }
  const at = first.ackedRevision === null ? 'has taken nothing yet' : `is at revision ${first.ackedRevision}`;
  return { state: 'pending', blockedBy: `target ${first.id} ${at}, revision ${revision} is needed${others}` };
}

function condition(
  name: ReadinessCondition['condition'],
  { state, sinceMs, blockedBy }: Finding,
): ReadinessCondition {
  return {
    condition: name,
    state,
    satisfied: blockedBy === undefined,
    ...(sinceMs === undefined || sinceMs === null ? {} : { since: new Date(sinceMs).toISOString() }),
    ...(blockedBy === undefined ? {} : { blocked_by: blockedBy.slice(0, 512) }),
  };
}

function earliest(moments: readonly (string | undefined)[]): number | undefined {
  const known = moments.flatMap((text) => (text === undefined ? [] : [Date.parse(text)]));
  return known.length === 0 ? undefined : Math.min(...known);
}

function latest(targets: readonly Target[]): number | undefined {
  const known = targets.flatMap(({ ackedAtMs }) => (ackedAtMs === null ? [] : [ackedAtMs]));
  return known.length === 0 ? undefined : Math.max(...known);
}
