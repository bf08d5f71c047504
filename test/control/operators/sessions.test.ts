/** Tests the permissions and the lifetime of a session. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { type ApiCall, callApi } from '../../support/control/control-program.ts';
import { OperatorFixture } from '../../support/control/operators-fixture.ts';
import type { Browser, Page } from '../../support/harness/browser.ts';

const SESSION_COOKIE = '__Host-proofgate_session';
const HOURS = 3_600_000;

let fixture: OperatorFixture;
let browser: Browser;
let admin = '';

beforeAll(async () => {
  fixture = await OperatorFixture.start();
  admin = await fixture.bootstrapToken();
  fixture.provider.accounts.set('ada', { name: 'Ada', groups: ['platform', 'oncall'] });
  fixture.provider.accounts.set('eve', { name: 'Eve', groups: ['platform-guests'] });
});
afterAll(() => fixture.close());
beforeEach(() => {
  browser = fixture.browser();
  fixture.aheadMs = 0;
});

function api(call: ApiCall) {
  return callApi(fixture.url, { ca: fixture.ca, ...call });
}

function sessionPage(): Promise<Page> {
  return browser.visit(`${fixture.url}/v1/session`, {
    method: 'GET',
    headers: { accept: 'application/json' },
  });
}

/** A change that an admin may make, sent from our own origin unless `headers` says otherwise. */
function makeEnvironment(name: string, headers: { readonly [name: string]: string } = {}) {
  const cookie = `${SESSION_COOKIE}=${browser.cookie(fixture.url, SESSION_COOKIE)}`;
  return api({ method: 'POST', path: '/v1/environments', body: { name }, headers: { cookie, ...headers } });
}

async function grant(principal: string, role: string): Promise<string> {
  const scope = { kind: 'installation' };
  const body = { principal, role, scope };
  const answer = await api({ method: 'POST', path: '/v1/role-grants', token: admin, body });
  expect({ status: answer.status, body: answer.body }).toMatchObject({ status: 201 });
  return String(answer.body.role_grant_id);
}

async function withdraw(grantId: string): Promise<void> {
  const answer = await api({ method: 'DELETE', path: `/v1/role-grants/${grantId}`, token: admin });
  expect(answer.status).toBe(204);
}

async function rolesNow(): Promise<readonly string[]> {
  const page = await sessionPage();
  expect(page.status).toBe(200);
  const { roles } = JSON.parse(page.body) as { roles: { role: string; scope: { kind: string } }[] };
  return roles.map(({ role, scope }) => `${role}@${scope.kind}`).sort();
}

describe('roles', () => {
  test('come from grants to the operator and to each group, and go with them at once', async () => {
    await fixture.signIn(browser, 'ada');
    expect(await rolesNow()).toEqual([]);
    const own = await grant(`oidc:${fixture.provider.issuer}|ada`, 'approver');
    const ofGroup = await grant('group:oncall', 'viewer');
    expect(await rolesNow()).toEqual(['approver@installation', 'viewer@installation']);
    await withdraw(own);
    expect(await rolesNow()).toEqual(['viewer@installation']);
    await withdraw(ofGroup);
    expect(await rolesNow()).toEqual([]);
  });

  test('of a group are not those of one with a name that is like it, nor of a subject', async () => {
    const grants = [
      await grant('group:platform', 'admin'),
      await grant(`oidc:${fixture.provider.issuer}|platform-guests`, 'admin'),
      await grant('group:eve', 'admin'),
      await grant('oidc:https://other.example|eve', 'admin'),
    ];
    await fixture.signIn(browser, 'eve');
    expect(await rolesNow()).toEqual([]);
    expect(await makeEnvironment('eves', { origin: fixture.url })).toMatchObject({ status: 403 });
    for (const id of grants) await withdraw(id);
  });

  test('of groups that the provider tells at its userinfo endpoint alone are found there', async () => {
    const other = await OperatorFixture.start('userinfo');
    try {
      other.provider.accounts.set('ada', { name: 'Ada', groups: ['platform'] });
      const scope = { kind: 'installation' };
      const body = { principal: 'group:platform', role: 'viewer', scope };
      const token = await other.bootstrapToken();
      const call = { method: 'POST', path: '/v1/role-grants', token, body, ca: other.ca };
      expect(await callApi(other.url, call)).toMatchObject({ status: 201 });
      const person = other.browser();
      await other.signIn(person, 'ada');
      const page = await person.visit(`${other.url}/v1/session`);
      expect(JSON.parse(page.body)).toMatchObject({
        display_name: 'Ada',
        roles: [{ role: 'viewer', scope }],
      });
      expect(other.provider.requests.get('/me')).toBe(1);
    } finally {
      await other.close();
    }
  });
});

