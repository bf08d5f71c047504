/**
 * Calls every route of the app with every role at every scope, and compares the answers with an independent table. A hook
 * after the permission check answers permitted requests, so that they change nothing.
 */

import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { ROLES } from '../../../src/control/contract/vocabulary.ts';
import { INSTALLATION, type Scope } from '../../../src/control/domain/roles.ts';
import {
  type Answer,
  ApiFixture,
  type Asked,
  PUBLIC_ORIGIN,
  TARGET_TOKEN,
  textIn,
} from '../../support/control/api-fixture.ts';
import {
  BODIES,
  type Expected,
  type Level,
  PERMISSION_TABLE,
  QUERIES,
  ROLE_PERMISSIONS,
} from '../../support/control/permission-table.ts';
import {
  clientRow,
  enrollmentRow,
  keyRow,
  policyRow,
  revisionRow,
  sourceRow,
} from '../../support/control/store-rows.ts';
import { registerOtherRoutes } from './every-route.ts';

const ALLOWED = 299;
const PROBE = { 'x-probe': 'permission' };

let fixture: ApiFixture;
/** Values of path parameters. */
let names: { readonly [parameter: string]: string } = {};
/** Scopes of role grants, and the levels that each covers. */
let scopes: readonly { readonly name: string; readonly scope: Scope; readonly covers: readonly Level[] }[] =
  [];

beforeAll(async () => {
  fixture = await ApiFixture.open({
    prepare: (app) => {
      app.addHook('preHandler', async (request, reply) => {
        if (request.headers['x-probe'] === 'permission')
          return reply.code(ALLOWED).serializer(String).send('');
      });
    },
    extend: registerOtherRoutes,
  });
  const inside = await fixture.shop('inside');
  const sibling = await fixture.shop('sibling');
  const fleet = await fixture.expect(201, 'POST', `/v1/environments/${inside.environmentId}/fleets`, {
    body: { name: 'beside' },
  });
  const scope = { kind: 'site', id: inside.siteId };
  const made = {
    target: await fixture.expect(201, 'POST', '/v1/sites/inside/targets', { body: { name: 't' } }),
    grant: await fixture.expect(201, 'POST', '/v1/role-grants', {
      body: { principal: 'group:a', role: 'viewer', scope },
    }),
    token: await fixture.expect(201, 'POST', '/v1/access-tokens', {
      body: { name: 't', role: 'viewer', scope },
    }),
  };
  names = {
    environment_id: inside.environmentId,
    fleet_id: inside.fleetId,
    site_id: inside.siteId,
    target_id: textIn(made.target, 'target_id'),
    role_grant_id: textIn(made.grant, 'role_grant_id'),
    access_token_id: textIn(made.token, 'access_token_id'),
    issuer: encodeURIComponent('https://broker.example'),
    revision: '1',
    file: 'bundle.jws',
    ...(await enrolled(inside.siteId)),
  };
  scopes = [
    { name: 'installation', scope: INSTALLATION, covers: ['installation', 'environment', 'fleet', 'site'] },
    {
      name: 'environment',
      scope: { kind: 'environment', id: inside.environmentId },
      covers: ['environment', 'fleet', 'site'],
    },
    { name: 'fleet', scope: { kind: 'fleet', id: inside.fleetId }, covers: ['fleet', 'site'] },
    { name: 'site', scope: { kind: 'site', id: inside.siteId }, covers: ['site'] },
    { name: 'another environment', scope: { kind: 'environment', id: sibling.environmentId }, covers: [] },
    { name: 'another fleet', scope: { kind: 'fleet', id: textIn(fleet, 'fleet_id') }, covers: [] },
    { name: 'another site', scope: { kind: 'site', id: sibling.siteId }, covers: [] },
    // An ID of another kind matches nothing.
    { name: 'a fleet named as the site', scope: { kind: 'fleet', id: inside.siteId }, covers: [] },
  ];
});
afterAll(() => fixture.close());

/** Creates a source, a policy, an enrollment and a key of the site. */
async function enrolled(siteId: string): Promise<{ readonly [parameter: string]: string }> {
  const source = sourceRow(siteId);
  const policy = policyRow(source, 'billing');
  const enrollment = enrollmentRow(policy);
  const key = keyRow(siteId);
  await fixture.store.writeUnaudited({ kind: 'site', siteId }, async (tx) => {
    await tx.clients.add(clientRow(siteId, 'billing'));
    await tx.sources.add(source);
    await tx.sourceRevisions.add(revisionRow(source, 1));
    await tx.policies.add(policy);
    await tx.enrollments.add(enrollment);
    await tx.keys.add(key);
  });
  return { source_id: source.id, policy_id: policy.id, enrollment_id: enrollment.id, key_id: key.keyId };
}

