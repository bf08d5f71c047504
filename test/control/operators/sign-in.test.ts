/** Tests sign-in with OpenID Connect against a real provider. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { OperatorFixture } from '../../support/control/operators-fixture.ts';
import { newSigningJwk } from '../../support/fakes/oidc-provider.ts';
import { type Browser, formOf, type Page } from '../../support/harness/browser.ts';

const SESSION_COOKIE = '__Host-proofgate_session';
const SIGN_IN_COOKIE = '__Host-proofgate_sign_in';

/** Rejection text with the error code of the OAuth library. */
const NONCE = 'its answer is invalid (OAUTH_JWT_CLAIM_COMPARISON_FAILED)';
const RESPONSE = 'its answer is invalid (OAUTH_INVALID_RESPONSE)';
const CODE = 'it answered invalid_grant';

let fixture: OperatorFixture;
let browser: Browser;

beforeAll(async () => {
  fixture = await OperatorFixture.start();
});
afterAll(() => fixture.close());
beforeEach(() => {
  browser = fixture.browser();
  fixture.aheadMs = 0;
  fixture.provider.publishedKeys = undefined;
  fixture.provider.isDown = false;
});

function api(page: Page): { readonly [member: string]: unknown } {
  return JSON.parse(page.body);
}

/** Requests the problem in the form for programs instead of the page for browsers. */
function visitAsProgram(from: Browser, url: string): Promise<Page> {
  return from.visit(url, { method: 'GET', headers: { accept: 'application/json' } });
}

async function session(from: Browser): Promise<Page> {
  return visitAsProgram(from, `${fixture.url}/v1/session`);
}

describe('signing in', () => {
  test('ends in a session: its cookie is for this host, TLS and no script; who it is comes from the provider', async () => {
    fixture.provider.accounts.set('ada', { name: 'Ada Lovelace', groups: ['platform', 'oncall'] });
    const finished = await fixture.signIn(browser, 'ada', '?return_to=/console/sites%3Fopen%3D1');
    expect(finished).toMatchObject({ status: 303, location: `${fixture.url}/console/sites?open=1` });

    const line = browser.setCookies.findLast((one) => one.startsWith(`${SESSION_COOKIE}=pgs_`)) ?? '';
    expect(line).toMatch(/; Path=\/;.*; HttpOnly; Secure; SameSite=Lax$/);
    expect(line).not.toMatch(/Domain/i);
    expect(browser.cookie(fixture.url, SIGN_IN_COOKIE)).toBeUndefined();

    const page = await session(browser);
    expect(page.status).toBe(200);
    expect(api(page)).toEqual({
      actor: `oidc:${fixture.provider.issuer}|ada`,
      display_name: 'Ada Lovelace',
      via: 'session',
      roles: [],
      expires_at: expect.stringMatching(/^20\d\d-.*Z$/),
    });
  });

  test('asks the provider with PKCE, state and nonce, fresh each time', async () => {
    const asked = await Promise.all(
      [1, 2].map(async () => {
        const { location = '' } = await browser.visit(`${fixture.url}/auth/login`);
        return new URL(location).searchParams;
      }),
    );
    for (const query of asked) {
      expect(query.get('response_type')).toBe('code');
      expect(query.get('code_challenge_method')).toBe('S256');
      expect(query.get('redirect_uri')).toBe(`${fixture.url}/auth/callback`);
      expect(query.get('scope')).toBe('openid profile email');
    }
    for (const name of ['state', 'nonce', 'code_challenge']) {
      const values = asked.map((query) => query.get(name));
      expect(values[0]).toMatch(/^[A-Za-z0-9_-]{43}$/);
      expect(values[0]).not.toBe(values[1]);
    }
  });

  test('the session is good as bearer token as well, and no other token is good as cookie', async () => {
    await fixture.signIn(browser, 'ada');
    const token = browser.cookie(fixture.url, SESSION_COOKIE) ?? '';
    const other = fixture.browser();
    const headers = { authorization: `Bearer ${token}` };
    expect((await other.visit(`${fixture.url}/v1/session`, { method: 'GET', headers })).status).toBe(200);

    other.cookies.set('127.0.0.1', new Map([[SESSION_COOKIE, await fixture.bootstrapToken()]]));
    expect((await session(other)).status).toBe(401);
  });
});