describe('a session', () => {
  test('ends eight hours after it began, however much it is used', async () => {
    await fixture.signIn(browser, 'ada');
    for (const hours of [1, 4, 7.99]) {
      fixture.aheadMs = hours * HOURS;
      expect((await sessionPage()).status).toBe(200);
    }
    fixture.aheadMs = 8 * HOURS + 1000;
    expect(JSON.parse((await sessionPage()).body)).toMatchObject({
      status: 401,
      code: 'authentication_required',
    });
    fixture.aheadMs = 0;
  });

  test('that was ended is invalid, also for a copy of its token', async () => {
    await fixture.signIn(browser, 'ada');
    const token = browser.cookie(fixture.url, SESSION_COOKIE) ?? '';
    const left = await browser.visit(`${fixture.url}/auth/logout`, { method: 'POST' });
    expect(left.status).toBe(204);
    expect(browser.cookie(fixture.url, SESSION_COOKIE)).toBeUndefined();
    expect(await api({ path: '/v1/session', token })).toMatchObject({ status: 401 });
    // Sign-out without a session is no error.
    expect((await browser.visit(`${fixture.url}/auth/logout`, { method: 'POST' })).status).toBe(204);
  });

  test('cannot be ended by a page of another site', async () => {
    await fixture.signIn(browser, 'ada');
    const headers = { origin: 'https://evil.example', 'sec-fetch-site': 'cross-site' };
    const page = await browser.visit(`${fixture.url}/auth/logout`, { method: 'POST', headers });
    expect(page.status).toBe(403);
    expect((await sessionPage()).status).toBe(200);
    // The browser sends a form of another site without the cookie, and would obey an answer that removes it.
    const form = await api({ method: 'POST', path: '/auth/logout', headers });
    expect(form.status).toBe(204);
    expect(form.headers).not.toHaveProperty('set-cookie');
  });

  test('is audited when it begins and ends, without its token', async () => {
    await fixture.signIn(browser, 'ada');
    const token = browser.cookie(fixture.url, SESSION_COOKIE) ?? '';
    await browser.visit(`${fixture.url}/auth/logout`, { method: 'POST' });
    const { body } = await api({ path: '/v1/audit-events?limit=5', token: admin });
    const items = body.items as { kind: string; actor: string; resource: { id: string } }[];
    const [end, start] = items.filter(({ kind }) => kind.startsWith('proofgate.control.session.'));
    expect(start).toMatchObject({
      kind: 'proofgate.control.session.start',
      actor: `oidc:${fixture.provider.issuer}|ada`,
      after: { via: 'browser', groups: ['platform', 'oncall'] },
    });
    expect(end).toMatchObject({ kind: 'proofgate.control.session.end', resource: start?.resource });
    expect(JSON.stringify(items)).not.toContain(token.slice(4));
  });
});

