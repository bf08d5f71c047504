/** Tests submissions: valid ones get a key, and after each rejection no key and no enrollment exists. */
import { generateKeyPairSync } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { EnrollmentPolicyView } from '../../../src/control/contract/sources-contract.ts';
import { MasterKeys } from '../../../src/control/secrets/master-keys.ts';
import type { RevisionName } from '../../../src/control/sources/source-changes.ts';
import {
  BY,
  CONTROL_URL,
  EnrollmentEnvironment,
  ed25519Jwk,
  newKey,
  OTHER_CONTROL_URL,
  PROFILE,
  refusalOf,
  SITE,
  SUBJECT,
  submissionOf,
} from './enrollment-fixture.ts';

let env: EnrollmentEnvironment;
let source: RevisionName;
let policy: EnrollmentPolicyView;

beforeAll(async () => {
  env = await EnrollmentEnvironment.open();
  source = await env.active();
  policy = await env.policy(source);
});
afterAll(() => env.close());

/** Runs an attempt that must fail, and checks that it left no records. */
async function refusedWithoutTrace(attempt: () => Promise<unknown>): Promise<string> {
  const before = { keys: await env.keysOf(), enrollments: await env.enrollmentsOf() };
  const code = await refusalOf(attempt());
  expect({ keys: await env.keysOf(), enrollments: await env.enrollmentsOf() }).toEqual(before);
  return code;
}

describe('challenge', () => {
  const request = () => ({
    policy: policy.reference,
    provider: 'oidc_jwks',
    public_key: ed25519Jwk(newKey()),
  });

  test('is 256 bits, of two minutes, and not kept', async () => {
    const answer = await env.workloads.challenge(request());
    expect(answer.auth_site).toBe(SITE);
    expect(Buffer.from(answer.challenge, 'base64url')).toHaveLength(32);
    expect(Date.parse(answer.expires_at) - env.ms).toBe(120_000);
    const row = await env.read((tx) => tx.enrollments.challenge(answer.challenge_id));
    expect(row).toMatchObject({ policyId: policy.policy_id, enrollmentId: null });
    expect(JSON.stringify(row)).not.toContain(answer.challenge);
  });

  test('two for the same key and policy differ', async () => {
    const same = request();
    const [a, b] = [await env.workloads.challenge(same), await env.workloads.challenge(same)];
    expect(a.challenge).not.toBe(b.challenge);
    expect(a.challenge_id).not.toBe(b.challenge_id);
  });

  test('unsupported_enrollment_provider, policy_unknown', async () => {
    for (const provider of ['aws_iid', 'OIDC_JWKS', 'oidc_jwks ']) {
      const refused = env.workloads.challenge({ ...request(), provider });
      expect(await refusalOf(refused)).toBe('unsupported_enrollment_provider');
    }
    const unknown = `${policy.reference.slice(0, -1)}_`;
    for (const reference of [unknown, policy.policy_id, policy.reference.toLowerCase()]) {
      const refused = env.workloads.challenge({ ...request(), policy: reference });
      expect(await refusalOf(refused)).toBe('policy_unknown');
    }
  });

  test('public_key_invalid: small order, off the curve, not canonical, too short', async () => {
    const hostile = [
      // The identity, a point of order 8, y = p + 1 (the identity again), no point, 31 bytes.
      Buffer.concat([Buffer.from([1]), Buffer.alloc(31)]).toString('base64url'),
      Buffer.from('26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05', 'hex').toString(
        'base64url',
      ),
      Buffer.from(`ee${'ff'.repeat(30)}7f`, 'hex').toString('base64url'),
      Buffer.concat([Buffer.from([2]), Buffer.alloc(31)]).toString('base64url'),
      Buffer.alloc(31, 7).toString('base64url'),
      `${ed25519Jwk(newKey()).x}=`,
    ];
    for (const x of hostile) {
      const refused = env.workloads.challenge({
        ...request(),
        public_key: { kty: 'OKP', crv: 'Ed25519', x },
      });
      expect([x, await refusalOf(refused)]).toEqual([x, 'public_key_invalid']);
    }
  });
});

/** One token for each step of its verification; `workload-token.test.ts` has all of them. */
const BAD_TOKENS: readonly (readonly [code: string, makeToken: () => string])[] = [
  ['token_malformed', () => 'no token'],
  ['token_key_unknown', () => env.token({ header: { kid: 'unknown' } })],
  ['token_signature', () => tampered(env.token())],
  ['token_issuer', () => env.token({ claims: { iss: `${env.issuer.issuer}/` } })],
  ['token_audience', () => env.token({ audience: 'proofgate-other' })],
  ['token_subject', () => env.token({ serviceAccount: 'billing2' })],
  ['token_expired', () => env.token({ expiresInSeconds: 0 })],
];

