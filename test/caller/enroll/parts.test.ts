/** Unit tests of the parts of enrollment. */
import { inspect } from 'node:util';
import { describe, expect, it } from '@jest/globals';
import { readChallenge, readEnrollment, readReadiness } from '../../../src/caller/enroll/control-answers.ts';
import { parseControlUrl } from '../../../src/caller/enroll/control-url.ts';
import { enrolledProfiles } from '../../../src/caller/enroll/enrolled-profiles.ts';
import { type EnrollmentState, refreshFromMs } from '../../../src/caller/enroll/enrollment-state.ts';
import { Pacing } from '../../../src/caller/enroll/pacing.ts';
import { formatEnrollmentState, parseEnrollmentState } from '../../../src/caller/enroll/state-format.ts';
import { openChallenge, sealChallenge } from '../../../src/caller/enroll/submit.ts';
import { Redacted } from '../../../src/protocol/redacted.ts';
import { codeOf, newEd25519Key } from '../../support/caller/signing.ts';

const NOW_MS = Date.UTC(2026, 10, 21, 4, 0, 0);
const THUMBPRINT = newEd25519Key().publicKey.thumbprint;

const ISSUED = {
  enrollment_id: 'enr_1',
  auth_site: 'shop-eu-1',
  state: 'issued',
  created_at: '2026-11-21T04:00:00Z',
  derived_key: {
    key_id: 'dk_1',
    fingerprint: THUMBPRINT,
    status: 'active',
    expires_at: '2026-11-21T05:00:00Z',
    client_id: 'billing',
    issuer: 'https://control.shop.example/sites/shop-eu-1',
    trust_domain: 'shop.example',
    subject: 'client:billing',
    key_binding: 'software',
  },
  signing_profiles: [
    {
      name: 'orders-read',
      route_id: 'orders-read',
      method: 'GET',
      path_template: '/v1/orders/{order_id}',
      audience: 'https://api.shop.example',
      origins: ['https://api.shop.example'],
      signed_headers: ['x-tenant'],
      body: 'bound',
    },
    {
      name: 'own',
      route_id: 'own',
      method: 'GET',
      path_template: '/v1/own',
      audience: 'https://api.shop.example',
      origins: ['https://api.shop.example'],
      signed_headers: [],
      body: 'bound',
      passport_header: 'X-Proofgate-Passport',
    },
  ],
};

describe('the Control URL', () => {
  it.each([
    ['https://control.shop.example', 'https://control.shop.example', ''],
    ['https://control.shop.example/', 'https://control.shop.example', ''],
    ['https://control.shop.example:8443/control', 'https://control.shop.example:8443/control', '/control'],
    ['http://127.0.0.1:8080', 'http://127.0.0.1:8080', ''],
    ['http://localhost:8080/', 'http://localhost:8080', ''],
    ['http://[::1]:8080', 'http://[::1]:8080', ''],
  ])('%s is signed as %s', (given, text, pathPrefix) => {
    expect(parseControlUrl(given)).toMatchObject({ text, pathPrefix });
  });

  it.each([
    ['http://control.shop.example', 'control_url_not_https'],
    ['http://127.0.0.1.evil.example', 'control_url_not_https'],
    ['http://10.0.0.1', 'control_url_not_https'],
    ['http://localhost.evil.example', 'control_url_not_https'],
    ['HTTPS://control.shop.example', 'control_url_invalid'],
    ['https://Control.shop.example', 'control_url_invalid'],
    ['https://control.shop.example:443', 'control_url_invalid'],
    ['https://control.shop.example//', 'control_url_invalid'],
    ['https://control.shop.example/a/../b', 'control_url_invalid'],
    ['https://control.shop.example?x=1', 'control_url_invalid'],
    ['https://control.shop.example/?x=1', 'control_url_invalid'],
    ['https://user:password@control.shop.example', 'control_url_invalid'],
    ['https://control.shop.example\npolicy=x', 'control_url_invalid'],
    ['control.shop.example', 'control_url_invalid'],
    ['unix:/run/control.sock', 'control_url_invalid'],
    ['', 'control_url_invalid'],
  ])('%j is refused: %s', (given, code) => {
    expect(codeOf(() => parseControlUrl(given))).toBe(code);
  });
});