describe('the sessions of all operators', () => {
  interface Shown {
    readonly session_id: string;
    readonly principal: string;
    readonly current: boolean;
  }

  /** @returns the session's token */
  async function signedIn(name: string): Promise<string> {
    const person = fixture.browser();
    await fixture.signIn(person, name);
    return person.cookie(fixture.url, SESSION_COOKIE) ?? '';
  }
  async function listed(token: string, query = ''): Promise<readonly Shown[]> {
    const { body, status } = await api({ path: `/v1/sessions${query}`, token });
    expect(status).toBe(200);
    return body.items as readonly Shown[];
  }
  async function ownId(token: string): Promise<string> {
    return (await listed(token, '?limit=200')).find(({ current }) => current)?.session_id ?? '';
  }
  const end = (token: string, id: string) => api({ method: 'DELETE', path: `/v1/sessions/${id}`, token });
  const principalOf = (name: string) => `oidc:${fixture.provider.issuer}|${name}`;

  test('without a role, one sees and ends one’s own alone', async () => {
    const [here, there, eves] = [await signedIn('ada'), await signedIn('ada'), await signedIn('eve')];
    const own = await listed(here, '?limit=200');
    expect(new Set(own.map(({ principal }) => principal))).toEqual(new Set([principalOf('ada')]));
    expect(own.filter(({ current }) => current)).toHaveLength(1);
    const [id, evesId] = [await ownId(there), await ownId(eves)];
    expect(own.map(({ session_id }) => session_id)).toContain(id);
    for (const method of ['GET', 'DELETE']) {
      for (const unseen of [evesId, 'ses_AAAAAAAAAAAAAAAA', id.slice(0, -1), there]) {
        const path = `/v1/sessions/${unseen}`;
        expect(await api({ method, path, token: here })).toMatchObject({ body: { code: 'not_found' } });
      }
    }
    expect(await end(here, id)).toMatchObject({ status: 204 });
    expect(await api({ path: '/v1/session', token: there })).toMatchObject({ status: 401 });
    expect(await end(here, id)).toMatchObject({ status: 404 });
    for (const token of [here, eves]) {
      expect(await api({ path: '/v1/session', token })).toMatchObject({ status: 200 });
    }
  });

  test('with `read` on the installation one sees all, with `administer` one ends them', async () => {
    const [ada, eve] = [await signedIn('ada'), await signedIn('eve')];
    const id = await ownId(ada);
    const viewer = await grant(principalOf('eve'), 'operator');
    expect(await api({ path: `/v1/sessions/${id}`, token: eve })).toMatchObject({
      status: 200,
      body: { session_id: id, principal: principalOf('ada'), display_name: 'Ada', current: false },
    });
    expect(await end(eve, id)).toMatchObject({ status: 403, body: { code: 'permission_denied' } });
    expect(await api({ path: '/v1/session', token: ada })).toMatchObject({ status: 200 });
    const administrator = await grant(principalOf('eve'), 'admin');
    expect(await end(eve, id)).toMatchObject({ status: 204 });
    expect(await api({ path: '/v1/session', token: ada })).toMatchObject({ status: 401 });
    for (const each of [viewer, administrator]) await withdraw(each);
    const query = `?kind=proofgate.control.session.end&resource_id=${id}`;
    const { body } = await api({ path: `/v1/audit-events${query}`, token: admin });
    expect(body.items).toMatchObject([
      { actor: principalOf('eve'), before: { principal: principalOf('ada') } },
    ]);
  });

  test('all of one operator are ended at once, those of others go on', async () => {
    const adas = [await signedIn('ada'), await signedIn('ada')];
    const eve = await signedIn('eve');
    const path = `/v1/sessions?${new URLSearchParams({ principal: principalOf('ada') })}`;
    expect(await api({ method: 'DELETE', path, token: eve })).toMatchObject({ status: 403 });
    const ended = await api({ method: 'DELETE', path, token: admin });
    expect(ended).toMatchObject({ status: 200 });
    expect(Number(ended.body.ended)).toBeGreaterThanOrEqual(adas.length);
    for (const token of adas)
      expect(await api({ path: '/v1/session', token })).toMatchObject({ status: 401 });
    expect(await api({ path: '/v1/session', token: eve })).toMatchObject({ status: 200 });
    expect(await api({ method: 'DELETE', path, token: admin })).toMatchObject({ body: { ended: 0 } });
    const query = '?kind=proofgate.control.session.end_all';
    const { body } = await api({ path: `/v1/audit-events${query}`, token: admin });
    expect(body.items).toMatchObject([
      { actor: 'bootstrap', resource: { id: principalOf('ada') }, after: { ended: 0 } },
      { after: { ended: ended.body.ended } },
    ]);
    const own = await signedIn('ada');
    expect(await api({ method: 'DELETE', path, token: own })).toMatchObject({ body: { ended: 1 } });
    expect(await api({ path: '/v1/session', token: own })).toMatchObject({ status: 401 });
  });

  test('a role on a site shows no sessions of others', async () => {
    const scope = { kind: 'installation' };
    const made = await makeAccessToken('viewer', scope);
    expect((await listed(made)).length).toBeGreaterThan(0);
    const [ada, eve] = [await signedIn('ada'), await signedIn('eve')];
    const environment = await api({
      ...{ method: 'POST', path: '/v1/environments', token: admin },
      body: { name: 'sessions' },
    });
    const below = { kind: 'environment', id: environment.body.environment_id };
    const body = { principal: principalOf('eve'), role: 'admin', scope: below };
    const granted = await api({ method: 'POST', path: '/v1/role-grants', token: admin, body });
    expect(await end(eve, await ownId(ada))).toMatchObject({ status: 404 });
    expect((await listed(eve)).every(({ principal }) => principal === principalOf('eve'))).toBe(true);
    expect(await listed(await makeAccessToken('admin', below))).toEqual([]);
    await withdraw(String(granted.body.role_grant_id));
  });

  async function makeAccessToken(role: string, scope: object): Promise<string> {
    const body = { name: 'ci', role, scope };
    const answer = await api({ method: 'POST', path: '/v1/access-tokens', token: admin, body });
    return String(answer.body.token);
  }

  test('are listed in pages, without those that are over, and without tokens', async () => {
    const tokens = [await signedIn('ada'), await signedIn('ada'), await signedIn('ada')];
    const ids = await Promise.all(tokens.map(ownId));
    const found: string[] = [];
    let cursor = '';
    do {
      const { body } = await api({ path: `/v1/sessions?limit=1${cursor}`, token: admin });
      found.push(...(body.items as readonly Shown[]).map(({ session_id: id }) => id));
      for (const token of tokens) expect(JSON.stringify(body)).not.toContain(token.slice(4));
      cursor = body.next_cursor === undefined ? '' : `&cursor=${String(body.next_cursor)}`;
    } while (cursor !== '');
    expect(new Set(found).size).toBe(found.length);
    expect(found).toEqual(expect.arrayContaining(ids));
    fixture.aheadMs = 9 * HOURS;
    expect(await listed(admin)).toEqual([]);
    expect(await end(admin, ids[0] ?? '')).toMatchObject({ status: 404 });
  });

  test('a page of another site ends none', async () => {
    await fixture.signIn(browser, 'ada');
    const token = browser.cookie(fixture.url, SESSION_COOKIE) ?? '';
    const headers = { cookie: `${SESSION_COOKIE}=${token}`, origin: 'https://evil.example' };
    const path = `/v1/sessions/${await ownId(token)}`;
    expect(await api({ method: 'DELETE', path, headers })).toMatchObject({
      body: { code: 'origin_forbidden' },
    });
    expect(await api({ path: '/v1/session', token })).toMatchObject({ status: 200 });
  });
});