describe('submission', () => {
  test('a token, a signature, a key: issued at once, inheriting what the client is', async () => {
    const workload = env.workload(policy);
    const applied = await env.challenge(workload);
    const { created, enrollment } = await env.workloads.submit(submissionOf(applied, env.token()));
    expect(created).toBe(true);
    expect(enrollment).toMatchObject({
      auth_site: SITE,
      state: 'issued',
      created_at: new Date(env.ms).toISOString(),
      derived_key: {
        fingerprint: workload.key.publicKey.thumbprint,
        status: 'active',
        client_id: 'billing',
        issuer: `${CONTROL_URL}/sites/${SITE}`,
        trust_domain: 'shop.example',
        subject: 'client:billing',
        key_binding: 'software',
      },
      signing_profiles: [PROFILE],
    });
    const keyId = enrollment.derived_key?.key_id ?? '';
    const key = await env.read((tx) => tx.keys.find(keyId));
    expect(key).toMatchObject({
      clientId: 'billing',
      policyId: policy.policy_id,
      enrollmentId: enrollment.enrollment_id,
      verifiedIssuer: env.issuer.issuer,
      verifiedSubject: SUBJECT,
      listedRevision: null,
    });
    expect(JSON.parse(key?.provenance ?? '')).toMatchObject({ kubernetes_namespace: 'prod' });
    expect((await env.changesOf()).filter(({ reference }) => reference === keyId)).toHaveLength(1);
    expect(await env.auditKinds(enrollment.enrollment_id)).toEqual(['enrollment.submit']);
    expect(await env.auditKinds(keyId)).toEqual(['derived_key.issue']);
  });

  test('any of the public URLs may be signed, and no other', async () => {
    const applied = await env.challenge(env.workload(policy));
    const token = env.token();
    for (const url of ['https://evil.example', `${CONTROL_URL}/`, 'http://control.shop.example', '']) {
      const code = await refusedWithoutTrace(() => env.workloads.submit(submissionOf(applied, token, url)));
      expect([url, code]).toEqual([url, 'signature_invalid']);
    }
    const { enrollment } = await env.workloads.submit(submissionOf(applied, token, OTHER_CONTROL_URL));
    expect(enrollment.state).toBe('issued');
  });

  test("a key ends with its token, or with the policy's lifetime when that is earlier", async () => {
    const seconds = Math.floor(env.ms / 1000);
    const long = await env.enroll(env.workload(policy), env.token({ expiresInSeconds: 700 }));
    expect(Date.parse(long.derived_key?.expires_at ?? '') / 1000).toBe(seconds + 700);
    const short = await env.policy(source, { max_key_lifetime_seconds: 60 });
    const bounded = await env.enroll(env.workload(short), env.token({ expiresInSeconds: 700 }));
    expect(Date.parse(bounded.derived_key?.expires_at ?? '') / 1000).toBe(seconds + 60);
  });

  test('the same submission gets the same enrollment, also when the challenge is long over', async () => {
    const submission = submissionOf(await env.challenge(env.workload(policy)), env.token());
    const first = await env.workloads.submit(submission);
    const again = await env.workloads.submit(submission);
    env.ms += 1_200_000;
    await env.store.writeUnaudited(undefined, (tx) => tx.enrollments.pruneChallenges(env.ms));
    const late = await env.workloads.submit(submission);
    expect([again.created, late.created]).toEqual([false, false]);
    expect(again.enrollment).toEqual(first.enrollment);
    expect(late.enrollment.enrollment_id).toBe(first.enrollment.enrollment_id);
    expect(
      (await env.keysOf()).filter((key) => key.enrollmentId === first.enrollment.enrollment_id),
    ).toHaveLength(1);
  });

  test('another token that the same key signed gets the same enrollment, also when the challenge is long over', async () => {
    const applied = await env.challenge(env.workload(policy));
    const first = await env.workloads.submit(submissionOf(applied, env.token()));
    const replaced = submissionOf(applied, env.token());
    const before = { keys: await env.keysOf(), enrollments: await env.enrollmentsOf() };
    const again = await env.workloads.submit(replaced);
    env.ms += 1_200_000;
    await env.store.writeUnaudited(undefined, (tx) => tx.enrollments.pruneChallenges(env.ms));
    const late = await env.workloads.submit(replaced);
    expect([again.created, late.created]).toEqual([false, false]);
    expect(again.enrollment).toEqual(first.enrollment);
    expect(late.enrollment.enrollment_id).toBe(first.enrollment.enrollment_id);
    expect({ keys: await env.keysOf(), enrollments: await env.enrollmentsOf() }).toEqual(before);
  });

  test('an answer to a consumed challenge that its key did not sign is challenge_consumed', async () => {
    const applied = await env.challenge(env.workload(policy));
    const token = env.token();
    const submission = submissionOf(applied, token);
    await env.workloads.submit(submission);
    const others = [
      submissionOf({ ...applied, key: newKey() }, env.token()),
      submissionOf({ ...applied, policyReference: 'epr_other' }, token),
      submissionOf(applied, token, 'https://evil.example'),
      { ...submission, signature: Buffer.alloc(64).toString('base64url') },
      { ...submission, signature: '' },
      { ...submission, workload_token: 'x' },
    ];
    for (const other of others) {
      expect(await refusedWithoutTrace(() => env.workloads.submit(other))).toBe('challenge_consumed');
    }
  });

  test('1,000 concurrent submissions of one challenge make one key', async () => {
    const applied = await env.challenge(env.workload(policy));
    const token = env.token();
    const before = await env.keysOf();
    // Half of them share a token; the others have separate tokens.
    const submissions = Array.from({ length: 1000 }, (_, index) =>
      submissionOf(applied, index % 2 === 0 ? token : env.token({ pod: `pod-${index % 20}` })),
    );
    const outcomes = await Promise.all(
      submissions.map((submission) =>
        env.workloads.submit(submission).then(
          ({ created, enrollment }) => ({ created, id: enrollment.enrollment_id, code: 'accepted' }),
          (error: { code?: string }) => ({ created: false, id: undefined, code: error.code ?? 'unknown' }),
        ),
      ),
    );
    expect(outcomes.filter(({ created }) => created)).toHaveLength(1);
    expect(new Set(outcomes.flatMap(({ id }) => id ?? [])).size).toBe(1);
    expect(new Set(outcomes.map(({ code }) => code))).toEqual(new Set(['accepted']));
    expect(await env.keysOf()).toHaveLength(before.length + 1);
  });

  test('challenge_unknown, challenge_expired', async () => {
    const applied = await env.challenge(env.workload(policy));
    const submission = submissionOf(applied, env.token());
    const unknown = { ...submission, challenge_id: `${submission.challenge_id.slice(0, -1)}_` };
    expect(await refusedWithoutTrace(() => env.workloads.submit(unknown))).toBe('challenge_unknown');
    env.ms += 120_000;
    expect(await refusedWithoutTrace(() => env.workloads.submit(submission))).toBe('challenge_expired');
    env.ms -= 1;
    expect((await env.workloads.submit(submission)).enrollment.state).toBe('issued');
  });

  test('a challenge that ends while the token is verified is not accepted any more', async () => {
    const submission = submissionOf(await env.challenge(env.workload(policy)), env.token());
    env.ms += 119_999;
    const submitting = refusedWithoutTrace(() =>
      env.workloads.submit(submission, async () => {
        env.ms += 1;
      }),
    );
    expect(await submitting).toBe('challenge_expired');
  });

  test('signature_invalid: by another key, over another challenge, policy or token; malformed', async () => {
    const applied = await env.challenge(env.workload(policy));
    const other = await env.challenge(env.workload(policy));
    const token = env.token();
    const sound = submissionOf(applied, token);
    const wrong = [
      submissionOf({ ...applied, key: newKey() }, token),
      submissionOf(
        { ...applied, challenge: { ...applied.challenge, challenge: other.challenge.challenge } },
        token,
      ),
      submissionOf({ ...applied, policyReference: 'epr_other' }, token),
      { ...sound, workload_token: env.token({ pod: 'another' }) },
      { ...sound, signature: submissionOf(other, token).signature },
      { ...sound, signature: `${sound.signature}=` },
      { ...sound, signature: `${sound.signature}AAAA` },
      { ...sound, signature: '' },
      { ...sound, challenge_id: other.challenge.challenge_id },
    ];
    for (const submission of wrong) {
      expect(await refusedWithoutTrace(() => env.workloads.submit(submission))).toBe('signature_invalid');
    }
    expect((await env.workloads.submit(sound)).enrollment.state).toBe('issued');
  });

  test('a submission for one policy is no good for another, of this site or of another one', async () => {
    await env.addSite('other');
    const otherSource = await env.active({ audience: 'other-audience' }, 'other');
    const elsewhere = await env.policy(otherSource, {}, 'other');
    const sibling = await env.policy(source);
    const key = newKey();
    const mine = await env.challenge(env.workload(policy, key));
    const token = env.token();
    const mySubmission = submissionOf(mine, token);
    for (const { reference } of [sibling, elsewhere]) {
      const theirs = await env.challenge(env.workload({ reference }, key));
      const replayed = { ...mySubmission, challenge_id: theirs.challenge.challenge_id };
      expect(await refusedWithoutTrace(() => env.workloads.submit(replayed))).toBe('signature_invalid');
      const crossed = submissionOf({ ...theirs, policyReference: policy.reference }, token);
      expect(await refusedWithoutTrace(() => env.workloads.submit(crossed))).toBe('signature_invalid');
    }
    // A token for this site, with a valid signature for the other site.
    const theirs = await env.challenge(env.workload(elsewhere, key));
    const lured = submissionOf(theirs, token);
    expect(await refusedWithoutTrace(() => env.workloads.submit(lured))).toBe('token_audience');
    expect(await env.keysOf('other')).toEqual([]);
  });

  test.each(BAD_TOKENS)('%s', async (code, makeToken) => {
    const applied = await env.challenge(env.workload(policy));
    const refused = await refusedWithoutTrace(() => env.workloads.submit(submissionOf(applied, makeToken())));
    expect(refused).toBe(code);
    // The rejection did not consume the challenge: it accepts a better token.
    const { enrollment } = await env.workloads.submit(submissionOf(applied, env.token()));
    expect(enrollment.state).toBe('issued');
  });

  test('issuer keys that rotate during use: old and new tokens are taken while both are published', async () => {
    const old = env.token();
    env.issuer.rotate();
    env.ms += 61_000;
    expect((await env.enroll(env.workload(policy), env.token())).state).toBe('issued');
    expect((await env.enroll(env.workload(policy), old)).state).toBe('issued');
    env.issuer.dropOldKeys();
    env.ms += 400_000;
    const applied = await env.challenge(env.workload(policy));
    expect(await refusalOf(env.workloads.submit(submissionOf(applied, old)))).toBe('token_key_unknown');
  });

  test('issuer_keys_unavailable: 24 h after the last good refresh, and says when to ask again', async () => {
    env.issuer.setFault('keys', { kind: 'status', status: 500 });
    env.ms += 25 * 3_600_000;
    const applied = await env.challenge(env.workload(policy));
    const submission = submissionOf(applied, env.token());
    const before = await env.keysOf();
    await expect(env.workloads.submit(submission)).rejects.toMatchObject({
      code: 'issuer_keys_unavailable',
      retryAfterSeconds: expect.any(Number),
    });
    expect(await env.keysOf()).toEqual(before);
    env.issuer.setFault('keys', undefined);
    env.ms += 60_000;
    expect((await env.workloads.submit(submission)).enrollment.state).toBe('issued');
  });

  test('a policy that is bound to another revision while the token is verified: unavailable, then accepted', async () => {
    const rebound = await env.policy(source);
    const submission = submissionOf(await env.challenge(env.workload(rebound)), env.token());
    await env.sources.drafts.addRevision(source.sourceId, {}, BY);
    const second = { ...source, revision: 2 };
    await env.sources.lifecycle.validate(second, BY);
    await env.activate(second);
    const rebinding = { ...env.policyCreation(second), source_revision: 2 };
    // Changes the policy between its check and the transaction that accepts.
    const keySets = env.cache.keysFor.bind(env.cache);
    env.cache.keysFor = async (...of) => {
      await env.acknowledge(second);
      await env.policies.change(rebound.policy_id, { source_revision: rebinding.source_revision }, 1, BY);
      env.cache.keysFor = keySets;
      return keySets(...of);
    };
    expect(await refusedWithoutTrace(() => env.workloads.submit(submission))).toBe('unavailable');
    expect((await env.workloads.submit(submission)).enrollment.state).toBe('issued');
    source = second;
    policy = await env.policy(second);
  });
});

