import type { Insertable, Updateable } from 'kysely';
import type { Tables } from '../tables.ts';
import type { Database } from '../transaction.ts';
import { expectUpdated, type Page, type RowOf } from './records.ts';

/** Derived keys; public keys and subjects that are refused for ever. */
export class Keys {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  async add(row: Insertable<Tables['derivedKey']>): Promise<void> {
    await this.#db.insertInto('derivedKey').values(row).execute();
  }

  key(keyId: string): Promise<RowOf<'derivedKey'> | undefined> {
    return this.#db.selectFrom('derivedKey').selectAll().where('keyId', '=', keyId).executeTakeFirst();
  }

  /** Writes over exactly the version that was read. @throws VersionConflictError */
  async change(
    row: Pick<RowOf<'derivedKey'>, 'keyId' | 'version'>,
    set: Updateable<Tables['derivedKey']>,
    nowMs: number,
  ): Promise<void> {
    const next = { ...set, version: row.version + 1, updatedAtMs: nowMs };
    expectUpdated(
      await this.#db
        .updateTable('derivedKey')
        .set(next)
        .where('keyId', '=', row.keyId)
        .where('version', '=', row.version)
        .executeTakeFirstOrThrow(),
    );
  }

  ofSite(siteId: string, page: Page): Promise<readonly RowOf<'derivedKey'>[]> {
    let query = this.#db.selectFrom('derivedKey').selectAll().where('siteId', '=', siteId);
    if (page.after !== undefined) query = query.where('keyId', '>', page.after);
    return query.orderBy('keyId').limit(page.limit).execute();
  }

  /** Every living key ID with this public key. */
  livingWithThumbprint(
    siteId: string,
    thumbprint: string,
    nowSeconds: number,
  ): Promise<readonly RowOf<'derivedKey'>[]> {
    return this.#db
      .selectFrom('derivedKey')
      .selectAll()
      .where('siteId', '=', siteId)
      .where('thumbprint', '=', thumbprint)
      .where('status', '=', 'active')
      .where('expiresAtSeconds', '>', nowSeconds)
      .execute();
  }

  livingOfSource(sourceId: string, nowSeconds: number): Promise<readonly RowOf<'derivedKey'>[]> {
    return this.#db
      .selectFrom('derivedKey')
      .selectAll()
      .where('sourceId', '=', sourceId)
      .where('status', '=', 'active')
      .where('expiresAtSeconds', '>', nowSeconds)
      .execute();
  }

  /** What a bundle lists, a page at a time: active and not ended. */
  livingOfSite(siteId: string, nowSeconds: number, page: Page): Promise<readonly RowOf<'derivedKey'>[]> {
    let query = this.#db
      .selectFrom('derivedKey')
      .selectAll()
      .where('siteId', '=', siteId)
      .where('status', '=', 'active')
      .where('expiresAtSeconds', '>', nowSeconds);
    if (page.after !== undefined) query = query.where('keyId', '>', page.after);
    return query.orderBy('keyId').limit(page.limit).execute();
  }

  async hasLivingOfClient(siteId: string, clientId: string, nowSeconds: number): Promise<boolean> {
    const row = await this.#db
      .selectFrom('derivedKey')
      .select('keyId')
      .where('siteId', '=', siteId)
      .where('clientId', '=', clientId)
      .where('status', '=', 'active')
      .where('expiresAtSeconds', '>', nowSeconds)
      .limit(1)
      .executeTakeFirst();
    return row !== undefined;
  }

  many(keyIds: readonly string[]): Promise<readonly RowOf<'derivedKey'>[]> {
    if (keyIds.length === 0) return Promise.resolve([]);
    return this.#db
      .selectFrom('derivedKey')
      .selectAll()
      .where('keyId', 'in', [...keyIds])
      .execute();
  }

  /** Publishing notes revisions without making another version of the key. */
  async noteRevision(
    keyIds: readonly string[],
    set: Pick<Updateable<Tables['derivedKey']>, 'listedRevision' | 'revokedRevision'>,
  ): Promise<void> {
    if (keyIds.length === 0) return;
    await this.#db
      .updateTable('derivedKey')
      .set(set)
      .where('keyId', 'in', [...keyIds])
      .execute();
  }

  /** Keys that ended, or were revoked and would have ended, before the moment. @returns how many */
  async prune(endedBeforeSeconds: number): Promise<number> {
    const { numDeletedRows } = await this.#db
      .deleteFrom('derivedKey')
      .where('expiresAtSeconds', '<', endedBeforeSeconds)
      .executeTakeFirstOrThrow();
    return Number(numDeletedRows);
  }

  async refusePublicKey(siteId: string, thumbprint: string, nowMs: number): Promise<void> {
    await this.#db
      .insertInto('revokedPublicKey')
      .values({ siteId, thumbprint, revokedAtMs: nowMs })
      .onConflict((conflict) => conflict.columns(['siteId', 'thumbprint']).doNothing())
      .execute();
  }

  async publicKeyWasRevoked(siteId: string, thumbprint: string): Promise<boolean> {
    const row = await this.#db
      .selectFrom('revokedPublicKey')
      .select('thumbprint')
      .where('siteId', '=', siteId)
      .where('thumbprint', '=', thumbprint)
      .executeTakeFirst();
    return row !== undefined;
  }

  async blockSubject(row: Insertable<Tables['blockedSubject']>): Promise<void> {
    await this.#db
      .insertInto('blockedSubject')
      .values(row)
      .onConflict((conflict) => conflict.columns(['siteId', 'issuer', 'subject']).doNothing())
      .execute();
  }

  async unblockSubject(siteId: string, issuer: string, subject: string): Promise<boolean> {
    const { numDeletedRows } = await this.#db
      .deleteFrom('blockedSubject')
      .where('siteId', '=', siteId)
      .where('issuer', '=', issuer)
      .where('subject', '=', subject)
      .executeTakeFirstOrThrow();
    return numDeletedRows > 0n;
  }

  async subjectIsBlocked(siteId: string, issuer: string, subject: string): Promise<boolean> {
    const row = await this.#db
      .selectFrom('blockedSubject')
      .select('subject')
      .where('siteId', '=', siteId)
      .where('issuer', '=', issuer)
      .where('subject', '=', subject)
      .executeTakeFirst();
    return row !== undefined;
  }

  blockedSubjects(siteId: string): Promise<readonly RowOf<'blockedSubject'>[]> {
    return this.#db
      .selectFrom('blockedSubject')
      .selectAll()
      .where('siteId', '=', siteId)
      .orderBy('issuer')
      .orderBy('subject')
      .execute();
  }
}
