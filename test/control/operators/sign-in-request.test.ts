/** Checks that a sign-in never redirects to another site. */
import { describe, expect, test } from '@jest/globals';
import { ApiProblem } from '../../../src/control/domain/api-problem.ts';
import { claimedIdentity } from '../../../src/control/operators/operator-identity.ts';
import { destinationOf, type SignInQuery } from '../../../src/control/operators/sealed-sign-in.ts';
import { browserCookies } from '../../../src/control/operators/sessions.ts';
import { signInCode } from '../../../src/protocol/sign-in-code.ts';

const CHALLENGE = 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM';
const CLI: SignInQuery = {
  cli_redirect: 'http://127.0.0.1:4711/callback',
  cli_challenge: CHALLENGE,
  cli_state: 'state-1',
};

function refusalOf(work: () => unknown): string | undefined {
  try {
    work();
    return undefined;
  } catch (error) {
    if (error instanceof ApiProblem) return error.code;
    throw error;
  }
}

describe('return_to', () => {
  test.each([
    '/',
    '/console',
    '/console/sites?open=1#a',
    '/console/sites/shop-eu-1/keys?state=active&q=@evil.example',
    '/@evil.example',
    '/.well-known/..a',
    '/a//b',
    '/%2F%2Fevil.example',
    "/~!$&'()*+,;=:@-._",
  ])('takes %s', (path) => {
    expect(destinationOf({ return_to: path })).toEqual({ kind: 'page', path });
    expect(new URL(path, 'https://control.example').origin).toBe('https://control.example');
  });

  test('is / when nothing is asked for', () => {
    expect(destinationOf({})).toEqual({ kind: 'page', path: '/' });
  });

  test.each([
    '',
    'console',
    'https://evil.example',
    '//evil.example',
    '///evil.example',
    '/\\evil.example',
    '\\\\evil.example',
    '/\t/evil.example',
    '/\r/evil.example',
    '/./evil',
    '/..//evil.example',
    '/a/%2E%2e/..',
    '/.%2e?a',
    '@evil.example',
    '.evil.example',
    ':8443@evil.example',
    '%2f%2fevil.example',
    '/\n/evil.example',
    '/a\\..\\..\\evil',
    ' /a',
    '/a b',
    '/é',
    'javascript:alert(1)',
    '/\u0000',
    `/${'a'.repeat(2048)}`,
  ])('refuses %j', (path) => {
    expect(refusalOf(() => destinationOf({ return_to: path }))).toBe('request_malformed');
  });
});

describe('cli_redirect', () => {
  test.each([
    'http://127.0.0.1:4711/callback',
    'http://127.0.0.1:4711',
    'http://[::1]:65535/',
    'http://localhost:1/a/b',
  ])('takes %s', (redirect) => {
    expect(destinationOf({ ...CLI, cli_redirect: redirect })).toEqual({
      kind: 'command_line',
      redirect,
      challenge: CHALLENGE,
      state: 'state-1',
    });
  });

  test.each([
    'https://127.0.0.1:4711/callback',
    'http://127.0.0.1/callback',
    'http://127.0.0.1:0/callback',
    'http://127.0.0.1:65536/callback',
    'http://127.0.0.1:04711/callback',
    'http://127.0.0.2:4711/callback',
    'http://127.1:4711/callback',
    'http://127.0.0.1.evil.example:4711/callback',
    'http://localhost.evil.example:4711/callback',
    'http://127.0.0.1:4711@evil.example/callback',
    'http://user@127.0.0.1:4711/callback',
    'http://evil.example:4711/callback',
    'http://[::ffff:127.0.0.1]:4711/callback',
    'http://127.0.0.1:4711/callback?code=1',
    'http://127.0.0.1:4711/callback#a',
    'http://127.0.0.1:4711\\@evil.example/',
    'HTTP://127.0.0.1:4711/',
    'http://127.0.0.1:4711/\ncallback',
    'app://127.0.0.1:4711/',
  ])('refuses %j', (redirect) => {
    expect(refusalOf(() => destinationOf({ ...CLI, cli_redirect: redirect }))).toBe('request_malformed');
  });

  test.each<[string, SignInQuery]>([
    ['without a challenge', { ...CLI, cli_challenge: '' }],
    ['with a challenge that is no SHA-256', { ...CLI, cli_challenge: 'A'.repeat(42) }],
    ['with a challenge that is not canonical', { ...CLI, cli_challenge: `${'A'.repeat(42)}B` }],
    ['without a state', { ...CLI, cli_state: '' }],
    ['with a state that could be more than a value', { ...CLI, cli_state: 'a&code=b' }],
    ['beside return_to', { ...CLI, return_to: '/' }],
    ['as a challenge alone', { cli_challenge: CHALLENGE }],
  ])('is refused %s', (_name, query) => {
    expect(refusalOf(() => destinationOf(query))).toBe('request_malformed');
  });
});

