import { type Insertable, type SqlBool, sql } from 'kysely';
import { BOOTSTRAP_ACTOR, type Reach, type Scope } from '../../domain/roles.ts';
import { type RangedPage, rangedPage } from './ranged-list.ts';
import { placeOfScopeRow, rangesOfScopes } from './reached.ts';
import type { Page, RowOf } from './records.ts';
import { Repository } from './repository.ts';
import type { Tables } from './tables.ts';
import { VersionedTable } from './versioned-table.ts';

/** IDs of master keys that the database stores. */
export interface KeptMasterKey {
  /** The key that encrypts. */
  readonly id: string;
  /** The previous key, if there was a rotation. */
  readonly previous: string | undefined;
  /** The previous key, while secrets may still be encrypted with it. */
  readonly replacing: string | undefined;
}

const BY_ID = { orderedBy: 'id', direction: 'asc' } as const;

export class AccessTokenTable extends VersionedTable<'accessToken'> {
  override async add(
    row: Omit<Insertable<Tables['accessToken']>, 'environmentId' | 'fleetId'>,
  ): Promise<void> {
    const place = await placeOfScopeRow(this.db, { kind: row.scopeKind, id: row.scopeId });
    await super.add({ ...row, ...place });
  }
}

/** Role grants, tokens, sessions, sign-ins and idempotent responses. */
export class Operators extends Repository {
  async addGrant(row: Omit<Insertable<Tables['roleGrant']>, 'environmentId' | 'fleetId'>): Promise<void> {
    const place = await placeOfScopeRow(this.db, { kind: row.scopeKind, id: row.scopeId });
    await this.insert('roleGrant', { ...row, ...place });
  }

  grant(id: string): Promise<RowOf<'roleGrant'> | undefined> {
    return this.row('roleGrant', { id });
  }

  removeGrant(id: string): Promise<boolean> {
    return this.delete('roleGrant', { id });
  }

  grants(page: Page): Promise<readonly RowOf<'roleGrant'>[]> {
    return this.page('roleGrant', {}, 'id', page);
  }

  /** Grants at scopes within reach. */
  reachedGrants(reach: Reach, page: Page): Promise<readonly RowOf<'roleGrant'>[]> {
    const whole = rangesOfScopes(reach);
    return rangedPage(this.db, { table: 'roleGrant', ...BY_ID, whole, ...page });
  }

  /** Whether an identical grant exists. */
  hasGrant(grant: Pick<RowOf<'roleGrant'>, 'principal' | 'role' | 'scopeKind' | 'scopeId'>) {
    const { principal, role, scopeKind, scopeId } = grant;
    return this.has('roleGrant', { principal, role, scopeKind, scopeId });
  }

  /** Whether any grant or token exists at exactly this scope. */
  async isScopeHeld({ kind, id }: Scope): Promise<boolean> {
    const scope = { scopeKind: kind, scopeId: id };
    return (await this.has('roleGrant', scope)) || (await this.has('accessToken', scope));
  }

  grantsOf(principals: readonly string[]): Promise<readonly RowOf<'roleGrant'>[]> {
    if (principals.length === 0) return Promise.resolve([]);
    return this.db
      .selectFrom('roleGrant')
      .selectAll()
      .where('principal', 'in', [...principals])
      .execute();
  }

  tokenByHash(tokenHash: string): Promise<RowOf<'accessToken'> | undefined> {
    return this.row('accessToken', { tokenHash });
  }

  /** Ignores deleted tokens and leaves the version unchanged. @param used milliseconds by token ID */
  async noteTokensUsed(used: ReadonlyMap<string, number>): Promise<void> {
    for (const [id, lastUsedAtMs] of used) {
      await this.update('accessToken', { id }, { lastUsedAtMs });
    }
  }

  /** Tokens at scopes within reach. */
  reachedTokens(reach: Reach, page: Page, name?: string): Promise<RangedPage<RowOf<'accessToken'>>> {
    const whole = rangesOfScopes(reach);
    return rangedPage(this.db, { table: 'accessToken', ...BY_ID, whole, filter: { name }, ...page });
  }

  addSession(row: Insertable<Tables['operatorSession']>): Promise<void> {
    return this.insert('operatorSession', row);
  }

  session(tokenHash: string): Promise<RowOf<'operatorSession'> | undefined> {
    return this.row('operatorSession', { tokenHash });
  }