describe('pacing', () => {
  it.each([0, 0.5, 0.999])('grows to 30 s and never above, with chance %d', (chance) => {
    const pacing = new Pacing(2000, () => chance);
    const waits = Array.from({ length: 20 }, () => pacing.next());
    expect(waits[0]).toBe(Math.ceil(2000 * (1 - 0.25 * chance)));
    expect(Math.max(...waits)).toBeLessThanOrEqual(30_000);
    expect(Math.min(...waits)).toBeGreaterThanOrEqual(1500);
    expect(waits.at(-1)).toBe(Math.ceil(30_000 * (1 - 0.25 * chance)));
  });

  it.each([0, 0.5, 0.999])('is never sooner than Control wishes, with chance %d', (chance) => {
    const pacing = new Pacing(2000, () => chance);
    for (const wish of [1999, 2000, 2001, 45_000, 100])
      expect(pacing.next(wish)).toBeGreaterThanOrEqual(wish);
  });

  it('may begin above 30 s', () => {
    const pacing = new Pacing(60_000, () => 0);
    expect([pacing.next(), pacing.next()]).toEqual([60_000, 60_000]);
  });
});

describe('a sealed challenge', () => {
  const key = newEd25519Key();
  const challenge = new Redacted(Buffer.alloc(32, 7).toString('base64url'));

  it('is opened by the same key for the same thing only', () => {
    const sealed = sealChallenge(challenge, key.privateKey, 'here');
    expect(openChallenge(sealed, key.privateKey, 'here')?.reveal()).toBe(challenge.reveal());
    expect(openChallenge(sealed, key.privateKey, 'elsewhere')).toBeUndefined();
    expect(openChallenge(sealed, newEd25519Key().privateKey, 'here')).toBeUndefined();
    expect(openChallenge(sealed.slice(0, -4), key.privateKey, 'here')).toBeUndefined();
    expect(openChallenge('', key.privateKey, 'here')).toBeUndefined();
  });

  it('never looks the same twice, and shows nothing', () => {
    const seals = [1, 2].map(() => sealChallenge(challenge, key.privateKey, 'here'));
    expect(seals[0]).not.toBe(seals[1]);
    expect(seals.join()).not.toContain(challenge.reveal());
  });
});

it('a secret is redacted wherever it is shown', () => {
  const secret = new Redacted('hunter2');
  expect(
    [`${secret}`, JSON.stringify({ secret }), inspect(secret), inspect({ a: [secret] })].join(),
  ).not.toContain('hunter2');
});

describe("Control's answers", () => {
  it('are read', () => {
    expect(readEnrollment(JSON.stringify(ISSUED))).toMatchObject({
      enrollmentId: 'enr_1',
      state: 'issued',
      createdAtMs: NOW_MS,
      key: {
        keyId: 'dk_1',
        expiresAtMs: NOW_MS + 3_600_000,
        profiles: [{ signedHeaders: ['x-tenant'] }, { passportHeader: 'x-proofgate-passport' }],
      },
    });
  });

  it.each([
    ['an unknown state', { ...ISSUED, state: 'approved' }],
    ['issued without a key', { ...ISSUED, derived_key: undefined }],
    ['issued without profiles', { ...ISSUED, signing_profiles: undefined }],
    ['an enrollment ID with a slash', { ...ISSUED, enrollment_id: '../x' }],
    ['a moment without zone', { ...ISSUED, created_at: '2026-11-21T04:00:00' }],
    ['a moment that is none', { ...ISSUED, created_at: '2026-13-21T04:00:00Z' }],
    [
      'a key that attests itself',
      { ...ISSUED, derived_key: { ...ISSUED.derived_key, key_binding: 'attested_workload' } },
    ],
    [
      'a profile twice',
      { ...ISSUED, signing_profiles: [ISSUED.signing_profiles[0], ISSUED.signing_profiles[0]] },
    ],
    ['a list', [ISSUED]],
    ['null', null],
  ])('with %s are none', (_what, answer) => {
    expect(readEnrollment(JSON.stringify(answer))).toBeUndefined();
  });

  it('with a member twice are none', () => {
    expect(readEnrollment(JSON.stringify(ISSUED).replace('{', '{"state":"denied",'))).toBeUndefined();
  });

  it.each([
    ['a short challenge', { challenge: 'AAAA' }],
    ['an ID with a line break', { challenge_id: 'ch\nx' }],
    ['no site', { auth_site: undefined }],
  ])('with %s are no challenge', (_what, members) => {
    const challenge = Buffer.alloc(32).toString('base64url');
    const good = {
      challenge_id: 'ch_1',
      challenge,
      auth_site: 'shop-eu-1',
      expires_at: '2026-11-21T04:02:00Z',
    };
    expect(readChallenge(JSON.stringify(good))).toBeDefined();
    expect(readChallenge(JSON.stringify({ ...good, ...members }))).toBeUndefined();
  });

  it('about readiness name conditions that are known', () => {
    const condition = { condition: 'derived_key', state: 'active', satisfied: true };
    expect(readReadiness(JSON.stringify({ ready: true, conditions: [condition] }))?.isReady).toBe(true);
    const unknown = { ...condition, condition: 'weather' };
    expect(readReadiness(JSON.stringify({ ready: true, conditions: [unknown] }))).toBeUndefined();
  });
});