/** As `METHOD /path`, without HEAD. */
function routesOfApp(): readonly string[] {
  return fixture.routes
    .flatMap(({ method, url }) => [method].flat().map((name) => `${name} ${url}`))
    .filter((route) => !route.startsWith('HEAD '));
}

function ask(route: string, asked: Asked, parameters = names): Promise<Answer> {
  const [method = '', path = ''] = route.split(' ');
  const url = path.replaceAll(/:([a-z_]+)/g, (_, name: string) => parameters[name] ?? 'x');
  const body = BODIES[route];
  return fixture.call(method, url + (QUERIES[route] ?? ''), {
    ...(body === undefined ? {} : { body }),
    ...asked,
    headers: { ...asked.headers, ...PROBE },
  });
}

function wanted(
  expected: Extract<Expected, { kind: 'operator' }>,
  role: string,
  covers: readonly Level[],
): string {
  if (covers.includes(expected.level)) {
    return ROLE_PERMISSIONS[role]?.includes(expected.permission) ? String(ALLOWED) : '403 permission_denied';
  }
  if (expected.level === 'installation') return '403 permission_denied';
  const { status, code } = expected.absent ?? { status: 404, code: 'not_found' };
  return `${status} ${code}`;
}

function outcomeOf({ status, code }: Answer): string {
  return code === undefined ? String(status) : `${status} ${code}`;
}

test('the table has every route, and no other', () => {
  expect([...routesOfApp()].sort()).toEqual(Object.keys(PERMISSION_TABLE).sort());
});

test('HEAD asks for what GET asks', () => {
  const accessOf = (wantedMethod: string, path: string) =>
    fixture.routes.find(({ method, url }) => url === path && [method].flat().includes(wantedMethod))?.config
      ?.access;
  const heads = fixture.routes.filter(({ method }) => [method].flat().includes('HEAD'));
  expect(heads.length).toBeGreaterThan(20);
  for (const { url } of heads) expect(accessOf('HEAD', url)).toBe(accessOf('GET', url));
});

/** Requests that a browser with a session cookie sends for pages that are not the console's. */
const FORGED: readonly { readonly [name: string]: string }[] = [
  { 'sec-fetch-site': 'cross-site', origin: 'https://evil.example' },
  { 'sec-fetch-site': 'same-site', origin: 'https://sibling.shop.example' },
  { 'sec-fetch-site': 'cross-site' },
  { 'sec-fetch-site': 'same-site' },
];
/** Changes only: an older browser, which sends no `Sec-Fetch-Site`. */
const FORGED_CHANGES: typeof FORGED = [
  { 'sec-fetch-site': 'none' },
  { 'sec-fetch-site': 'same-origin', origin: 'https://evil.example' },
  { origin: 'https://evil.example' },
  { origin: 'null' },
  {},
];

/** Changes that anybody may ask for. Three check the origin in their handlers; the exchange needs a secret code. */
test('no other change is public', () => {
  const changes = Object.entries(PERMISSION_TABLE).filter(
    ([route, { kind }]) => kind === 'public' && !route.startsWith('GET '),
  );
  expect(changes.map(([route]) => route)).toEqual([
    'POST /auth/confirm',
    'POST /auth/logout',
    'POST /v1/session/exchange',
    'POST /v1/session/bootstrap',
  ]);
});