describe('a sign-in is refused, and no session begins', () => {
  /** @param why text in the problem's detail, which identifies the failed check */
  async function expectRefused(page: Page, status: number, code: string, why?: string): Promise<void> {
    expect(api(page)).toMatchObject({ status, code, ...(why === undefined ? {} : { detail: why }) });
    expect(browser.cookie(fixture.url, SESSION_COOKIE)).toBeUndefined();
  }

  test('when its callback comes again', async () => {
    const callback = await fixture.callbackUrl(browser, 'ada');
    const cookie = browser.cookie(fixture.url, SIGN_IN_COOKIE) ?? '';
    expect((await browser.visit(callback)).status).toBe(303);
    browser.cookies.set('127.0.0.1', new Map([[SIGN_IN_COOKIE, cookie]]));
    await expectRefused(await visitAsProgram(browser, callback), 400, 'sign_in_state_invalid');
  });

  test('when the ID token begins later than now, by more than 30 s', async () => {
    // The clock of Control is behind that of the provider.
    fixture.aheadMs = -3_600_000;
    const callback = await fixture.callbackUrl(browser, 'ada');
    const why = 'the iat of the ID token lies ahead; are both clocks right?';
    await expectRefused(await visitAsProgram(browser, callback), 403, 'sign_in_refused', why);
    fixture.aheadMs = -20_000;
    expect((await fixture.signIn(browser, 'ada')).status).toBe(303);
  });

  test('when two callbacks come at once, all but one of them', async () => {
    const callback = await fixture.callbackUrl(browser, 'ada');
    const pages = await Promise.all(Array.from({ length: 8 }, () => visitAsProgram(browser, callback)));
    expect(pages.map(({ status }) => status).sort()).toEqual([303, ...Array<number>(7).fill(400)]);
  });

  test.each([
    ['an unknown state', (url: URL) => url.searchParams.set('state', 'A'.repeat(43))],
    ['no state', (url: URL) => url.searchParams.delete('state')],
    ['two states', (url: URL) => url.searchParams.append('state', 'A'.repeat(43))],
  ])('with %s', async (_name, change) => {
    const callback = new URL(await fixture.callbackUrl(browser, 'ada'));
    change(callback);
    await expectRefused(await visitAsProgram(browser, callback.href), 400, 'sign_in_state_invalid');
  });

  test('with the state of another sign-in in the same browser', async () => {
    const first = new URL(await fixture.callbackUrl(browser, 'ada'));
    const second = new URL(await fixture.callbackUrl(browser, 'ada'));
    second.searchParams.set('state', first.searchParams.get('state') ?? '');
    await expectRefused(await visitAsProgram(browser, second.href), 400, 'sign_in_state_invalid');
  });

  test('in a browser that did not begin it, whether it has begun one of its own or not', async () => {
    const callback = await fixture.callbackUrl(browser, 'mallory');
    const victim = fixture.browser();
    expect((await visitAsProgram(victim, callback)).status).toBe(400);

    const another = await fixture.callbackUrl(browser, 'mallory');
    await victim.visit(`${fixture.url}/auth/login`);
    expect(api(await visitAsProgram(victim, another)).code).toBe('sign_in_state_invalid');
    expect(victim.cookie(fixture.url, SESSION_COOKIE)).toBeUndefined();
  });

  test('after ten minutes', async () => {
    const callback = await fixture.callbackUrl(browser, 'ada');
    fixture.aheadMs = 600_000;
    await expectRefused(await visitAsProgram(browser, callback), 400, 'sign_in_state_invalid');
  });

  test('when the token has another nonce', async () => {
    const begun = await browser.visit(`${fixture.url}/auth/login`);
    const asked = new URL(begun.location ?? '');
    asked.searchParams.set('nonce', 'another-nonce-than-the-one-control-keeps');
    const callback = await fixture.throughProvider(browser, { ...begun, location: asked.href }, 'ada');
    await expectRefused(await visitAsProgram(browser, callback), 403, 'sign_in_refused', NONCE);
  });

  test('when the code was asked for with another PKCE challenge', async () => {
    const begun = await browser.visit(`${fixture.url}/auth/login`);
    const asked = new URL(begun.location ?? '');
    asked.searchParams.set('code_challenge', 'B'.repeat(43));
    const callback = await fixture.throughProvider(browser, { ...begun, location: asked.href }, 'ada');
    await expectRefused(await visitAsProgram(browser, callback), 403, 'sign_in_refused', CODE);
  });

  test('with an unknown code', async () => {
    const callback = new URL(await fixture.callbackUrl(browser, 'ada'));
    callback.searchParams.set('code', 'not-a-code');
    await expectRefused(await visitAsProgram(browser, callback.href), 403, 'sign_in_refused', CODE);
  });

  test('from another issuer than the one that was asked (RFC 9207)', async () => {
    const callback = new URL(await fixture.callbackUrl(browser, 'ada'));
    expect(callback.searchParams.get('iss')).toBe(fixture.provider.issuer);
    callback.searchParams.set('iss', 'https://other.example');
    await expectRefused(await visitAsProgram(browser, callback.href), 403, 'sign_in_refused', RESPONSE);
  });

  test('when the person says no at the provider', async () => {
    const login = await browser.follow(await browser.visit(`${fixture.url}/auth/login`));
    const answer = await browser.visit(formOf(login).action.replace(/\/?$/, '/abort'));
    const back = await browser.follow(answer, (url) => url.startsWith(fixture.url));
    expect(back.location).toContain('error=access_denied');
    const page = await visitAsProgram(browser, back.location ?? '');
    await expectRefused(page, 403, 'sign_in_refused', 'it answered access_denied');
  });

  test('the user sees a page, which holds no script and nothing of the query', async () => {
    const page = await browser.visit(`${fixture.url}/auth/callback?state=x&error=%3Cscript%3E`);
    expect(page.status).toBe(400);
    expect(page.headers.get('content-type')).toBe('text/html; charset=utf-8');
    expect(page.headers.get('content-security-policy')).toContain("default-src 'none'");
    expect(page.body).toContain('<code>sign_in_state_invalid</code>');
    expect(page.body).not.toContain('script');
  });
});

