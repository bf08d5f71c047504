import type { Insertable, Updateable } from 'kysely';
import { newId } from '../../domain/resource-identifiers.ts';
import type { Reach, ScopePath } from '../../domain/roles.ts';
import { type IndexRange, type RangedPage, rangedPage } from './ranged-list.ts';
import { type Below, distinct, placeOfScopeRow } from './reached.ts';
import type { Page, RowOf } from './records.ts';
import { Repository } from './repository.ts';
import type { Tables } from './tables.ts';
import { VersionedTable } from './versioned-table.ts';

const BY_ID = { orderedBy: 'id', direction: 'asc' } as const;

/** The hierarchy of environments, fleets and Auth Sites, and which of them a reach covers. */
export class Hierarchy extends Repository {
  /** Places of sites that this transaction has looked up. A site never moves. */
  readonly #places = new Map<string, ScopePath>();

  /** Environments within reach. */
  reachedEnvironments(reach: Reach, page: Page, name?: string): Promise<RangedPage<RowOf<'environment'>>> {
    const whole = reach.kind === 'below' ? distinct(reach).environmentIds.map((id) => ({ id })) : [{}];
    return rangedPage(this.db, { table: 'environment', ...BY_ID, whole, filter: { name }, ...page });
  }

  /** Sites within reach, at any level. */
  reachedSites(reach: Reach, page: Page): Promise<readonly RowOf<'site'>[]> {
    const whole = reach.kind === 'below' ? rangesOfSites(reach) : [{}];
    return rangedPage(this.db, { table: 'site', ...BY_ID, whole, ...page });
  }

  hasIssuerUrl(issuerUrl: string): Promise<boolean> {
    return this.has('site', { issuerUrl });
  }

  /** Origins of every site but this one. */
  async otherSites(
    siteId: string,
  ): Promise<readonly { readonly id: string; readonly origins: readonly string[] }[]> {
    const rows = await this.db
      .selectFrom('site')
      .select(['id', 'origins'])
      .where('id', '!=', siteId)
      .execute();
    return rows.map(({ id, origins }) => ({ id, origins: JSON.parse(origins) }));
  }

  /** Definitions of routes of these sites, as JSON, that have the text. */
  async routesWith(siteIds: readonly string[], text: string): Promise<readonly string[]> {
    const rows = await this.db
      .selectFrom('route')
      .select('definition')
      .where('siteId', 'in', siteIds)
      .where('definition', 'like', `%${text}%`)
      .execute();
    return rows.map(({ definition }) => definition);
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
      | 'revision'
      | 'head'
      | 'baseRevision'
      | 'floorRevision'
      | 'wholeNeeded'
      | 'blockedPublished'
      | 'observations'
      | 'acceptedProofs'
    >,
  ): Promise<void> {
    await this.update('site', { id: siteId }, set);
  }
}

function rangesOfSites(reach: Below): readonly IndexRange<'site'>[] {
  const { environmentIds, fleetIds, siteIds } = distinct(reach);
  return [
    ...environmentIds.map((environmentId) => ({ environmentId })),
    ...fleetIds.map((fleetId) => ({ fleetId })),
    ...siteIds.map((id) => ({ id })),
  ];
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
  'oauthIssuer',
  'blockedSubject',
  'blockedCaller',
  'audience',
  'decisionSummary',
  'target',
  'signingKey',
] as const;

/** Auth Sites. */
export class Sites extends VersionedTable<'site'> {
  override async add(row: Omit<Insertable<Tables['site']>, 'environmentId' | 'uid'>): Promise<void> {
    const { environmentId } = await placeOfScopeRow(this.db, { kind: 'fleet', id: row.fleetId });
    await super.add({ ...row, environmentId, uid: newId('siteUid', row.createdAtMs) });
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
