import type { RowOf } from './records.ts';
import { Repository } from './repository.ts';
import type { Tables } from './tables.ts';

export interface HeldByAll {
  readonly attached: number;
  /** The newest revision that every attached target has acknowledged; 0 while one target has acknowledged none. */
  readonly revision: number;
  /** The oldest revision among those that targets have acknowledged; undefined when none has acknowledged any. */
  readonly least: number | undefined;
}

/** Columns with the revision that first published a key or its revocation, and with the time when all targets had it. */
const SPREADING = [
  { published: 'listedRevision', everywhere: 'listedEverywhereAtMs' },
  { published: 'revokedRevision', everywhere: 'revokedEverywhereAtMs' },
] as const;

/** Propagation of publications: reports of targets, and their effect on keys and revocations. */
export class Propagation extends Repository {
  /** Writes the same report for many targets at once. */
  async noteTargets(
    targetIds: readonly string[],
    set: Partial<
      Pick<
        Tables['target'],
        | 'ackedRevision'
        | 'ackedHead'
        | 'ackedAtMs'
        | 'lastSeenAtMs'
        | 'aheadRevision'
        | 'aheadSinceMs'
        | 'acceptedProofsLackedAtMs'
        | 'blockedLackedAtMs'
        | 'enforcementLackedAtMs'
        | 'passportHeaderLackedAtMs'
        | 'enforcedObservations'
        | 'unsignedRevision'
        | 'unsignedHead'
        | 'unsignedUntilMs'
        | 'unlistedRevision'
        | 'unlistedUntilMs'
        | 'nextUnlistedRevision'
        | 'nextUnlistedUntilMs'
        | 'freshUntilMs'
      >
    >,
  ): Promise<void> {
    if (targetIds.length === 0) return;
    await this.db
      .updateTable('target')
      .set(set)
      .where('id', 'in', [...targetIds])
      .where('state', '=', 'attached')
      .execute();
  }

  /** Changes when a target of the site is added, renamed or detached, or its token is rotated. */
  async versionOfTargets(siteId: string): Promise<string> {
    const row = await this.db
      .selectFrom('target')
      .select((of) => [
        of.fn.countAll<number>().as('targets'),
        of.fn.sum<number | null>('version').as('versions'),
      ])
      .where('siteId', '=', siteId)
      .executeTakeFirstOrThrow();
    return `${row.targets} ${row.versions}`;
  }

  /** Leaves out targets all of whose verifiers deny everything at the time. */
  async heldByAll(siteId: string, nowMs: number): Promise<HeldByAll> {
    const row = await this.db
      .selectFrom('target')
      .select((of) => [
        of.fn.countAll<number>().as('attached'),
        of.fn.count<number>('ackedRevision').as('acknowledged'),
        of.fn.min('ackedRevision').as('least'),
      ])
      .where('siteId', '=', siteId)
      .where('state', '=', 'attached')
      .where((of) => of.or([of('freshUntilMs', 'is', null), of('freshUntilMs', '>', nowMs)]))
      .executeTakeFirstOrThrow();
    const attached = Number(row.attached);
    const least = row.least === null ? undefined : Number(row.least);
    return { attached, least, revision: Number(row.acknowledged) < attached ? 0 : (least ?? 0) };
  }

  /** Whether every target has a key or revocation, up to the revision, that is not recorded as held by all yet. */
  async hasKeysUnderWay(siteId: string, revision: number): Promise<boolean> {
    for (const { published, everywhere } of SPREADING) {
      const row = await this.db
        .selectFrom('derivedKey')
        .select('keyId')
        .where('siteId', '=', siteId)
        .where(published, 'is not', null)
        .where(published, '<=', revision)
        .where(everywhere, 'is', null)
        .limit(1)
        .executeTakeFirst();
      if (row !== undefined) return true;
    }
    return false;
  }

  /** Records the time from which every target has the keys and revocations up to the revision. */
  async noteEverywhere(siteId: string, revision: number, nowMs: number): Promise<void> {
    for (const { published, everywhere } of SPREADING) {
      await this.db
        .updateTable('derivedKey')
        .set({ [everywhere]: nowMs })
        .where('siteId', '=', siteId)
        .where(published, 'is not', null)
        .where(published, '<=', revision)
        .where(everywhere, 'is', null)
        .execute();
    }
  }

  /** Revoked keys before their planned end, latest revocation first. */
  revokedKeys(siteId: string, nowSeconds: number, limit: number): Promise<readonly RowOf<'derivedKey'>[]> {
    return (
      this.db
        .selectFrom('derivedKey')
        .selectAll()
        .where('siteId', '=', siteId)
        .where('status', '=', 'revoked')
        // Lets the query use the index, which contains only revoked keys.
        .where('revokedAtMs', 'is not', null)
        .where('expiresAtSeconds', '>', nowSeconds)
        .orderBy('revokedAtMs', 'desc')
        .limit(limit)
        .execute()
    );
  }
}
