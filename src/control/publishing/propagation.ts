/**
 * Shows how far a site's publications have spread: each target's lag, and since when every target has each revocation.
 * Source: docs/operate/control.md "From key to traffic".
 */

import { MAX_WAIT_SECONDS } from '../../bundle/format/bundle-limits.ts';
import type { SitePropagationView, TargetPropagationView } from '../contract/targets-contract.ts';
import { ApiProblem } from '../domain/api-problem.ts';
import type { RowOf } from '../store/repositories/records.ts';
import type { Transaction } from '../store/transaction.ts';
import { isRefusing } from './acknowledgements.ts';
import { isOver, unlistedOf } from './held-revision.ts';
import { enforcedView } from './known-members.ts';
import { instanceView, recentInstances, replayStores } from './target-instances.ts';

type Target = RowOf<'target'>;

const MAX_REVOCATIONS = 100;
/** Twice the longest wait of a poll. */
const SILENT_MS = MAX_WAIT_SECONDS * 2 * 1000;

/** @throws ApiProblem `not_found` */
export async function sitePropagation(
  tx: Transaction,
  siteId: string,
  nowMs: number,
): Promise<SitePropagationView> {
  const site = await tx.sites.find(siteId);
  if (site === undefined) throw new ApiProblem('not_found');
  const targets = await tx.targets.attached(siteId);
  const instances = await recentInstances(tx, siteId, nowMs);
  const byTarget = new Map<string, RowOf<'targetInstance'>[]>(targets.map(({ id }) => [id, []]));
  for (const instance of instances) byTarget.get(instance.targetId)?.push(instance);
  const lackedSince = await momentsLackedSince(tx, site, targets);
  const step = await tx.distribution.step(siteId, site.revision);
  const pendingMs = await tx.changes.oldestPendingMs(siteId);
  const held = await tx.propagation.heldByAll(siteId, nowMs);
  const revoked = await tx.propagation.revokedKeys(siteId, Math.floor(nowMs / 1000), MAX_REVOCATIONS);
  return {
    site_id: siteId,
    revision: site.revision,
    ...(site.head === null ? {} : { head: site.head }),
    ...(step === undefined ? {} : { published_at: moment(step.publishedAtMs) }),
    policy_revision: site.policyRevision,
    ...(pendingMs === undefined ? {} : { unpublished_since: moment(pendingMs) }),
    held_everywhere: held.revision,
    replay_stores: replayStores(instances, nowMs),
    expected_replay_stores: site.replayStores,
    targets: targets.map((target) => ({
      ...targetView(target, site, lackedSince, nowMs),
      instances: (byTarget.get(target.id) ?? []).map((instance) => instanceView(instance, nowMs)),
    })),
    revocations: revoked.map((key) =>
      revocationView(
        key,
        targets.filter((target) => !isOver(target, nowMs)),
      ),
    ),
  };
}

/** When the first step after each target's revision was published. If it was pruned, the oldest step kept. */
async function momentsLackedSince(
  tx: Transaction,
  site: RowOf<'site'>,
  targets: readonly Target[],
): Promise<ReadonlyMap<number, number>> {
  const behind = targets.map(ackedOf).filter((revision) => revision < site.revision);
  const moments = new Map<number, number>();
  for (const revision of new Set(behind)) {
    const [first] = await tx.distribution.stepsAfter(site.id, revision, 1);
    if (first !== undefined) moments.set(revision, first.publishedAtMs);
  }
  return moments;
}

function ackedOf({ ackedRevision }: Target): number {
  return ackedRevision ?? 0;
}

function targetView(
  target: Target,
  site: RowOf<'site'>,
  lackedSince: ReadonlyMap<number, number>,
  nowMs: number,
): Omit<TargetPropagationView, 'instances'> {
  const { ackedRevision, ackedAtMs, lastSeenAtMs, aheadRevision, aheadSinceMs } = target;
  const behind = Math.max(0, site.revision - ackedOf(target));
  const sinceMs = lackedSince.get(ackedOf(target));
  return {
    target_id: target.id,
    name: target.name,
    state: stateOf(target, behind),
    ...(ackedRevision === null ? {} : { acked_revision: ackedRevision }),
    ...(ackedAtMs === null ? {} : { acked_at: moment(ackedAtMs) }),
    behind_revisions: behind,
    ...(behind === 0 || sinceMs === undefined ? {} : { behind_since: moment(sinceMs) }),
    ...(aheadRevision === null ? {} : { ahead_revision: aheadRevision }),
    ...(aheadSinceMs === null ? {} : { ahead_since: moment(aheadSinceMs) }),
    ...refusedOf(target),
    ...enforcedView(target),
    ...(lastSeenAtMs === null ? {} : { last_seen_at: moment(lastSeenAtMs) }),
    ...unlistedView(target, nowMs),
    silent: lastSeenAtMs === null || nowMs - lastSeenAtMs > SILENT_MS,
  };
}

function unlistedView(
  target: Target,
  nowMs: number,
): Pick<TargetPropagationView, 'unlisted_may_allow_until'> {
  const untilMs = Math.max(0, ...unlistedOf(target).map((entry) => entry.untilMs));
  return untilMs > nowMs ? { unlisted_may_allow_until: moment(untilMs) } : {};
}

function stateOf(target: Target, behind: number): TargetPropagationView['state'] {
  if (target.aheadRevision !== null) return 'ahead';
  if (isRefusing(target)) return 'refusing';
  if (target.ackedRevision === null) return 'never';
  return behind === 0 ? 'current' : 'behind';
}

function refusedOf(target: Target): Pick<TargetPropagationView, 'refused'> {
  const { refusedRevision, refusedCode, refusedDetail, refusedAtMs } = target;
  if (!isRefusing(target) || refusedRevision === null) return {};
  const refused = {
    revision: refusedRevision,
    code: refusedCode ?? 'unknown',
    ...(refusedDetail === null ? {} : { detail: refusedDetail }),
    at: moment(refusedAtMs ?? 0),
  };
  return { refused };
}

function revocationView(
  { keyId, revokedAtMs, revokedRevision, revokedEverywhereAtMs, createdAtMs }: RowOf<'derivedKey'>,
  targets: readonly Target[],
): SitePropagationView['revocations'][number] {
  const needed = revokedRevision ?? Number.POSITIVE_INFINITY;
  return {
    key_id: keyId,
    revoked_at: moment(revokedAtMs ?? createdAtMs),
    ...(revokedRevision === null ? {} : { revision: revokedRevision }),
    ...(revokedEverywhereAtMs === null ? {} : { held_everywhere_since: moment(revokedEverywhereAtMs) }),
    waiting_for: targets.filter((target) => ackedOf(target) < needed).length,
  };
}

function moment(ms: number): string {
  return new Date(ms).toISOString();
}
