/** Tests sign-in for a command line: a code sent to a loopback port and exchanged with its PKCE verifier. */
import { createHash, randomBytes } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { signInCode } from '../../../src/protocol/sign-in-code.ts';
import { callApi } from '../../support/control/control-program.ts';
import { OperatorFixture } from '../../support/control/operators-fixture.ts';
import { type Browser, formOf, type Page } from '../../support/harness/browser.ts';

const REDIRECT = 'http://127.0.0.1:4711/callback';

let fixture: OperatorFixture;
let browser: Browser;
let verifier = '';
let challenge = '';

beforeAll(async () => {
  fixture = await OperatorFixture.start();
  fixture.provider.accounts.set('ada', { name: 'Ada <b>', groups: ['platform'] });
});
afterAll(() => fixture.close());
beforeEach(() => {
  browser = fixture.browser();
  fixture.aheadMs = 0;
  verifier = randomBytes(32).toString('base64url');
  challenge = createHash('sha256').update(verifier).digest('base64url');
});

function loginQuery(): string {
  return `?${new URLSearchParams({ cli_redirect: REDIRECT, cli_challenge: challenge, cli_state: 'state-1' })}`;
}

/** The confirmation page. */
function askedPage(): Promise<Page> {
  return fixture.signIn(browser, 'ada', loginQuery());
}

function decide(page: Page, decision: 'allow' | 'deny'): Promise<Page> {
  return browser.submit(page, { decision });
}

function codeOf(page: Page): string {
  const { searchParams } = new URL(page.location ?? '');
  expect(searchParams.get('state')).toBe('state-1');
  return searchParams.get('code') ?? '';
}

function exchange(code: string, shown = verifier) {
  return callApi(fixture.url, {
    method: 'POST',
    path: '/v1/session/exchange',
    body: { code, verifier: shown },
    ca: fixture.ca,
  });
}

async function allowedCode(): Promise<string> {
  return codeOf(await decide(await askedPage(), 'allow'));
}

describe('a command line', () => {
  test('gets a session of its own; the browser gets none', async () => {
    const page = await askedPage();
    expect(page).toMatchObject({ status: 200, location: undefined });
    const allowed = await decide(page, 'allow');
    expect(allowed.status).toBe(303);
    expect(allowed.location?.startsWith(`${REDIRECT}?`)).toBe(true);
    expect([...(browser.cookies.get('127.0.0.1')?.keys() ?? [])]).toEqual([]);

    const answer = await exchange(codeOf(allowed));
    expect(answer).toMatchObject({ status: 201, body: { token: expect.stringMatching(/^pgs_/) } });
    const token = String(answer.body.token);
    expect(await callApi(fixture.url, { path: '/v1/session', token, ca: fixture.ca })).toMatchObject({
      status: 200,
      body: {
        actor: `oidc:${fixture.provider.issuer}|ada`,
        via: 'session',
        expires_at: answer.body.expires_at,
      },
    });

    expect(
      await callApi(fixture.url, { method: 'POST', path: '/auth/logout', token, ca: fixture.ca }),
    ).toMatchObject({ status: 204 });
    expect(await callApi(fixture.url, { path: '/v1/session', token, ca: fixture.ca })).toMatchObject({
      status: 401,
    });
  });

  test('is asked about in a page that shows who, and the code of the terminal, and runs nothing', async () => {
    const page = await askedPage();
    expect(page.body).toContain(signInCode(challenge));
    expect(page.body).toContain('port 4711');
    expect(page.body).toContain('Ada &lt;b&gt;');
    expect(page.body).not.toContain('<b>Ada <b>');
    expect(page.body).not.toContain('<script');
    const policy = page.headers.get('content-security-policy') ?? '';
    expect(policy).toContain("default-src 'none'");
    expect(policy).toContain("frame-ancestors 'none'");
    expect(policy).toContain("form-action 'self' http://127.0.0.1:4711");
    expect(page.headers.get('cache-control')).toBe('no-store');
  });

  test('that is denied gets an error and no code', async () => {
    const denied = await decide(await askedPage(), 'deny');
    const { searchParams } = new URL(denied.location ?? '');
    expect(Object.fromEntries(searchParams)).toEqual({ state: 'state-1', error: 'access_denied' });
  });
});

