import { type Expression, type Insertable, type SqlBool, sql, type Updateable } from 'kysely';
import type { KeyState } from '../../contract/vocabulary.ts';
import { type RangedPage, rangedPage } from './ranged-list.ts';
import { inParts, type Page, type RowOf } from './records.ts';
import type { Tables } from './tables.ts';
import { VersionedTable } from './versioned-table.ts';

export interface KeyFilter {
  readonly clientId?: string | undefined;
  /** State at this time: an ended key is expired unless it was revoked. */
  readonly state?: { readonly status: KeyState; readonly nowSeconds: number } | undefined;
  /** Part of the verified subject. */
  readonly subject?: string | undefined;
  readonly thumbprint?: string | undefined;
}

/** Both databases compare case here; they differ in LIKE. */
function containing(subject: string | undefined): readonly Expression<SqlBool>[] {
  if (subject === undefined) return [];
  const column = sql.ref('verifiedSubject');
  return [sql<SqlBool>`${column} != replace(${column}, ${subject}, '')`];
}

/** The sum prevents the use of an index on the column. */
function endingAsOf(state: KeyFilter['state']): readonly Expression<SqlBool>[] {
  if (state === undefined || state.status === 'revoked') return [];
  const end = sql`${sql.ref('expiresAtSeconds')} + 0`;
  const { nowSeconds } = state;
  return [
    state.status === 'active' ? sql<SqlBool>`${end} > ${nowSeconds}` : sql<SqlBool>`${end} <= ${nowSeconds}`,
  ];
}

/** Derived keys, revoked public keys and blocked subjects. */
export class Keys extends VersionedTable<'derivedKey'> {
  ofSite(
    siteId: string,
    page: Page,
    { clientId, state, subject, thumbprint }: KeyFilter = {},
  ): Promise<RangedPage<RowOf<'derivedKey'>>> {
    const status = state && (state.status === 'revoked' ? ('revoked' as const) : ('active' as const));
    return rangedPage(this.db, {
      table: 'derivedKey',
      orderedBy: 'keyId',
      direction: 'asc',
      whole: [{ siteId }],
      shortcuts: [
        ...(thumbprint === undefined ? [] : [{ siteId, thumbprint }]),
        ...(clientId === undefined ? [] : [{ siteId, clientId }]),
        ...(status === undefined ? [] : [{ siteId, status }]),
      ],
      filter: { clientId, thumbprint, status },
      conditions: [...containing(subject), ...endingAsOf(state)],
      ...page,
    });
  }

  /** Every living key ID with this public key. */
  livingWithThumbprint(
    siteId: string,
    thumbprint: string,
    nowSeconds: number,
  ): Promise<readonly RowOf<'derivedKey'>[]> {
    return this.db
      .selectFrom('derivedKey')
      .selectAll()
      .where('siteId', '=', siteId)
      .where('thumbprint', '=', thumbprint)
      .where('status', '=', 'active')
      .where('expiresAtSeconds', '>', nowSeconds)
      .execute();
  }

  /**
   * Revokes every living key ID of every public key that the source has enrolled, rejects those public keys permanently, and
   * records the changes for publishing. Uses a fixed number of statements, whatever the number of keys.
   * @returns the number of key IDs
   */
  async revokeLivingOfSource(
    siteId: string,
    sourceId: string,
    revocation: Pick<RowOf<'derivedKey'>, 'revokedBy' | 'revokedReason'> & { readonly nowMs: number },
  ): Promise<number> {
    const { nowMs, ...by } = revocation;
    const nowSeconds = Math.floor(nowMs / 1000);
    const living = this.db
      .selectFrom('derivedKey')
      .where('siteId', '=', siteId)
      .where('status', '=', 'active')
      .where('expiresAtSeconds', '>', nowSeconds);
    const publicKeys = living.select('thumbprint').where('sourceId', '=', sourceId);
    await this.db
      .insertInto('revokedPublicKey')
      .columns(['siteId', 'thumbprint', 'revokedAtMs'])
      .expression(
        publicKeys
          .clearSelect()
          .distinct()
          .select(({ ref, val, cast }) => [
            ref('siteId').as('siteId'),
            ref('thumbprint').as('thumbprint'),
            cast<number>(val(nowMs), 'bigint').as('revokedAtMs'),
          ]),
      )
      .onConflict((conflict) => conflict.columns(['siteId', 'thumbprint']).doNothing())
      .execute();
    await this.db
      .insertInto('siteChange')
      .columns(['siteId', 'kind', 'reference', 'createdAtMs'])
      .expression(
        living
          .where('thumbprint', 'in', publicKeys)
          .select(({ ref, val, cast }) => [
            ref('siteId').as('siteId'),
            cast<'key'>(val('key'), 'text').as('kind'),
            ref('keyId').as('reference'),
            cast<number>(val(nowMs), 'bigint').as('createdAtMs'),
          ]),
      )
      .execute();
    const { numUpdatedRows } = await this.db
      .updateTable('derivedKey')
      .set(({ eb }) => ({
        status: 'revoked',
        revokedAtMs: nowMs,
        ...by,
        version: eb('version', '+', 1),
        updatedAtMs: nowMs,
      }))
      .where('siteId', '=', siteId)
      .where('status', '=', 'active')
      .where('expiresAtSeconds', '>', nowSeconds)
      .where('thumbprint', 'in', publicKeys)
      .executeTakeFirstOrThrow();
    return Number(numUpdatedRows);
  }