describe.each(Object.entries(PERMISSION_TABLE))('%s', (route, expected) => {
  if (expected.kind !== 'public' && expected.kind !== 'workload') {
    test('with a session cookie, for a page of another origin', async () => {
      const cookie = `proofgate_session=${fixture.operator('browser', 'admin', INSTALLATION, 'session')}`;
      const isChange = !route.startsWith('GET ');
      for (const forged of [...FORGED, ...(isChange ? FORGED_CHANGES : [])]) {
        const answer = outcomeOf(await ask(route, { token: '', headers: { cookie, ...forged } }));
        expect([forged, answer]).toEqual([
          forged,
          expected.kind === 'target' ? '401 authentication_required' : '403 origin_forbidden',
        ]);
      }
      const own = { cookie, 'sec-fetch-site': 'same-origin', ...(isChange ? { origin: PUBLIC_ORIGIN } : {}) };
      const answer = outcomeOf(await ask(route, { token: '', headers: own }));
      expect(answer).toBe(expected.kind === 'target' ? '401 authentication_required' : String(ALLOWED));
    });
  }

  test('without a token', async () => {
    const answer = outcomeOf(await ask(route, { token: '' }));
    const isOpen = expected.kind === 'public' || expected.kind === 'workload';
    expect(answer).toBe(isOpen ? String(ALLOWED) : '401 authentication_required');
  });

  if (expected.kind === 'target') {
    test('with a target’s token, and with an operator’s', async () => {
      expect(outcomeOf(await ask(route, { token: TARGET_TOKEN }))).toBe(String(ALLOWED));
      expect(outcomeOf(await ask(route, {}))).toBe('401 authentication_required');
    });
  }
  if (expected.kind === 'signed_in') {
    test('for anybody who is signed in, and for no target', async () => {
      const token = fixture.operator('unknown', 'viewer', { kind: 'site', id: 'nowhere' });
      expect(outcomeOf(await ask(route, { token }))).toBe(String(ALLOWED));
      expect(outcomeOf(await ask(route, { token: TARGET_TOKEN }))).toBe('401 authentication_required');
    });
  }
  if (expected.kind === 'operator' && expected.orWorkload) {
    test('with a workload’s own word', async () => {
      const headers = { authorization: 'Proofgate-Key 1.x' };
      expect(outcomeOf(await ask(route, { token: '', headers }))).toBe(String(ALLOWED));
    });
  }
  if (expected.kind === 'operator') {
    test('for every role at every scope', async () => {
      const differences: string[] = [];
      for (const role of ROLES) {
        for (const { name, scope, covers } of scopes) {
          const token = fixture.operator(`${role} of ${name}`.replaceAll(' ', '-'), role, scope);
          const answer = outcomeOf(await ask(route, { token }));
          const right = wanted(expected, role, covers);
          if (answer !== right) differences.push(`${role} of ${name}: ${answer} instead of ${right}`);
        }
      }
      expect(differences).toEqual([]);
    });
    test('what is not there looks as what one may not read', async () => {
      if (expected.level === 'installation' || expected.absent !== undefined) return;
      const nowhere = Object.fromEntries(
        Object.keys(names).map((name) => [name, name === 'revision' ? '9' : 'nowhere']),
      );
      const outsider = fixture.operator('outsider', 'admin', { kind: 'site', id: 'sibling' });
      const hidden = await ask(route, { token: outsider });
      const absent = await ask(route, { token: outsider }, nowhere);
      const shape = ({ json }: Answer) => ({ ...json, request_id: '' });
      expect(shape(hidden)).toEqual(shape(absent));
      expect(outcomeOf(await ask(route, {}, nowhere))).toBe('404 not_found');
    });
  }
});

test('a role that is granted at a scope of the body is looked for there', async () => {
  const token = fixture.operator('site-admin', 'admin', { kind: 'site', id: 'inside' });
  const viewer = fixture.operator('site-viewer', 'viewer', INSTALLATION);
  const grant = (scope: unknown, asker: string) =>
    fixture.call('POST', '/v1/role-grants', {
      body: { principal: 'group:b', role: 'admin', scope },
      token: asker,
      headers: PROBE,
    });
  expect(outcomeOf(await grant({ kind: 'site', id: 'inside' }, token))).toBe(String(ALLOWED));
  expect(outcomeOf(await grant({ kind: 'site', id: 'sibling' }, token))).toBe('422 scope_invalid');
  expect(outcomeOf(await grant({ kind: 'site', id: 'nowhere' }, token))).toBe('422 scope_invalid');
  expect(outcomeOf(await grant({ kind: 'installation' }, token))).toBe('403 permission_denied');
  expect(outcomeOf(await grant({ kind: 'installation', id: 'x' }, token))).toBe('422 scope_invalid');
  expect(outcomeOf(await grant({ kind: 'site' }, token))).toBe('422 scope_invalid');
  expect(outcomeOf(await grant({ kind: 'site', id: 'inside' }, viewer))).toBe('403 permission_denied');
  const fleet = String(names.fleet_id);
  expect(outcomeOf(await grant({ kind: 'fleet', id: fleet }, token))).toBe('422 scope_invalid');
});

test('a route that declares no access keeps the app from starting', async () => {
  await expect(
    ApiFixture.open({ extend: (app) => void app.get('/v1/forgotten', async () => 'x') }),
  ).rejects.toThrow('GET /v1/forgotten does not declare its access');
});
