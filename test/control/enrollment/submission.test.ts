/** Tests submissions: valid ones get a key, and after each rejection no key and no enrollment exists. */
import { generateKeyPairSync } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { EnrollmentPolicyView } from '../../../src/api-contract/sources-contract.ts';
import type { RevisionName } from '../../../src/control/sources/source-changes.ts';
import {
  BY,
  CONTROL_URL,
  EnrollmentWorld,
  ed25519Jwk,
  newKey,
  OTHER_CONTROL_URL,
  PROFILE,
  refusalOf,
  SITE,
  SUBJECT,
  submissionOf,
} from './enrollment-fixture.ts';

let world: EnrollmentWorld;
let source: RevisionName;
let policy: EnrollmentPolicyView;

beforeAll(async () => {
  world = await EnrollmentWorld.open();
  source = await world.active();
  policy = await world.policy(source);
});
afterAll(() => world.close());

/** Runs an attempt that must fail, and checks that it left no records. */
async function refusedWithoutTrace(attempt: () => Promise<unknown>): Promise<string> {
  const before = { keys: await world.keysOf(), enrollments: await world.enrollmentsOf() };
  const code = await refusalOf(attempt());
  expect({ keys: await world.keysOf(), enrollments: await world.enrollmentsOf() }).toEqual(before);
  return code;
}