describe('the provider', () => {
  test('that does not answer is distinguished from one that refuses', async () => {
    const begun = await browser.visit(`${fixture.url}/auth/login`);
    const callback = await fixture.throughProvider(browser, begun, 'ada');
    fixture.provider.isDown = true;
    const page = await visitAsProgram(browser, callback);
    expect({ status: page.status, code: api(page).code }).toEqual({
      status: 503,
      code: 'identity_provider_unavailable',
    });
    fixture.provider.isDown = false;
    expect((await fixture.signIn(browser, 'ada')).status).toBe(303);
  });

  test('no secret of a sign-in comes into the log', async () => {
    await fixture.signIn(browser, 'ada');
    const secrets = [...browser.cookies.values()].flatMap((jar) => [...jar.values()]);
    const callback = new URL(await fixture.callbackUrl(browser, 'ada'));
    secrets.push(...callback.searchParams.values(), await fixture.bootstrapToken());
    await browser.visit(callback.href);
    const log = fixture.log.join('');
    expect(log).toContain('/auth/callback');
    const longSecrets = secrets.filter((secret) => secret.length > 20 && secret !== fixture.provider.issuer);
    expect(longSecrets.length).toBeGreaterThan(4);
    for (const secret of longSecrets) expect(log).not.toContain(secret);
  });
});

test('a token that another key signed is refused', async () => {
  const other = await OperatorFixture.start();
  try {
    const person = other.browser();
    const callback = await other.callbackUrl(person, 'ada');
    // The key ID matches, but the key is a different one.
    const { kty, n, e, kid, alg, use } = newSigningJwk('provider-key') as {
      readonly [member: string]: string;
    };
    other.provider.publishedKeys = { keys: [{ kty, n, e, kid, alg, use }] };
    const page = await visitAsProgram(person, callback);
    expect(api(page)).toMatchObject({ status: 403, code: 'sign_in_refused', detail: RESPONSE });
    expect(person.cookie(other.url, SESSION_COOKIE)).toBeUndefined();
  } finally {
    await other.close();
  }
});