describe('no code is given', () => {
  async function expectRefused(page: Page, status: number, code: string): Promise<void> {
    expect(JSON.parse(page.body)).toMatchObject({ status, code });
    expect(page.location).toBeUndefined();
  }

  test('to an answer that comes twice', async () => {
    const page = await askedPage();
    const cookies = new Map(browser.cookies.get('127.0.0.1'));
    expect((await decide(page, 'allow')).status).toBe(303);
    browser.cookies.set('127.0.0.1', cookies);
    await expectRefused(await decide(page, 'allow'), 400, 'sign_in_state_invalid');
  });

  test('to an answer from another browser', async () => {
    const page = await askedPage();
    const other = fixture.browser();
    await expectRefused(await other.submit(page, { decision: 'allow' }), 400, 'sign_in_state_invalid');
  });

  test('to an answer after five minutes', async () => {
    const page = await askedPage();
    fixture.aheadMs = 300_000;
    await expectRefused(await decide(page, 'allow'), 400, 'sign_in_state_invalid');
  });

  test.each<[string, { readonly [name: string]: string }]>([
    ['of another site', { origin: 'https://evil.example', 'sec-fetch-site': 'cross-site' }],
    ['of a sibling site', { 'sec-fetch-site': 'same-site' }],
    ['of no origin', { origin: 'null' }],
  ])('to an answer from a page %s', async (_name, headers) => {
    const page = await askedPage();
    const { action, members } = formOf(page);
    const answer = await browser.visit(action, {
      method: 'POST',
      form: { ...members, decision: 'allow' },
      headers,
    });
    await expectRefused(answer, 403, 'origin_forbidden');
    expect((await decide(page, 'allow')).status).toBe(303);
  });

  test('to an answer that is no answer', async () => {
    const page = await askedPage();
    await expectRefused(await browser.submit(page, { decision: 'maybe' }), 400, 'request_malformed');
    await expectRefused(await browser.submit(page, {}), 400, 'request_malformed');
  });
});

describe('a code', () => {
  test('is good once', async () => {
    const code = await allowedCode();
    const answers = await Promise.all([1, 2, 3, 4].map(() => exchange(code)));
    expect(answers.map(({ status }) => status).sort()).toEqual([201, 401, 401, 401]);
  });

  test('is good for a minute', async () => {
    const code = await allowedCode();
    fixture.aheadMs = 60_000;
    expect(await exchange(code)).toMatchObject({ status: 401, body: { code: 'sign_in_code_invalid' } });
  });

  test('is spent by a wrong verifier', async () => {
    const code = await allowedCode();
    const wrong = randomBytes(32).toString('base64url');
    expect(await exchange(code, wrong)).toMatchObject({
      status: 401,
      body: { code: 'sign_in_code_invalid' },
    });
    expect(await exchange(code)).toMatchObject({ status: 401, body: { code: 'sign_in_code_invalid' } });
  });

  test('cannot be shown with its challenge instead', async () => {
    expect(await exchange(await allowedCode(), challenge)).toMatchObject({ status: 401 });
  });

  test('of another step is none: neither a state nor a confirmation', async () => {
    const page = await askedPage();
    const { confirmation = '' } = formOf(page).members;
    expect(await exchange(confirmation)).toMatchObject({
      status: 401,
      body: { code: 'sign_in_code_invalid' },
    });
    const begun = await browser.visit(`${fixture.url}/auth/login${loginQuery()}`);
    const state = new URL(begun.location ?? '').searchParams.get('state') ?? '';
    expect(await exchange(state)).toMatchObject({ status: 401, body: { code: 'sign_in_code_invalid' } });
  });
});