  /** @param prefix beginning of the token's hash. Texts sort by bytes, and `~` sorts after every character of base64url. */
  async sessionByPrefix(prefix: string): Promise<RowOf<'operatorSession'> | undefined> {
    return this.db
      .selectFrom('operatorSession')
      .selectAll()
      .where('tokenHash', '>=', prefix)
      .where('tokenHash', '<', `${prefix}~`)
      .executeTakeFirst();
  }

  /** Living sessions, ordered by the hashes of their tokens; with `principal`, only those of that operator. */
  sessions(
    { principal, nowMs }: { readonly principal: string | undefined; readonly nowMs: number },
    page: Page,
  ): Promise<RangedPage<RowOf<'operatorSession'>>> {
    return rangedPage(this.db, {
      table: 'operatorSession',
      orderedBy: 'tokenHash',
      direction: 'asc',
      whole: [principal === undefined ? {} : { principal }],
      conditions: [sql<SqlBool>`${sql.ref('expiresAtMs')} > ${nowMs}`],
      ...page,
    });
  }

  removeSession(tokenHash: string): Promise<boolean> {
    return this.delete('operatorSession', { tokenHash });
  }

  removeSessionsOf(principal: string): Promise<readonly RowOf<'operatorSession'>[]> {
    return this.db.deleteFrom('operatorSession').where('principal', '=', principal).returningAll().execute();
  }

  addSignIn(row: Insertable<Tables['signIn']>): Promise<void> {
    return this.insert('signIn', row);
  }

  /** Removes and returns the sign-in, so that each step works once. */
  async takeSignIn(stateHash: string): Promise<RowOf<'signIn'> | undefined> {
    return this.db.deleteFrom('signIn').where('stateHash', '=', stateHash).returningAll().executeTakeFirst();
  }

  signIns(page: Page): Promise<readonly RowOf<'signIn'>[]> {
    return this.page('signIn', {}, 'stateHash', page);
  }

  /** Replaces the sealed text, unless the sign-in was taken meanwhile. */
  async resealSignIn(stateHash: string, sealed: string): Promise<void> {
    await this.update('signIn', { stateHash }, { sealed });
  }

  async pruneSessions(nowMs: number): Promise<void> {
    await this.db.deleteFrom('operatorSession').where('expiresAtMs', '<', nowMs).execute();
    await this.db.deleteFrom('signIn').where('expiresAtMs', '<', nowMs).execute();
  }

  async bootstrapTokenHash(): Promise<string | undefined> {
    const row = await this.row('installation', {});
    return row?.bootstrapTokenHash ?? undefined;
  }

  async masterKey(): Promise<KeptMasterKey | undefined> {
    const row = await this.row('installation', {});
    if (row === undefined || row.masterKeyId === null) return undefined;
    const previous = row.previousMasterKeyId ?? undefined;
    return { id: row.masterKeyId, previous, replacing: row.masterKeyRotating === 1 ? previous : undefined };
  }

  /** @returns the master key that the database stores: the first one registered stays */
  async registerMasterKey(id: string): Promise<KeptMasterKey> {
    await this.update('installation', { masterKeyId: null }, { masterKeyId: id });
    return (await this.masterKey()) ?? { id, previous: undefined, replacing: undefined };
  }

  /** Makes the new key the encrypting key. The old one is needed until {@link finishMasterKeyRotation}. */
  async replaceMasterKey(previous: string, id: string): Promise<void> {
    const set = { masterKeyId: id, previousMasterKeyId: previous, masterKeyRotating: 1 } as const;
    await this.update('installation', { masterKeyId: previous }, set);
  }

  async finishMasterKeyRotation(id: string): Promise<void> {
    await this.update('installation', { masterKeyId: id }, { masterKeyRotating: 0 });
  }

  /** Also ends the sessions that the previous token started. */
  async setBootstrapTokenHash(bootstrapTokenHash: string | null): Promise<void> {
    await this.update('installation', {}, { bootstrapTokenHash });
    await this.delete('operatorSession', { principal: BOOTSTRAP_ACTOR });
  }

  answered(actor: string, key: string): Promise<RowOf<'idempotency'> | undefined> {
    return this.row('idempotency', { actor, key });
  }

  keepAnswer(row: Insertable<Tables['idempotency']>): Promise<void> {
    return this.insert('idempotency', row);
  }

  async pruneAnswers(beforeMs: number): Promise<void> {
    await this.db.deleteFrom('idempotency').where('createdAtMs', '<', beforeMs).execute();
  }
}