test('an ES256 token with its other signature is the same token', async () => {
  const cluster = await env.anotherIssuer({ algorithm: 'ES256' });
  const { issuer, jwksUri: jwks_uri } = cluster;
  const created = await env.sources.drafts.create(SITE, env.sourceCreation({ issuer, jwks_uri }), BY);
  const name = { sourceId: created.view.source_id, revision: 1 };
  await env.sources.lifecycle.validate(name, BY);
  await env.activate(name, new URL(issuer).host);
  await env.acknowledge(name);
  const single = await env.policy(name, { verified_issuer: issuer, max_keys_per_token: 1 });
  const token = cluster.token({ nowMs: env.ms });
  await env.enroll(env.workload(single), token);
  const applied = await env.challenge(env.workload(single));
  const other = otherSignature(token);
  expect(other).not.toBe(token);
  const code = await refusedWithoutTrace(() => env.workloads.submit(submissionOf(applied, other)));
  expect(code).toBe('token_key_limit');
});

describe('limits', () => {
  test('one token enrolls five keys, and the same keys again; a policy may say one', async () => {
    const token = env.token();
    const workloads = Array.from({ length: 5 }, () => env.workload(policy));
    for (const workload of workloads) expect((await env.enroll(workload, token)).state).toBe('issued');
    const sixth = await env.challenge(env.workload(policy));
    const refused = (): Promise<unknown> => env.workloads.submit(submissionOf(sixth, token));
    expect(await refusedWithoutTrace(refused)).toBe('token_key_limit');
    expect((await env.enroll(workloads[0] ?? sixth, token)).state).toBe('issued');
    // A different token of the same service account has a separate limit of five.
    expect((await env.workloads.submit(submissionOf(sixth, env.token()))).enrollment.state).toBe('issued');

    const single = await env.policy(source, { max_keys_per_token: 1 });
    const once = env.token();
    await env.enroll(env.workload(single), once);
    const second = await env.challenge(env.workload(single));
    expect(await refusedWithoutTrace(() => env.workloads.submit(submissionOf(second, once)))).toBe(
      'token_key_limit',
    );
  });

  test('the limit on a policy is asked before anything costly, and refuses', async () => {
    const applied = await env.challenge(env.workload(policy));
    const asked: string[] = [];
    const submission = { ...submissionOf(applied, env.token()), signature: 'AAAA' };
    const limited = env.workloads.submit(submission, async (reference) => {
      asked.push(reference);
      throw Object.assign(new Error(), { code: 'rate_limited' });
    });
    expect(await refusalOf(limited)).toBe('rate_limited');
    expect(asked).toEqual([policy.reference]);
  });
});

