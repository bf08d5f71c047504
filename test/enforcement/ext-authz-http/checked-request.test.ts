/** What the verifier takes for the original request of a check, by profile; everything that is not exact matches no route. */
import { describe, expect, it } from '@jest/globals';
import { answerOf } from '../../../src/enforcement/ext-authz-http/check-answer.ts';
import { type CheckReader, readCheck } from '../../../src/enforcement/ext-authz-http/checked-request.ts';
import { HTTP_PROFILES, type HttpProfileName } from '../../../src/enforcement/ext-authz-http/profiles.ts';
import { REQUEST_REWRITING_HEADERS } from '../../../src/protocol/wire-names.ts';
import { AUTH_SITE, ORIGIN as SITE_ORIGIN } from '../../support/fixtures/bundle-content.ts';
import { compileSite, newSiteKeys, siteContent } from '../../support/fixtures/snapshot.ts';
import { checkNow, createTestVerifier } from '../../support/fixtures/test-verifier.ts';

const SECRET = 'x1IhJ0Yxg9fA6bqk3cTn5rWz8mVdPeSu';
const ORIGIN = { scheme: 'https', authority: 'api.example' } as const;

interface Sent {
  readonly profile: HttpProfileName;
  readonly bodyMode?: CheckReader['bodyMode'];
  readonly method?: string;
  readonly target?: string;
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly body?: string | undefined;
}

function read({
  body = '',
  bodyMode = 'unknown',
  headers,
  method = 'GET',
  profile,
  target = '/check',
}: Sent) {
  const secret = profile === 'nginx' ? SECRET : undefined;
  const reader = { profile: HTTP_PROFILES[profile], bodyMode, origin: ORIGIN, secret };
  return readCheck(reader, { method, target, rawHeaders: headers.flat(), body: Buffer.from(body) });
}

/** `METHOD TARGET`, or what is wrong. */
function original(sent: Sent): string {
  const { facts, fault } = read(sent);
  expect([facts.scheme, facts.authority]).toEqual(['https', 'api.example']);
  if (fault === undefined) return `${facts.method} ${facts.target}`;
  expect([facts.method, facts.target]).toEqual(['', '']);
  return fault;
}

const nginx = (...values: readonly string[]): Sent => ({
  profile: 'nginx',
  headers: values.map((value) => ['X-Proofgate-Request', value]),
});
const forwarded = (...headers: Sent['headers']): Sent => ({ profile: 'caddy', headers });
const METHOD = ['X-Forwarded-Method', 'DELETE'] as const;
/** What Envoy says of the client's Content-Length. */
const announced = (length: string) => ['x-proofgate-content-length', `length=${length}`] as const;
const LENGTH = announced('');
const URI = ['X-Forwarded-Uri', '/v1/x?y#z'] as const;

it.each<readonly [Sent, string]>([
  [nginx(`${SECRET} GET /v1/x?a=b`), 'GET /v1/x?a=b'],
  [nginx(`${SECRET} GET /v1/x y`), 'GET /v1/x y'],
  [nginx(`${SECRET} GET /\u00e9`), 'GET /\u00e9'],
  [nginx(), 'source'],
  [nginx(`${SECRET} GET /`, `${SECRET} GET /`), 'source'],
  [nginx(`${SECRET}x GET /`), 'secret'],
  [nginx(`${SECRET.slice(1)} GET /`), 'secret'],
  [nginx(` GET /`), 'secret'],
  [nginx(`${SECRET} GET`), 'secret'],
  [nginx(`${SECRET}  /`), 'secret'],
  [nginx(''), 'secret'],
  [{ ...nginx(`${SECRET} GET /`), target: '/livez' }, 'path'],
  [{ ...nginx(`${SECRET} GET /`), target: '/check/' }, 'path'],
  [{ ...nginx(`${SECRET} GET /`), target: '/check/streamed' }, 'GET /'],
  [{ ...nginx(`${SECRET} GET /`), target: '/check/all-proofs/streamed' }, 'GET /'],
  [{ ...nginx(`${SECRET} GET /`), target: '/check/all-proofs/' }, 'path'],
  [forwarded(METHOD, URI), 'DELETE /v1/x?y#z'],
  [{ ...forwarded(METHOD, URI), target: '/check?a=b' }, 'DELETE /v1/x?y#z'],
  [{ ...forwarded(METHOD, URI), target: 'http://verifier/check' }, 'path'],
  [forwarded(METHOD), 'source'],
  [forwarded(URI), 'source'],
  [forwarded(METHOD, METHOD, URI), 'source'],
  [forwarded(METHOD, URI, ['x-forwarded-uri', '/v1/x?y#z']), 'source'],
  [{ profile: 'traefik', headers: [METHOD, URI] }, 'DELETE /v1/x?y#z'],
  [{ profile: 'envoy', headers: [LENGTH], method: 'PUT', target: '/check/v1/x?a' }, 'PUT /v1/x?a'],
  [{ profile: 'envoy', headers: [LENGTH], target: '/check//v1' }, 'GET //v1'],
  [{ profile: 'envoy', headers: [LENGTH, METHOD, URI], target: '/check/a' }, 'GET /a'],
  [{ profile: 'envoy', headers: [LENGTH], target: '/check' }, 'path'],
  [{ profile: 'envoy', headers: [LENGTH], target: '/checked/v1' }, 'path'],
  [{ profile: 'envoy', headers: [LENGTH], target: '/v1/x' }, 'path'],
  [{ profile: 'envoy', headers: [], target: '/check/a' }, 'source'],
  [{ profile: 'envoy', headers: [LENGTH, LENGTH], target: '/check/a' }, 'source'],
  [{ profile: 'envoy', headers: [announced('12')], target: '/check/a' }, 'GET /a'],
  [{ profile: 'envoy', headers: [announced('+5')], target: '/check/a' }, 'source'],
  [{ profile: 'envoy', headers: [announced('5,5')], target: '/check/a' }, 'source'],
  [{ profile: 'envoy', headers: [announced('-')], target: '/check/a' }, 'source'],
])('original request of %j: %s', (sent, expected) => {
  expect(original(sent)).toBe(expected);
});

