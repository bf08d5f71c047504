import type { Database } from '../database.ts';
import type { Tables } from '../tables.ts';
import type { RowOf } from './records.ts';

export interface HeldByAll {
  readonly attached: number;
  /** The newest revision that every attached target has acknowledged; 0 while one of them has none. */
  readonly revision: number;
}

/** How far publications have come: what targets say of themselves, and what follows for keys and revocations. */
export class Propagation {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  /** What targets say of themselves, the same of many at once. */
  async noteTargets(
    targetIds: readonly string[],
    set: Partial<
      Pick<
        Tables['target'],
        'ackedRevision' | 'ackedHead' | 'ackedAtMs' | 'lastSeenAtMs' | 'aheadRevision' | 'aheadSinceMs'
      >
    >,
  ): Promise<void> {
    if (targetIds.length === 0) return;
    await this.#db
      .updateTable('target')
      .set(set)
      .where('id', 'in', [...targetIds])
      .where('state', '=', 'attached')
      .execute();
  }

  /** Another text once a target of the site was added, renamed, detached, or its token rotated. */
  async versionOfTargets(siteId: string): Promise<string> {
    const row = await this.#db
      .selectFrom('target')
      .select((of) => [
        of.fn.countAll<number>().as('targets'),
        of.fn.sum<number | null>('version').as('versions'),
      ])
      .where('siteId', '=', siteId)
      .executeTakeFirstOrThrow();
    return `${row.targets} ${row.versions}`;
  }

  async heldByAll(siteId: string): Promise<HeldByAll> {
    const row = await this.#db
      .selectFrom('target')
      .select((of) => [
        of.fn.countAll<number>().as('attached'),
        of.fn.count<number>('ackedRevision').as('acknowledged'),
        of.fn.min('ackedRevision').as('least'),
      ])
      .where('siteId', '=', siteId)
      .where('state', '=', 'attached')
      .executeTakeFirstOrThrow();
    const attached = Number(row.attached);
    return { attached, revision: Number(row.acknowledged) < attached ? 0 : Number(row.least ?? 0) };
  }

  /** Whether there is a key or revocation that everybody has up to the revision, and of which that is not noted yet. */
  async hasKeysUnderWay(siteId: string, revision: number): Promise<boolean> {
    const listed = await this.#db
      .selectFrom('derivedKey')
      .select('keyId')
      .where('siteId', '=', siteId)
      .where('listedRevision', 'is not', null)
      .where('listedRevision', '<=', revision)
      .where('listedEverywhereAtMs', 'is', null)
      .limit(1)
      .executeTakeFirst();
    if (listed !== undefined) return true;
    const revoked = await this.#db
      .selectFrom('derivedKey')
      .select('keyId')
      .where('siteId', '=', siteId)
      .where('revokedRevision', 'is not', null)
      .where('revokedRevision', '<=', revision)
      .where('revokedEverywhereAtMs', 'is', null)
      .limit(1)
      .executeTakeFirst();
    return revoked !== undefined;
  }

  /** Notes of keys and revocations that every target has by now since when it is so. */
  async noteEverywhere(siteId: string, revision: number, nowMs: number): Promise<void> {
    await this.#db
      .updateTable('derivedKey')
      .set({ listedEverywhereAtMs: nowMs })
      .where('siteId', '=', siteId)
      .where('listedRevision', 'is not', null)
      .where('listedRevision', '<=', revision)
      .where('listedEverywhereAtMs', 'is', null)
      .execute();
    await this.#db
      .updateTable('derivedKey')
      .set({ revokedEverywhereAtMs: nowMs })
      .where('siteId', '=', siteId)
      .where('revokedRevision', 'is not', null)
      .where('revokedRevision', '<=', revision)
      .where('revokedEverywhereAtMs', 'is', null)
      .execute();
  }

  /** Revocations that have not ended and that some target may not have yet, or that were held everywhere lately. */
  revokedKeys(siteId: string, nowSeconds: number, limit: number): Promise<readonly RowOf<'derivedKey'>[]> {
    return this.#db
      .selectFrom('derivedKey')
      .selectAll()
      .where('siteId', '=', siteId)
      .where('status', '=', 'revoked')
      .where('expiresAtSeconds', '>', nowSeconds)
      .orderBy('revokedAtMs', 'desc')
      .limit(limit)
      .execute();
  }
}
