/** Tests every role, permission, scope and place. */

import { describe, expect, it } from '@jest/globals';
import { ROLES, type Role, SCOPE_KINDS } from '../../../src/control/contract/vocabulary.ts';
import {
  type HeldRole,
  INSTALLATION,
  mayDo,
  PERMISSIONS,
  type Permission,
  reachOf,
  type Scope,
  type ScopePath,
} from '../../../src/control/domain/roles.ts';

/** From the design, "Scope, permissions, secrets". */
const HOLDS: { readonly [R in Role]: readonly Permission[] } = {
  viewer: ['read'],
  approver: ['read', 'decide_enrollments'],
  operator: ['read', 'decide_enrollments', 'operate'],
  admin: ['read', 'decide_enrollments', 'operate', 'administer'],
};

/** env_1 contains flt_1 (site-1, site-2) and flt_2 (site-3); env_2 contains flt_3 (site-4). */
const PLACES: { readonly [name: string]: ScopePath } = {
  installation: {},
  env_1: { environmentId: 'env_1' },
  env_2: { environmentId: 'env_2' },
  flt_1: { environmentId: 'env_1', fleetId: 'flt_1' },
  flt_2: { environmentId: 'env_1', fleetId: 'flt_2' },
  flt_3: { environmentId: 'env_2', fleetId: 'flt_3' },
  'site-1': { environmentId: 'env_1', fleetId: 'flt_1', siteId: 'site-1' },
  'site-2': { environmentId: 'env_1', fleetId: 'flt_1', siteId: 'site-2' },
  'site-3': { environmentId: 'env_1', fleetId: 'flt_2', siteId: 'site-3' },
  'site-4': { environmentId: 'env_2', fleetId: 'flt_3', siteId: 'site-4' },
};

const COVERED: readonly (readonly [Scope, readonly string[]])[] = [
  [INSTALLATION, Object.keys(PLACES)],
  [{ kind: 'environment', id: 'env_1' }, ['env_1', 'flt_1', 'flt_2', 'site-1', 'site-2', 'site-3']],
  [{ kind: 'environment', id: 'env_2' }, ['env_2', 'flt_3', 'site-4']],
  [{ kind: 'fleet', id: 'flt_1' }, ['flt_1', 'site-1', 'site-2']],
  [{ kind: 'fleet', id: 'flt_2' }, ['flt_2', 'site-3']],
  [{ kind: 'site', id: 'site-1' }, ['site-1']],
  // An ID of another kind matches nothing, nor does an empty ID.
  [{ kind: 'fleet', id: 'env_1' }, []],
  [{ kind: 'site', id: 'flt_1' }, []],
  [{ kind: 'environment', id: '' }, []],
  [{ kind: 'fleet', id: '' }, []],
  [{ kind: 'site', id: '' }, []],
  [{ kind: 'site', id: 'nowhere' }, []],
];

it('every kind of scope is in the table', () => {
  expect(new Set(COVERED.map(([{ kind }]) => kind))).toEqual(new Set(SCOPE_KINDS));
});

describe.each(ROLES)('%s', (role) => {
  it.each(PERMISSIONS)('%s', (permission) => {
    const holds = HOLDS[role].includes(permission);
    for (const [scope, covered] of COVERED) {
      for (const [name, place] of Object.entries(PLACES)) {
        const expected = holds && covered.includes(name);
        expect([scope, name, mayDo([{ role, scope }], permission, place)]).toEqual([scope, name, expected]);
      }
    }
  });
});

it('roles add up, and nothing of one scope is lent to another', () => {
  const held: readonly HeldRole[] = [
    { role: 'admin', scope: { kind: 'site', id: 'site-1' } },
    { role: 'viewer', scope: { kind: 'environment', id: 'env_1' } },
  ];
  expect(mayDo(held, 'administer', PLACES['site-1'] as ScopePath)).toBe(true);
  expect(mayDo(held, 'administer', PLACES['site-2'] as ScopePath)).toBe(false);
  expect(mayDo(held, 'read', PLACES['site-2'] as ScopePath)).toBe(true);
  expect(mayDo(held, 'read', PLACES['site-4'] as ScopePath)).toBe(false);
  expect(mayDo([], 'read', {})).toBe(false);
});

it('reach is where mayDo allows', () => {
  for (const role of ROLES) {
    for (const permission of PERMISSIONS) {
      for (const [scope] of COVERED) {
        const reach = reachOf([{ role, scope }], permission);
        for (const place of Object.values(PLACES)) {
          const within =
            reach.kind === 'everything' ||
            reach.environmentIds.includes(place.environmentId ?? '-') ||
            reach.fleetIds.includes(place.fleetId ?? '-') ||
            reach.siteIds.includes(place.siteId ?? '-');
          expect(within).toBe(mayDo([{ role, scope }], permission, place));
        }
      }
    }
  }
});
