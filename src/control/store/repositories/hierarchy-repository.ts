import { type Expression, expressionBuilder, type Insertable, type SqlBool, type Updateable } from 'kysely';
import { newId } from '../../domain/resource-identifiers.ts';
import type { Reach, ScopePath } from '../../domain/roles.ts';
import type { Tables } from '../tables.ts';
import type { Page, RowOf } from './records.ts';
import { Repository } from './repository.ts';
import { VersionedTable } from './versioned-table.ts';

/** The hierarchy of environments, fleets and Auth Sites, and which of them a reach covers. */
export class Hierarchy extends Repository {
  /** Of sites that this transaction has looked up: a site does not move. */
  readonly #places = new Map<string, ScopePath>();

  /** Environments within reach. */
  reachedEnvironments(reach: Reach, page: Page): Promise<readonly RowOf<'environment'>[]> {
    return this.page('environment', {}, 'id', page, environmentWithin(reach));
  }

  /** Sites within reach, at any level. */
  reachedSites(reach: Reach, page: Page): Promise<readonly RowOf<'site'>[]> {
    return this.page('site', {}, 'id', page, siteWithin(reach));
  }

  hasIssuerUrl(issuerUrl: string): Promise<boolean> {
    return this.has('site', { issuerUrl });
  }

  environmentByName(name: string): Promise<RowOf<'environment'> | undefined> {
    return this.row('environment', { name });
  }

  fleetByName(environmentId: string, name: string): Promise<RowOf<'fleet'> | undefined> {
    return this.row('fleet', { environmentId, name });
  }

  /** A site's place with everything above it, for checking roles. */
  async placeOfSite(siteId: string): Promise<ScopePath | undefined> {
    const known = this.#places.get(siteId);
    if (known !== undefined) return known;
    const row = await this.db
      .selectFrom('site')
      .innerJoin('fleet', 'fleet.id', 'site.fleetId')
      .select(['fleet.id as fleetId', 'fleet.environmentId as environmentId'])
      .where('site.id', '=', siteId)
      .executeTakeFirst();
    const place = row && { ...row, siteId };
    if (place !== undefined) this.#places.set(siteId, place);
    return place;
  }

  /**
   * Updates a site's publishing columns without a new version, so that edits by operators do not conflict.
   */
  async advance(
    siteId: string,
    set: Pick<
      Updateable<Tables['site']>,
      'revision' | 'head' | 'baseRevision' | 'floorRevision' | 'wholeNeeded' | 'blockedPublished'
    >,
  ): Promise<void> {
    await this.update('site', { id: siteId }, set);
  }
}

/** Query conditions that limit lists to a reader's reach, so that pages are full and reveal nothing else. */

type Below = Extract<Reach, { readonly kind: 'below' }>;

/** Adds an ID that never occurs, because PostgreSQL does not accept an empty list. */
const listed = (ids: readonly string[]) => [...ids, ''];

/** IDs of fleets within reach. */
function reachedFleets(reach: Below) {
  return expressionBuilder<Tables>()
    .selectFrom('fleet')
    .select('fleet.id')
    .where((is) =>
      is.or([
        is('fleet.id', 'in', listed(reach.fleetIds)),
        is('fleet.environmentId', 'in', listed(reach.environmentIds)),
      ]),
    );
}

/** IDs of sites within reach. */
function reachedSites(reach: Below) {
  return expressionBuilder<Tables>()
    .selectFrom('site')
    .select('site.id')
    .where((is) =>
      is.or([is('site.id', 'in', listed(reach.siteIds)), is('site.fleetId', 'in', reachedFleets(reach))]),
    );
}

/** A condition on rows; undefined when the reach covers everything. */
type Condition = Expression<SqlBool> | undefined;

function environmentWithin(reach: Reach): Condition {
  if (reach.kind !== 'below') return undefined;
  return expressionBuilder<Tables, 'environment'>()('id', 'in', listed(reach.environmentIds));
}

function siteWithin(reach: Reach): Condition {
  if (reach.kind !== 'below') return undefined;
  return expressionBuilder<Tables, 'site'>()('id', 'in', reachedSites(reach));
}

/** Whether a row's scope lies within reach. Role grants and access tokens use the same column names. */
export function scopeWithin(reach: Reach): Condition {
  if (reach.kind !== 'below') return undefined;
  const is = expressionBuilder<Tables, 'roleGrant'>();
  return is.or([
    is.and([is('scopeKind', '=', 'environment'), is('scopeId', 'in', listed(reach.environmentIds))]),
    is.and([is('scopeKind', '=', 'fleet'), is('scopeId', 'in', reachedFleets(reach))]),
    is.and([is('scopeKind', '=', 'site'), is('scopeId', 'in', reachedSites(reach))]),
  ]);
}

/**
 * Whether an event's place lies within reach. Events of the installation require reach of all of it. Events of a deleted
 * site require reach of what it was in, because another site may use its identifier now.
 */
export function eventWithin(reach: Reach): Condition {
  if (reach.kind !== 'below') return undefined;
  const is = expressionBuilder<Tables, 'auditEvent'>();
  const uids = is.selectFrom('site').select('site.uid').where('site.id', 'in', listed(reach.siteIds));
  return is.or([
    is('environmentId', 'in', listed(reach.environmentIds)),
    is('fleetId', 'in', listed(reach.fleetIds)),
    is('siteUid', 'in', uids),
  ]);
}

/** Tables with a site's data, ordered so that deletion never breaks a reference. */
const OF_SITE = [
  'freshness',
  'bundleStep',
  'bundleFile',
  'bundleBlob',
  'siteChange',
  'challenge',
  'derivedKey',
  'enrollment',
  'enrollmentPolicy',
  'sourceRevision',
  'source',
  'clientGrant',
  'client',
  'routeSources',
  'route',
  'broker',
  'blockedSubject',
  'blockedCaller',
  'audience',
  'target',
  'signingKey',
] as const;

/** Auth Sites. */
export class Sites extends VersionedTable<'site'> {
  override add(row: Omit<Insertable<Tables['site']>, 'uid'>): Promise<void> {
    return super.add({ ...row, uid: newId('siteUid', row.createdAtMs) });
  }

  /** Also removes everything that belongs to the site, except the audit trail and revoked public keys. */
  override async remove(id: string): Promise<boolean> {
    await this.db
      .deleteFrom('keySet')
      .where('sourceId', 'in', (of) => of.selectFrom('source').select('id').where('siteId', '=', id))
      .execute();
    for (const table of OF_SITE) await this.db.deleteFrom(table).where('siteId', '=', id).execute();
    return super.remove(id);
  }
}