function tampered(token: string): string {
  const [header = '', payload = '', signature = ''] = token.split('.');
  const bytes = Buffer.from(signature, 'base64url');
  bytes[10] = (bytes[10] ?? 0) ^ 1;
  return `${header}.${payload}.${bytes.toString('base64url')}`;
}

test('a challenge of the old master key is accepted while the new one encrypts, and rejected without the old one', async () => {
  const [oldKey] = env.masterKeys.all;
  const [newKeys] = MasterKeys.random().all;
  const workload = { key: newKey(), policyReference: policy.reference };
  const [first, second] = [await env.challenge(workload), await env.challenge(workload)];
  const { workloads } = env.withMasterKeys(new MasterKeys(newKeys, oldKey));
  expect(await workloads.submit(submissionOf(first, env.token()))).toMatchObject({ created: true });
  const withoutOld = env.withMasterKeys(new MasterKeys(newKeys));
  const late = withoutOld.workloads.submit(submissionOf(second, env.token()));
  expect(await refusalOf(late)).toBe('signature_invalid');
});

test('a P-256 key is not an Ed25519 key', async () => {
  const jwk = generateKeyPairSync('ec', { namedCurve: 'P-256' }).publicKey.export({ format: 'jwk' });
  const forged = { policy: policy.reference, provider: 'oidc_jwks', public_key: jwk as never };
  expect(await refusalOf(env.workloads.challenge(forged))).toBe('public_key_invalid');
});

/** ECDSA signatures are malleable: if (r, s) is valid, so is (r, n - s). */
function otherSignature(token: string): string {
  const order = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n;
  const [header, payload, signature = ''] = token.split('.');
  const bytes = Buffer.from(signature, 'base64url');
  const s = BigInt(`0x${bytes.subarray(32).toString('hex')}`);
  const other = Buffer.from((order - s).toString(16).padStart(64, '0'), 'hex');
  return `${header}.${payload}.${Buffer.concat([bytes.subarray(0, 32), other]).toString('base64url')}`;
}
