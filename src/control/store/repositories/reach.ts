/** Query conditions that limit lists to a reader's reach, so that pages are full and reveal nothing else. */
import { type Expression, expressionBuilder, type SqlBool } from 'kysely';
import type { Reach } from '../../domain/roles.ts';
import type { Tables } from '../tables.ts';

type Below = Extract<Reach, { readonly kind: 'below' }>;

/** Adds an ID that never occurs, because PostgreSQL does not accept an empty list. */
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

/** Whether a row's scope lies within reach. Role grants and access tokens use the same column names. */
export function scopeWithin(reach: Below): Expression<SqlBool> {
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
export function eventWithin(reach: Below): Expression<SqlBool> {
  const is = expressionBuilder<Tables, 'auditEvent'>();
  const uids = is.selectFrom('site').select('site.uid').where('site.id', 'in', listed(reach.siteIds));
  return is.or([
    is('environmentId', 'in', listed(reach.environmentIds)),
    is('fleetId', 'in', listed(reach.fleetIds)),
    is('siteUid', 'in', uids),
  ]);
}
