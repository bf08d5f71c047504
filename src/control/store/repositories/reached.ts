/** A reader's reach as ranges of indexes, so that a page is full, costs only its length, and reveals nothing else. */
import { type Expression, type SqlBool, sql } from 'kysely';
import type { Reach, Scope, ScopePath } from '../../domain/roles.ts';
import type { IndexRange } from './ranged-list.ts';
import type { Database, Tables } from './tables.ts';

export type Below = Extract<Reach, { readonly kind: 'below' }>;

export interface Reached<T extends keyof Tables> {
  /** Together they contain exactly the rows within reach. */
  readonly ranges: readonly IndexRange<T>[];
  /** Whether a row of another range is within reach. */
  readonly within: Expression<SqlBool>;
}

/** Removes duplicates, because several roles may have the same scope. */
export function distinct({ environmentIds, fleetIds, siteIds }: Below) {
  return {
    environmentIds: [...new Set(environmentIds)],
    fleetIds: [...new Set(fleetIds)],
    siteIds: [...new Set(siteIds)],
  };
}

export function whereAny(conditions: readonly Expression<SqlBool>[]): Expression<SqlBool> {
  return conditions.length === 0
    ? sql<SqlBool>`1 = 0`
    : sql<SqlBool>`(${sql.join([...conditions], sql` or `)})`;
}

/** Ranges of role grants and of access tokens, whose rows have the place of their scope. */
export function rangesOfScopes(
  reach: Reach,
): readonly (IndexRange<'accessToken'> & IndexRange<'roleGrant'>)[] {
  if (reach.kind === 'everything') return [{}];
  const { environmentIds, fleetIds, siteIds } = distinct(reach);
  return [
    ...environmentIds.map((environmentId) => ({ environmentId })),
    ...fleetIds.map((fleetId) => ({ fleetId })),
    ...siteIds.map((scopeId) => ({ scopeKind: 'site' as const, scopeId })),
  ];
}

/** The environment and the fleet of a scope, for the row of a grant or a token. */
export async function placeOfScopeRow(
  db: Database,
  { kind, id }: Scope,
): Promise<{ readonly environmentId: string | null; readonly fleetId: string | null }> {
  const place = await placeOf(db, kind, id);
  return { environmentId: place?.environmentId ?? null, fleetId: place?.fleetId ?? null };
}

async function placeOf(db: Database, kind: Scope['kind'], id: string): Promise<ScopePath | undefined> {
  if (kind === 'installation') return undefined;
  if (kind === 'environment') return { environmentId: id };
  const fleets = db.selectFrom('fleet').select(['fleet.id as fleetId', 'fleet.environmentId']);
  return kind === 'fleet'
    ? fleets.where('fleet.id', '=', id).executeTakeFirst()
    : fleets.innerJoin('site', 'site.fleetId', 'fleet.id').where('site.id', '=', id).executeTakeFirst();
}