describe('headers that no client may send', () => {
  const found = (profile: HttpProfileName, name: string) =>
    read({ profile, headers: [[name, 'v']] }).reservedName;

  it.each(['envoy', 'nginx', 'traefik', 'caddy'] as const)('%s', (profile) => {
    const spellings = [
      'X-Proofgate-Subject',
      'x_proofgate_subject',
      'X.Proofgate.Subject',
      'X-PROOFGATE',
      'x-proofgate-transcript-2',
      'XProofgateSubject',
      'X-Proofgateway',
    ];
    for (const name of [...spellings, ...REQUEST_REWRITING_HEADERS, 'X_HTTP_Method_Override']) {
      expect(found(profile, name)).toBe(name);
    }
    for (const name of ['X-Proofgate-Transcript', 'x-proofgate-SIGNATURE', 'Authorization', 'X-Proof']) {
      expect(found(profile, name)).toBeUndefined();
    }
  });

  it('each profile knows only its own', () => {
    expect(found('nginx', 'X-Proofgate-Request')).toBeUndefined();
    expect(found('envoy', 'X-Proofgate-Content-Length')).toBeUndefined();
    expect(found('caddy', 'X-Proofgate-Request')).toBe('X-Proofgate-Request');
    expect(found('nginx', 'X-Proofgate-Content-Length')).toBe('X-Proofgate-Content-Length');
    expect(found('nginx', 'X_Proofgate_Request')).toBe('X_Proofgate_Request');
  });

  it('nginx shows names that others drop or reject', () => {
    expect(found('nginx', 'x_tenant')).toBe('x_tenant');
    expect(found('envoy', 'x_tenant')).toBeUndefined();
  });
});

it('takes joined lines of Envoy for ambiguous', () => {
  const lookup = (profile: HttpProfileName) =>
    read({ profile, headers: [['accept', 'a, b']] }).facts.headers.lookup('accept').kind;
  expect([lookup('envoy'), lookup('caddy')]).toEqual(['ambiguous', 'single']);
});

const whole = ['x-envoy-auth-partial-body', 'false'] as const;