describe('challenge', () => {
  const request = () => ({
    policy: policy.reference,
    provider: 'oidc_jwks',
    public_key: ed25519Jwk(newKey()),
  });

  test('is 256 bits, of two minutes, and not kept', async () => {
    const answer = await world.workloads.challenge(request());
    expect(answer.auth_site).toBe(SITE);
    expect(Buffer.from(answer.challenge, 'base64url')).toHaveLength(32);
    expect(Date.parse(answer.expires_at) - world.ms).toBe(120_000);
    const row = await world.read((tx) => tx.enrollments.challenge(answer.challenge_id));
    expect(row).toMatchObject({ policyId: policy.policy_id, enrollmentId: null });
    expect(JSON.stringify(row)).not.toContain(answer.challenge);
  });

  test('two for the same key and policy differ', async () => {
    const same = request();
    const [a, b] = [await world.workloads.challenge(same), await world.workloads.challenge(same)];
    expect(a.challenge).not.toBe(b.challenge);
    expect(a.challenge_id).not.toBe(b.challenge_id);
  });

  test('unsupported_enrollment_provider, policy_unknown', async () => {
    for (const provider of ['aws_iid', 'OIDC_JWKS', 'oidc_jwks ']) {
      const refused = world.workloads.challenge({ ...request(), provider });
      expect(await refusalOf(refused)).toBe('unsupported_enrollment_provider');
    }
    const unknown = `${policy.reference.slice(0, -1)}_`;
    for (const reference of [unknown, policy.policy_id, policy.reference.toLowerCase()]) {
      const refused = world.workloads.challenge({ ...request(), policy: reference });
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
      const refused = world.workloads.challenge({
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
  ['token_key_unknown', () => world.token({ header: { kid: 'unknown' } })],
  ['token_signature', () => tampered(world.token())],
  ['token_issuer', () => world.token({ claims: { iss: `${world.issuer.issuer}/` } })],
  ['token_audience', () => world.token({ audience: 'proofgate-other' })],
  ['token_subject', () => world.token({ serviceAccount: 'billing2' })],
  ['token_expired', () => world.token({ expiresInSeconds: 0 })],
];

describe('submission', () => {
  test('a token, a signature, a key: issued at once, inheriting what the client is', async () => {
    const workload = world.workload(policy);
    const applied = await world.challenge(workload);
    const { created, enrollment } = await world.workloads.submit(submissionOf(applied, world.token()));
    expect(created).toBe(true);
    expect(enrollment).toMatchObject({
      auth_site: SITE,
      state: 'issued',
      created_at: new Date(world.ms).toISOString(),
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
    const key = await world.read((tx) => tx.keys.find(keyId));
    expect(key).toMatchObject({
      clientId: 'billing',
      policyId: policy.policy_id,
      enrollmentId: enrollment.enrollment_id,
      verifiedIssuer: world.issuer.issuer,
      verifiedSubject: SUBJECT,
      listedRevision: null,
    });
    expect(JSON.parse(key?.provenance ?? '')).toMatchObject({ kubernetes_namespace: 'prod' });
    expect((await world.changesOf()).filter(({ reference }) => reference === keyId)).toHaveLength(1);
    expect(await world.auditKinds(enrollment.enrollment_id)).toEqual(['enrollment.submit']);
    expect(await world.auditKinds(keyId)).toEqual(['derived_key.issue']);
  });

  test('any of the public URLs may be signed, and no other', async () => {
    const applied = await world.challenge(world.workload(policy));
    const token = world.token();
    for (const url of ['https://evil.example', `${CONTROL_URL}/`, 'http://control.shop.example', '']) {
      const code = await refusedWithoutTrace(() => world.workloads.submit(submissionOf(applied, token, url)));
      expect([url, code]).toEqual([url, 'signature_invalid']);
    }
    const { enrollment } = await world.workloads.submit(submissionOf(applied, token, OTHER_CONTROL_URL));
    expect(enrollment.state).toBe('issued');
  });

  test("a key ends with its token, or with the policy's lifetime when that is earlier", async () => {
    const seconds = Math.floor(world.ms / 1000);
    const long = await world.enroll(world.workload(policy), world.token({ expiresInSeconds: 700 }));
    expect(Date.parse(long.derived_key?.expires_at ?? '') / 1000).toBe(seconds + 700);
    const short = await world.policy(source, { max_key_lifetime_seconds: 60 });
    const bounded = await world.enroll(world.workload(short), world.token({ expiresInSeconds: 700 }));
    expect(Date.parse(bounded.derived_key?.expires_at ?? '') / 1000).toBe(seconds + 60);
  });

  test('the same submission gets the same enrollment, also when the challenge is long over', async () => {
    const submission = submissionOf(await world.challenge(world.workload(policy)), world.token());
    const first = await world.workloads.submit(submission);
    const again = await world.workloads.submit(submission);
    world.ms += 1_200_000;
    await world.store.housekeep(undefined, (tx) => tx.enrollments.pruneChallenges(world.ms));
    const late = await world.workloads.submit(submission);
    expect([again.created, late.created]).toEqual([false, false]);
    expect(again.enrollment).toEqual(first.enrollment);
    expect(late.enrollment.enrollment_id).toBe(first.enrollment.enrollment_id);
    expect(
      (await world.keysOf()).filter((key) => key.enrollmentId === first.enrollment.enrollment_id),
    ).toHaveLength(1);
  });

  test('another body for a consumed challenge is challenge_consumed, whatever it holds', async () => {
    const applied = await world.challenge(world.workload(policy));
    const submission = submissionOf(applied, world.token());
    await world.workloads.submit(submission);
    const others = [
      submissionOf(applied, world.token()),
      { ...submission, signature: Buffer.alloc(64).toString('base64url') },
      { ...submission, workload_token: 'x' },
    ];
    for (const other of others) {
      expect(await refusedWithoutTrace(() => world.workloads.submit(other))).toBe('challenge_consumed');
    }
  });

  test('1,000 concurrent submissions of one challenge make one key', async () => {
    const applied = await world.challenge(world.workload(policy));
    const token = world.token();
    const before = await world.keysOf();
    // Half of them share a token; the others have separate tokens.
    const submissions = Array.from({ length: 1000 }, (_, index) =>
      submissionOf(applied, index % 2 === 0 ? token : world.token({ pod: `pod-${index % 20}` })),
    );
    const outcomes = await Promise.all(
      submissions.map((submission) =>
        world.workloads.submit(submission).then(
          ({ created, enrollment }) => ({ created, id: enrollment.enrollment_id, code: 'accepted' }),
          (error: { code?: string }) => ({ created: false, id: undefined, code: error.code ?? 'unknown' }),
        ),
      ),
    );
    expect(outcomes.filter(({ created }) => created)).toHaveLength(1);
    expect(new Set(outcomes.flatMap(({ id }) => id ?? [])).size).toBe(1);
    expect(new Set(outcomes.map(({ code }) => code))).toEqual(new Set(['accepted', 'challenge_consumed']));
    expect(await world.keysOf()).toHaveLength(before.length + 1);
  }, 120_000);

  test('challenge_unknown, challenge_expired', async () => {
    const applied = await world.challenge(world.workload(policy));
    const submission = submissionOf(applied, world.token());
    const unknown = { ...submission, challenge_id: `${submission.challenge_id.slice(0, -1)}_` };
    expect(await refusedWithoutTrace(() => world.workloads.submit(unknown))).toBe('challenge_unknown');
    world.ms += 120_000;
    expect(await refusedWithoutTrace(() => world.workloads.submit(submission))).toBe('challenge_expired');
    world.ms -= 1;
    expect((await world.workloads.submit(submission)).enrollment.state).toBe('issued');
  });

  test('a challenge that ends while the token is verified is not accepted any more', async () => {
    const submission = submissionOf(await world.challenge(world.workload(policy)), world.token());
    world.ms += 119_999;
    const submitting = refusedWithoutTrace(() =>
      world.workloads.submit(submission, async () => {
        world.ms += 1;
      }),
    );
    expect(await submitting).toBe('challenge_expired');
  });

  test('signature_invalid: by another key, over another challenge, policy or token; malformed', async () => {
    const applied = await world.challenge(world.workload(policy));
    const other = await world.challenge(world.workload(policy));
    const token = world.token();
    const sound = submissionOf(applied, token);
    const wrong = [
      submissionOf({ ...applied, key: newKey() }, token),
      submissionOf(
        { ...applied, challenge: { ...applied.challenge, challenge: other.challenge.challenge } },
        token,
      ),
      submissionOf({ ...applied, policyReference: 'epr_other' }, token),
      { ...sound, workload_token: world.token({ pod: 'another' }) },
      { ...sound, signature: submissionOf(other, token).signature },
      { ...sound, signature: `${sound.signature}=` },
      { ...sound, signature: `${sound.signature}AAAA` },
      { ...sound, signature: '' },
      { ...sound, challenge_id: other.challenge.challenge_id },
    ];
    for (const submission of wrong) {
      expect(await refusedWithoutTrace(() => world.workloads.submit(submission))).toBe('signature_invalid');
    }
    expect((await world.workloads.submit(sound)).enrollment.state).toBe('issued');
  });

  test('a submission for one policy is no good for another, of this site or of another one', async () => {
    await world.addSite('other');
    const otherSource = await world.active({ audience: 'other-audience' }, 'other');
    const elsewhere = await world.policy(otherSource, {}, 'other');
    const sibling = await world.policy(source);
    const key = newKey();
    const mine = await world.challenge(world.workload(policy, key));
    const token = world.token();
    const mySubmission = submissionOf(mine, token);
    for (const { reference } of [sibling, elsewhere]) {
      const theirs = await world.challenge(world.workload({ reference }, key));
      const replayed = { ...mySubmission, challenge_id: theirs.challenge.challenge_id };
      expect(await refusedWithoutTrace(() => world.workloads.submit(replayed))).toBe('signature_invalid');
      const crossed = submissionOf({ ...theirs, policyReference: policy.reference }, token);
      expect(await refusedWithoutTrace(() => world.workloads.submit(crossed))).toBe('signature_invalid');
    }
    // A token for this site, with a valid signature for the other site.
    const theirs = await world.challenge(world.workload(elsewhere, key));
    const lured = submissionOf(theirs, token);
    expect(await refusedWithoutTrace(() => world.workloads.submit(lured))).toBe('token_audience');
    expect(await world.keysOf('other')).toEqual([]);
  });

  test.each(BAD_TOKENS)('%s', async (code, makeToken) => {
    const applied = await world.challenge(world.workload(policy));
    const refused = await refusedWithoutTrace(() =>
      world.workloads.submit(submissionOf(applied, makeToken())),
    );
    expect(refused).toBe(code);
    // The rejection did not consume the challenge: it accepts a better token.
    const { enrollment } = await world.workloads.submit(submissionOf(applied, world.token()));
    expect(enrollment.state).toBe('issued');
  });

  test('issuer keys that rotate during use: old and new tokens are taken while both are published', async () => {
    const old = world.token();
    world.issuer.rotate();
    world.ms += 61_000;
    expect((await world.enroll(world.workload(policy), world.token())).state).toBe('issued');
    expect((await world.enroll(world.workload(policy), old)).state).toBe('issued');
    world.issuer.dropOldKeys();
    world.ms += 400_000;
    const applied = await world.challenge(world.workload(policy));
    expect(await refusalOf(world.workloads.submit(submissionOf(applied, old)))).toBe('token_key_unknown');
  });

  test('issuer_keys_unavailable: 24 h after the last good refresh, and says when to ask again', async () => {
    world.issuer.setFault('keys', { kind: 'status', status: 500 });
    world.ms += 25 * 3_600_000;
    const applied = await world.challenge(world.workload(policy));
    const submission = submissionOf(applied, world.token());
    const before = await world.keysOf();
    await expect(world.workloads.submit(submission)).rejects.toMatchObject({
      code: 'issuer_keys_unavailable',
      retryAfterSeconds: expect.any(Number),
    });
    expect(await world.keysOf()).toEqual(before);
    world.issuer.setFault('keys', undefined);
    world.ms += 60_000;
    expect((await world.workloads.submit(submission)).enrollment.state).toBe('issued');
  });

  test('a policy that is bound to another revision while the token is verified: unavailable, then accepted', async () => {
    const rebound = await world.policy(source);
    const submission = submissionOf(await world.challenge(world.workload(rebound)), world.token());
    await world.sources.drafts.addRevision(source.sourceId, {}, BY);
    const second = { ...source, revision: 2 };
    await world.sources.lifecycle.validate(second, BY);
    await world.activate(second);
    const rebinding = { ...world.policyCreation(second), source_revision: 2 };
    // Changes the policy between its check and the transaction that accepts.
    const keySets = world.cache.keysFor.bind(world.cache);
    world.cache.keysFor = async (...of) => {
      await world.acknowledge(second);
      await world.policies.change(rebound.policy_id, { source_revision: rebinding.source_revision }, 1, BY);
      world.cache.keysFor = keySets;
      return keySets(...of);
    };
    expect(await refusedWithoutTrace(() => world.workloads.submit(submission))).toBe('unavailable');
    expect((await world.workloads.submit(submission)).enrollment.state).toBe('issued');
    source = second;
    policy = await world.policy(second);
  });
});

test('an ES256 token with its other signature is the same token', async () => {
  const cluster = await world.anotherIssuer({ algorithm: 'ES256' });
  const { issuer, jwksUri: jwks_uri } = cluster;
  const created = await world.sources.drafts.create(SITE, world.sourceCreation({ issuer, jwks_uri }), BY);
  const name = { sourceId: created.view.source_id, revision: 1 };
  await world.sources.lifecycle.validate(name, BY);
  await world.activate(name, new URL(issuer).host);
  await world.acknowledge(name);
  const single = await world.policy(name, { verified_issuer: issuer, max_keys_per_token: 1 });
  const token = cluster.token({ nowMs: world.ms });
  await world.enroll(world.workload(single), token);
  const applied = await world.challenge(world.workload(single));
  const other = otherSignature(token);
  expect(other).not.toBe(token);
  const code = await refusedWithoutTrace(() => world.workloads.submit(submissionOf(applied, other)));
  expect(code).toBe('token_key_limit');
});

describe('limits', () => {
  test('one token enrolls five keys, and the same keys again; a policy may say one', async () => {
    const token = world.token();
    const workloads = Array.from({ length: 5 }, () => world.workload(policy));
    for (const workload of workloads) expect((await world.enroll(workload, token)).state).toBe('issued');
    const sixth = await world.challenge(world.workload(policy));
    const refused = (): Promise<unknown> => world.workloads.submit(submissionOf(sixth, token));
    expect(await refusedWithoutTrace(refused)).toBe('token_key_limit');
    expect((await world.enroll(workloads[0] ?? sixth, token)).state).toBe('issued');
    // A different token of the same service account has a separate limit of five.
    expect((await world.workloads.submit(submissionOf(sixth, world.token()))).enrollment.state).toBe(
      'issued',
    );

    const single = await world.policy(source, { max_keys_per_token: 1 });
    const once = world.token();
    await world.enroll(world.workload(single), once);
    const second = await world.challenge(world.workload(single));
    expect(await refusedWithoutTrace(() => world.workloads.submit(submissionOf(second, once)))).toBe(
      'token_key_limit',
    );
  });

  test('the limit on a policy is asked before anything costly, and refuses', async () => {
    const applied = await world.challenge(world.workload(policy));
    const asked: string[] = [];
    const submission = { ...submissionOf(applied, world.token()), signature: 'AAAA' };
    const limited = world.workloads.submit(submission, async (reference) => {
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

test('a P-256 key is not an Ed25519 key', async () => {
  const jwk = generateKeyPairSync('ec', { namedCurve: 'P-256' }).publicKey.export({ format: 'jwk' });
  const forged = { policy: policy.reference, provider: 'oidc_jwks', public_key: jwk as never };
  expect(await refusalOf(world.workloads.challenge(forged))).toBe('public_key_invalid');
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
