/** Lists cut down to what somebody may read, inside the query: a page is full, and tells of nothing else. */
import { type Expression, expressionBuilder, type SqlBool } from 'kysely';
import type { Reach } from '../../domain/roles.ts';
import type { Tables } from '../tables.ts';

type Below = Extract<Reach, { readonly kind: 'below' }>;

/** No ID is empty; PostgreSQL takes no empty list. */
const listed = (ids: readonly string[]) => [...ids, ''];

/** IDs of fleets within reach. */
export function reachedFleets(reach: Below) {
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
export function reachedSites(reach: Below) {
  return expressionBuilder<Tables>()
    .selectFrom('site')
    .select('site.id')
    .where((is) =>
      is.or([is('site.id', 'in', listed(reach.siteIds)), is('site.fleetId', 'in', reachedFleets(reach))]),
    );
}

/** Whether a row's scope lies within reach: role grants and access tokens keep it in columns of the same names. */
export function scopeWithin(reach: Below): Expression<SqlBool> {
  const is = expressionBuilder<Tables, 'roleGrant'>();
  return is.or([
    is.and([is('scopeKind', '=', 'environment'), is('scopeId', 'in', listed(reach.environmentIds))]),
    is.and([is('scopeKind', '=', 'fleet'), is('scopeId', 'in', reachedFleets(reach))]),
    is.and([is('scopeKind', '=', 'site'), is('scopeId', 'in', reachedSites(reach))]),
  ]);
}

/**
 * Whether an event's place lies within reach. What happened to the installation is for those who reach all of it, and
 * what happened to a site that is gone for those who reach what it lay in: its identifier may be another site's by now.
 */
export function eventWithin(reach: Below): Expression<SqlBool> {
  const is = expressionBuilder<Tables, 'auditEvent'>();
  const uids = is.selectFrom('site').select('site.uid').where('site.id', 'in', listed(reach.siteIds));
  return is.or([
    is('environmentId', 'in', listed(reach.environmentIds)),
    is('fleetId', 'in', listed(reach.fleetIds)),
    is('siteUid', 'in', uids),
  ]);
}
