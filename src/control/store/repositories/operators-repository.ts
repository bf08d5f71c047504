import type { Insertable } from 'kysely';
import type { Reach, Scope } from '../../domain/roles.ts';
import type { Database } from '../database.ts';
import type { Tables } from '../tables.ts';
import { scopeWithin } from './hierarchy-repository.ts';
import type { Page, RowOf } from './records.ts';

/** Role grants, tokens, sessions, sign-ins and idempotent responses. */
export class Operators {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  async addGrant(row: Insertable<Tables['roleGrant']>): Promise<void> {
    await this.#db.insertInto('roleGrant').values(row).execute();
  }

  grant(id: string): Promise<RowOf<'roleGrant'> | undefined> {
    return this.#db.selectFrom('roleGrant').selectAll().where('id', '=', id).executeTakeFirst();
  }

  async removeGrant(id: string): Promise<boolean> {
    const { numDeletedRows } = await this.#db
      .deleteFrom('roleGrant')
      .where('id', '=', id)
      .executeTakeFirstOrThrow();
    return numDeletedRows > 0n;
  }

  grants(page: Page): Promise<readonly RowOf<'roleGrant'>[]> {
    let query = this.#db.selectFrom('roleGrant').selectAll();
    if (page.after !== undefined) query = query.where('id', '>', page.after);
    return query.orderBy('id').limit(page.limit).execute();
  }

  /** Grants at scopes within reach. */
  reachedGrants(reach: Reach, page: Page): Promise<readonly RowOf<'roleGrant'>[]> {
    let query = this.#db.selectFrom('roleGrant').selectAll();
    if (reach.kind === 'below') query = query.where(scopeWithin(reach));
    if (page.after !== undefined) query = query.where('id', '>', page.after);
    return query.orderBy('id').limit(page.limit).execute();
  }

  /** Whether an identical grant exists. */
  async hasGrant(grant: Pick<RowOf<'roleGrant'>, 'principal' | 'role' | 'scopeKind' | 'scopeId'>) {
    const row = await this.#db
      .selectFrom('roleGrant')
      .select('id')
      .where('principal', '=', grant.principal)
      .where('role', '=', grant.role)
      .where('scopeKind', '=', grant.scopeKind)
      .where('scopeId', '=', grant.scopeId)
      .executeTakeFirst();
    return row !== undefined;
  }

  /** Whether any grant or token exists at exactly this scope. */
  async isScopeHeld({ kind, id }: Scope): Promise<boolean> {
    for (const table of ['roleGrant', 'accessToken'] as const) {
      const row = await this.#db
        .selectFrom(table)
        .select('id')
        .where('scopeKind', '=', kind)
        .where('scopeId', '=', id)
        .limit(1)
        .executeTakeFirst();
      if (row !== undefined) return true;
    }
    return false;
  }

  grantsOf(principals: readonly string[]): Promise<readonly RowOf<'roleGrant'>[]> {
    if (principals.length === 0) return Promise.resolve([]);
    return this.#db
      .selectFrom('roleGrant')
      .selectAll()
      .where('principal', 'in', [...principals])
      .execute();
  }

  tokenByHash(tokenHash: string): Promise<RowOf<'accessToken'> | undefined> {
    return this.#db
      .selectFrom('accessToken')
      .selectAll()
      .where('tokenHash', '=', tokenHash)
      .executeTakeFirst();
  }

  /** Ignores deleted tokens and leaves the version unchanged. @param used milliseconds by token ID */
  async noteTokensUsed(used: ReadonlyMap<string, number>): Promise<void> {
    for (const [id, lastUsedAtMs] of used) {
      await this.#db.updateTable('accessToken').set({ lastUsedAtMs }).where('id', '=', id).execute();
    }
  }

  /** Tokens at scopes within reach. */
  reachedTokens(reach: Reach, page: Page): Promise<readonly RowOf<'accessToken'>[]> {
    let query = this.#db.selectFrom('accessToken').selectAll();
    if (reach.kind === 'below') query = query.where(scopeWithin(reach));
    if (page.after !== undefined) query = query.where('id', '>', page.after);
    return query.orderBy('id').limit(page.limit).execute();
  }

  async addSession(row: Insertable<Tables['operatorSession']>): Promise<void> {
    await this.#db.insertInto('operatorSession').values(row).execute();
  }

  session(tokenHash: string): Promise<RowOf<'operatorSession'> | undefined> {
    return this.#db
      .selectFrom('operatorSession')
      .selectAll()
      .where('tokenHash', '=', tokenHash)
      .executeTakeFirst();
  }

  async removeSession(tokenHash: string): Promise<boolean> {
    const { numDeletedRows } = await this.#db
      .deleteFrom('operatorSession')
      .where('tokenHash', '=', tokenHash)
      .executeTakeFirstOrThrow();
    return numDeletedRows > 0n;
  }

  async addSignIn(row: Insertable<Tables['signIn']>): Promise<void> {
    await this.#db.insertInto('signIn').values(row).execute();
  }

  /** Removes and returns it, so that a sign-in step works once. */
  async takeSignIn(stateHash: string): Promise<RowOf<'signIn'> | undefined> {
    return this.#db.deleteFrom('signIn').where('stateHash', '=', stateHash).returningAll().executeTakeFirst();
  }

  async pruneSessions(nowMs: number): Promise<void> {
    await this.#db.deleteFrom('operatorSession').where('expiresAtMs', '<', nowMs).execute();
    await this.#db.deleteFrom('signIn').where('expiresAtMs', '<', nowMs).execute();
  }

  async bootstrapTokenHash(): Promise<string | undefined> {
    const row = await this.#db.selectFrom('installation').select('bootstrapTokenHash').executeTakeFirst();
    return row?.bootstrapTokenHash ?? undefined;
  }

  async keptMasterKeyId(): Promise<string | undefined> {
    const row = await this.#db.selectFrom('installation').select('masterKeyId').executeTakeFirst();
    return row?.masterKeyId ?? undefined;
  }

  /**
   * Registers the ID of the master key that seals this database's secrets; the first one registered stays.
   * @returns the stored ID
   */
  async masterKeyId(candidate: string): Promise<string> {
    await this.#db
      .updateTable('installation')
      .set({ masterKeyId: candidate })
      .where('masterKeyId', 'is', null)
      .execute();
    const row = await this.#db.selectFrom('installation').select('masterKeyId').executeTakeFirstOrThrow();
    return row.masterKeyId ?? candidate;
  }

  async setBootstrapTokenHash(bootstrapTokenHash: string | null): Promise<void> {
    await this.#db.updateTable('installation').set({ bootstrapTokenHash }).execute();
  }

  answered(actor: string, key: string): Promise<RowOf<'idempotency'> | undefined> {
    return this.#db
      .selectFrom('idempotency')
      .selectAll()
      .where('actor', '=', actor)
      .where('key', '=', key)
      .executeTakeFirst();
  }

  async keepAnswer(row: Insertable<Tables['idempotency']>): Promise<void> {
    await this.#db.insertInto('idempotency').values(row).execute();
  }

  async pruneAnswers(beforeMs: number): Promise<void> {
    await this.#db.deleteFrom('idempotency').where('createdAtMs', '<', beforeMs).execute();
  }
}