it.each<readonly [string, Sent, 'none' | 'exact' | 'unknown']>([
  ['nothing is said', { profile: 'nginx', headers: [] }, 'unknown'],
  ['removed', { profile: 'nginx', bodyMode: 'removed', headers: [] }, 'none'],
  [
    'removed, but not from here',
    { profile: 'nginx', bodyMode: 'removed', headers: [], target: '/check/all-proofs/streamed' },
    'unknown',
  ],
  ['an upgrade', { profile: 'caddy', bodyMode: 'removed', headers: [['Upgrade', 'websocket']] }, 'unknown'],
  ['Traefik', { profile: 'traefik', bodyMode: 'forwarded', headers: [], body: 'b' }, 'exact'],
  ['Traefik without', { profile: 'traefik', bodyMode: 'forwarded', headers: [] }, 'none'],
  [
    'Envoy',
    { profile: 'envoy', bodyMode: 'forwarded', headers: [whole, announced('1')], body: 'b' },
    'exact',
  ],
  ['Envoy, empty', { profile: 'envoy', bodyMode: 'forwarded', headers: [whole, announced('')] }, 'none'],
  [
    'Envoy, a path like those of checks',
    { profile: 'envoy', bodyMode: 'forwarded', headers: [announced('')], target: '/check/streamed' },
    'none',
  ],
  ['Envoy without', { profile: 'envoy', bodyMode: 'forwarded', headers: [announced('')] }, 'none'],
  ['Envoy, length 0', { profile: 'envoy', bodyMode: 'forwarded', headers: [announced('0')] }, 'none'],
  ['Envoy, not buffered', { profile: 'envoy', bodyMode: 'forwarded', headers: [announced('4')] }, 'unknown'],
  ['Envoy, no mark', { profile: 'envoy', bodyMode: 'forwarded', headers: [] }, 'unknown'],
  [
    'Envoy, unmarked bytes',
    { profile: 'envoy', bodyMode: 'forwarded', headers: [announced('')], body: 'b' },
    'unknown',
  ],
  [
    'Envoy, partial',
    { profile: 'envoy', bodyMode: 'forwarded', headers: [['x-envoy-auth-partial-body', 'true']], body: 'b' },
    'unknown',
  ],
  [
    'Envoy, two marks',
    { profile: 'envoy', bodyMode: 'forwarded', headers: [whole, whole], body: 'b' },
    'unknown',
  ],
  ['Envoy, none sent', { profile: 'envoy', headers: [whole], body: 'b' }, 'unknown'],
])('body: %s', (_, sent, expected) => {
  expect(read(sent).facts.body.kind).toBe(expected);
});

it('a body that was too large is unknown', () => {
  const reader = {
    profile: HTTP_PROFILES.traefik,
    bodyMode: 'forwarded',
    origin: ORIGIN,
    secret: undefined,
  } as const;
  const check = { method: 'GET', target: '/check', rawHeaders: [], body: undefined };
  expect(readCheck(reader, check).facts.body.kind).toBe('unknown');
});

it('an observed request with a proof for the site passes only where the proxy removes that', async () => {
  const snapshot = await compileSite(siteContent(newSiteKeys()));
  const observations = { observes: () => true, observesUnmatched: () => true };
  const original = [
    ['X-Forwarded-Method', 'GET'],
    ['X-Forwarded-Uri', '/v1/orders/17'],
  ] as const;
  const checkOf = (profile: HttpProfileName): Sent => {
    if (profile === 'envoy') return { profile, headers: [LENGTH], target: '/check/v1/orders/17' };
    return profile === 'nginx' ? nginx(`${SECRET} GET /v1/orders/17`) : { profile, headers: original };
  };
  const answerTo = (sent: Sent, tag: string) => {
    const signed = [
      ['Signature-Input', `sig=("@method");tag="${tag}"`],
      ['Signature', 'sig=:AAAA:'],
      ['Signature', 'b=:BBBB:'],
    ] as const;
    const { facts } = read({ ...sent, headers: [...sent.headers, ...signed] });
    const [scheme = '', authority = ''] = SITE_ORIGIN.split('://');
    const { verifier } = createTestVerifier({ snapshot, observations });
    const decision = checkNow(verifier, { ...facts, scheme, authority });
    const { headers, status } = answerOf(decision, { profile: HTTP_PROFILES[sent.profile], request: facts });
    const ofProof = headers.filter(([name]) => name.startsWith('signature')).map(([, value]) => value);
    const removed = headers.find(([name]) => name === 'x-envoy-auth-headers-to-remove')?.[1].split(',') ?? [];
    return [status, ...ofProof, ...removed.filter((name) => name.startsWith('signature'))];
  };
  const ours = `proofgate/${AUTH_SITE}`;
  const envoy = checkOf('envoy');
  expect([answerTo(envoy, ours), answerTo(envoy, 'cdn')]).toEqual([
    [200, 'signature', 'signature-input'],
    [200],
  ]);
  for (const profile of ['nginx', 'traefik', 'caddy'] as const) {
    const kept = checkOf(profile);
    expect([answerTo(kept, ours), answerTo(kept, 'cdn')]).toEqual([[401], [200]]);
    const replaced = { ...kept, target: '/check/all-proofs' };
    const others = ['sig=:AAAA:, b=:BBBB:', 'sig=("@method");tag="cdn"'];
    expect([answerTo(replaced, ours), answerTo(replaced, 'cdn')]).toEqual([[200], [200, ...others]]);
  }
});