  /** One page of the keys that a bundle lists: active and not ended. */
  livingOfSite(siteId: string, nowSeconds: number, page: Page): Promise<readonly RowOf<'derivedKey'>[]> {
    let query = this.db
      .selectFrom('derivedKey')
      .selectAll()
      .where('siteId', '=', siteId)
      .where('status', '=', 'active')
      .where('expiresAtSeconds', '>', nowSeconds);
    if (page.after !== undefined) query = query.where('keyId', '>', page.after);
    return query.orderBy('keyId').limit(page.limit).execute();
  }

  /** The first of the clients that has a living key. */
  async findLivingOfClients(
    siteId: string,
    clientIds: readonly string[],
    nowSeconds: number,
  ): Promise<string | undefined> {
    for (const part of inParts(clientIds)) {
      const row = await this.db
        .selectFrom('derivedKey')
        .select('clientId')
        .where('siteId', '=', siteId)
        .where('clientId', 'in', part)
        .where('status', '=', 'active')
        .where('expiresAtSeconds', '>', nowSeconds)
        .limit(1)
        .executeTakeFirst();
      if (row !== undefined) return row.clientId;
    }
    return undefined;
  }

  /** Records published revisions without a new version of the key. */
  async noteRevision(
    keyIds: readonly string[],
    set: Pick<Updateable<Tables['derivedKey']>, 'listedRevision' | 'revokedRevision'>,
  ): Promise<void> {
    for (const part of inParts(keyIds)) {
      await this.db.updateTable('derivedKey').set(set).where('keyId', 'in', part).execute();
    }
  }

  /** Removes keys whose actual or planned end is before this time. @returns how many, at most 1000 */
  prune(endedBeforeSeconds: number): Promise<number> {
    return this.pruneBelow('derivedKey', 'keyId', 'expiresAtSeconds', endedBeforeSeconds);
  }

  async rejectPublicKey(siteId: string, thumbprint: string, nowMs: number): Promise<void> {
    await this.db
      .insertInto('revokedPublicKey')
      .values({ siteId, thumbprint, revokedAtMs: nowMs })
      .onConflict((conflict) => conflict.columns(['siteId', 'thumbprint']).doNothing())
      .execute();
  }

  publicKeyWasRevoked(siteId: string, thumbprint: string): Promise<boolean> {
    return this.has('revokedPublicKey', { siteId, thumbprint });
  }

  async blockSubject(row: Insertable<Tables['blockedSubject']>): Promise<void> {
    await this.db
      .insertInto('blockedSubject')
      .values(row)
      .onConflict((conflict) => conflict.columns(['siteId', 'issuer', 'subject']).doNothing())
      .execute();
  }

  unblockSubject(siteId: string, issuer: string, subject: string): Promise<boolean> {
    return this.delete('blockedSubject', { siteId, issuer, subject });
  }

  subjectIsBlocked(siteId: string, issuer: string, subject: string): Promise<boolean> {
    return this.has('blockedSubject', { siteId, issuer, subject });
  }

  /** Ordered by issuer, then subject. */
  blockedSubjects(
    siteId: string,
    page: {
      readonly after: Pick<RowOf<'blockedSubject'>, 'issuer' | 'subject'> | undefined;
      readonly limit: number;
    },
  ): Promise<readonly RowOf<'blockedSubject'>[]> {
    let query = this.db.selectFrom('blockedSubject').selectAll().where('siteId', '=', siteId);
    const { after } = page;
    if (after !== undefined) {
      query = query.where((is) =>
        is(is.refTuple('issuer', 'subject'), '>', is.tuple(after.issuer, after.subject)),
      );
    }
    return query.orderBy('issuer').orderBy('subject').limit(page.limit).execute();
  }
}