function stateOf(members: Partial<EnrollmentState> = {}): EnrollmentState {
  const enrollment = readEnrollment(JSON.stringify(ISSUED));
  if (enrollment?.state !== 'issued') throw new Error('not issued');
  const target = { controlUrl: 'https://control.shop.example', policy: 'epr_1' };
  const { enrollmentId, createdAtMs, key } = enrollment;
  const enrolled = { target, enrollmentId, createdAtMs, key };
  return { keyThumbprint: THUMBPRINT, target, enrolled, attempt: undefined, ...members };
}

describe('the state file', () => {
  it.each<[string, Partial<EnrollmentState>]>([
    ['an enrolled key', {}],
    ['nothing', { enrolled: undefined }],
    ['an attempt that was given up', { enrolled: undefined, mayBeIssued: true }],
    [
      'a submission',
      { attempt: { kind: 'submitting', challengeId: 'ch_1', authSite: 's', sealedChallenge: 'abc' } },
    ],
    [
      'an enrollment',
      { attempt: { kind: 'submitted', enrollmentId: 'e', authSite: 's', createdAtMs: NOW_MS } },
    ],
  ])('with %s is read back as it was', (_what, members) => {
    const state = stateOf(members);
    expect(parseEnrollmentState(formatEnrollmentState(state), 'state')).toEqual(state);
  });

  it('passes over what a later version says', () => {
    const text = formatEnrollmentState(stateOf()).replace('{', '{"mood":"good",');
    expect(parseEnrollmentState(text, 'state')).toEqual(stateOf());
  });

  it.each([
    ['', 'not valid JSON'],
    ['[]', 'must be a mapping'],
    ['{"format":"proofgate.enrollment-state/v2"}', 'format'],
    [formatEnrollmentState(stateOf()).slice(0, -20), 'not valid JSON'],
    [formatEnrollmentState(stateOf()).replace('"active"', '"alive"'), 'enrolled.derived_key.status'],
    [
      formatEnrollmentState(stateOf()).replace('https://api.shop.example"\n', 'api"\n'),
      'signing_profiles[0].origins[0]',
    ],
  ])('that is spoilt is refused with its place', (text, place) => {
    const act = () => parseEnrollmentState(text, 'k.enrollment.json');
    expect(act).toThrow(expect.objectContaining({ code: 'enrollment_state_invalid' }));
    expect(act).toThrow(place);
    expect(act).toThrow('k.enrollment.json');
  });
});

describe('an enrolled signer', () => {
  const at = (nowMs: number) => ({ keyThumbprint: THUMBPRINT, keyFile: 'key.pem', nowMs });

  it('signs with the coordinates of its enrollment until the key expires', () => {
    const { coordinates, profiles } = enrolledProfiles(stateOf(), at(NOW_MS + 3_599_999));
    expect(coordinates).toMatchObject({ keyId: 'dk_1', subject: 'client:billing' });
    expect(profiles).toHaveLength(ISSUED.signing_profiles.length);
    expect(codeOf(() => enrolledProfiles(stateOf(), at(NOW_MS + 3_600_000)))).toBe('key_expired');
  });

  it('is refused with a code for whatever is missing', () => {
    const { attempt: _none, ...rest } = stateOf();
    const attempt = { kind: 'submitted', enrollmentId: 'e', authSite: 's', createdAtMs: NOW_MS } as const;
    expect(codeOf(() => enrolledProfiles(undefined, at(NOW_MS)))).toBe('enrollment_missing');
    expect(codeOf(() => enrolledProfiles(stateOf({ enrolled: undefined }), at(NOW_MS)))).toBe(
      'enrollment_missing',
    );
    expect(codeOf(() => enrolledProfiles({ ...rest, enrolled: undefined, attempt }, at(NOW_MS)))).toBe(
      'enrollment_pending',
    );
    const other = newEd25519Key().publicKey.thumbprint;
    expect(codeOf(() => enrolledProfiles(stateOf({ keyThumbprint: other }), at(NOW_MS)))).toBe(
      'enrollment_state_mismatch',
    );
  });
});

it.each([
  [60_000, 300_000, 51_000],
  [3_600_000, 300_000, 3_300_000],
  [3_600_000, 1000, 3_599_000],
  [600_000, 300_000, 510_000],
])('a key of %d ms with a skew of %d ms is renewed after %d ms', (lifeMs, skewMs, afterMs) => {
  const record = stateOf().enrolled;
  if (record === undefined) throw new Error('no key');
  const key = { ...record.key, expiresAtMs: NOW_MS + lifeMs };
  expect(refreshFromMs({ ...record, key }, skewMs)).toBe(NOW_MS + afterMs);
});