describe('claims', () => {
  const CLAIMS = { iss: 'https://idp.example', sub: 'ada' };

  test.each<[string, unknown, readonly string[]]>([
    ['a list', ['platform', 'oncall', 'platform'], ['platform', 'oncall']],
    ['one name', 'platform', ['platform']],
    ['nothing', undefined, []],
    ['null', null, []],
  ])('groups from %s', (_name, groups, expected) => {
    expect(claimedIdentity({ ...CLAIMS, groups }, 'groups').groups).toEqual(expected);
  });

  test('no claim of groups is read unless one is named', () => {
    expect(claimedIdentity({ ...CLAIMS, groups: ['platform'] }, undefined).groups).toEqual([]);
  });

  test.each<[string, { readonly [claim: string]: unknown }]>([
    ['groups that are no names', { ...CLAIMS, groups: [{ name: 'platform' }] }],
    ['an empty group', { ...CLAIMS, groups: [''] }],
    ['a group with a line break', { ...CLAIMS, groups: ['a\nb'] }],
    ['too many groups', { ...CLAIMS, groups: Array.from({ length: 1001 }, (_, i) => `g${i}`) }],
    ['no subject', { iss: CLAIMS.iss }],
    ['an empty subject', { ...CLAIMS, sub: '' }],
    ['a subject with a control character', { ...CLAIMS, sub: 'ada\u0007' }],
    ['an issuer that could be two', { ...CLAIMS, iss: 'https://idp.example|ada' }],
  ])('refuse a sign-in with %s', (_name, claims) => {
    expect(refusalOf(() => claimedIdentity(claims, 'groups'))).toBe('sign_in_refused');
  });

  test('a name for people comes from what there is', () => {
    const named = (more: object) => claimedIdentity({ ...CLAIMS, ...more }, undefined).displayName;
    expect(named({ name: 'Ada', preferred_username: 'al', email: 'a@x' })).toBe('Ada');
    expect(named({ name: 'Ada\u001b[31m', preferred_username: 'al' })).toBe('al');
    expect(named({ email: 'a@x.example' })).toBe('a@x.example');
    expect(named({ name: 7 })).toBe('ada');
  });
});

test('cookies are bound to the host unless a URL is plain HTTP', () => {
  expect(browserCookies(['https://a.example', 'https://b.example'])).toEqual({
    session: '__Host-proofgate_session',
    signIn: '__Host-proofgate_sign_in',
    secure: true,
  });
  expect(browserCookies(['https://a.example', 'http://127.0.0.1:9193'])).toEqual({
    session: 'proofgate_session',
    signIn: 'proofgate_sign_in',
    secure: false,
  });
});

test('the code that browser and terminal show is of the challenge alone', () => {
  expect(signInCode(CHALLENGE)).toMatch(/^[0-9A-HJKMNP-TV-Z]{4}-[0-9A-HJKMNP-TV-Z]{4}$/);
  expect(signInCode(CHALLENGE)).toBe(signInCode(CHALLENGE));
  expect(signInCode(`${CHALLENGE.slice(0, -1)}A`)).not.toBe(signInCode(CHALLENGE));
});