describe('what changes something', () => {
  let adminGrant = '';

  beforeEach(async () => {
    adminGrant = await grant(`oidc:${fixture.provider.issuer}|ada`, 'admin');
    await fixture.signIn(browser, 'ada');
  });

  afterEach(() => withdraw(adminGrant));

  test('is taken by cookie from our own pages only', async () => {
    const refused: readonly { readonly [name: string]: string }[] = [
      {},
      { origin: 'https://evil.example' },
      { origin: 'null' },
      { origin: fixture.url.replace('https:', 'http:') },
      { origin: `${fixture.url}.evil.example` },
      { 'sec-fetch-site': 'cross-site' },
      { 'sec-fetch-site': 'same-site' },
      { 'sec-fetch-site': 'none' },
      { origin: fixture.url, 'sec-fetch-site': 'cross-site' },
    ];
    for (const headers of refused) {
      expect(await makeEnvironment('forged', headers)).toMatchObject({
        status: 403,
        body: { code: 'origin_forbidden' },
      });
    }
    expect(await makeEnvironment('from-us', { origin: fixture.url })).toMatchObject({ status: 201 });
    expect(await makeEnvironment('from-us-too', { 'sec-fetch-site': 'same-origin' })).toMatchObject({
      status: 201,
    });
  });

  test('needs no page of ours with a bearer token, which no browser sends by itself', async () => {
    const token = browser.cookie(fixture.url, SESSION_COOKIE) ?? '';
    const make = { method: 'POST', path: '/v1/environments', token };
    expect(await api({ ...make, body: { name: 'by-session-token' } })).toMatchObject({ status: 201 });
    // The header takes precedence: a valid cookie does not replace it.
    const cookie = `${SESSION_COOKIE}=${token}`;
    const spoiled = { ...make, token: `${token.slice(0, -1)}~`, headers: { cookie, origin: fixture.url } };
    expect(await api({ ...spoiled, body: { name: 'by-neither' } })).toMatchObject({ status: 401 });
  });
});
