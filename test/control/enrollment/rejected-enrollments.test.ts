/**
 * Tests the audit event of a rejected challenge or submission: code, policy and verified subject, at most once a minute for
 * each kind.
 */
import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import type { EnrollmentPolicyView } from '../../../src/control/contract/sources-contract.ts';
import {
  BY,
  EnrollmentEnvironment,
  ed25519Jwk,
  newKey,
  refusalOf,
  SITE,
  SUBJECT,
  submissionOf,
} from './enrollment-fixture.ts';

let env: EnrollmentEnvironment;
let policy: EnrollmentPolicyView;

beforeAll(async () => {
  env = await EnrollmentEnvironment.open();
});
afterAll(() => env.close());
beforeEach(async () => {
  policy = await env.policy(await env.active());
});

const challengeUnder = (reference: string) =>
  env.workloads.challenge(
    { policy: reference, provider: 'oidc_jwks', public_key: ed25519Jwk(newKey()) },
    'req_challenge',
  );

async function problems(policyId: string) {
  const reach = { kind: 'everything' } as const;
  const rows = await env.read((tx) => tx.audit.list({ resourceId: policyId, reach, limit: 100 }));
  return rows
    .filter(({ kind }) => kind === 'proofgate.control.enrollment.refuse')
    .map(({ actor, siteId, requestId, after }) => ({
      actor,
      siteId,
      requestId,
      ...JSON.parse(after ?? '{}'),
    }))
    .reverse();
}

test('a challenge that is refused: code and policy', async () => {
  await env.policies.deactivate(policy.policy_id, BY);
  expect(await refusalOf(challengeUnder(policy.reference))).toBe('policy_not_active');
  expect(await problems(policy.policy_id)).toEqual([
    { actor: 'control', siteId: SITE, requestId: 'req_challenge', code: 'policy_not_active', suppressed: 0 },
  ]);
});

test('the same again within a minute is counted in the next event', async () => {
  await env.policies.deactivate(policy.policy_id, BY);
  for (let i = 0; i < 3; i++) await refusalOf(challengeUnder(policy.reference));
  expect(await problems(policy.policy_id)).toHaveLength(1);
  env.ms += 60_000;
  await refusalOf(challengeUnder(policy.reference));
  expect(await problems(policy.policy_id)).toMatchObject([{ suppressed: 0 }, { suppressed: 2 }]);
});

test('a policy that is not there', async () => {
  expect(await refusalOf(challengeUnder('no-such-policy-reference-00000000'))).toBe('policy_unknown');
  expect(await problems('unknown')).toMatchObject([{ siteId: null, code: 'policy_unknown' }]);
});

test('a token that is not verified: its subject is not recorded', async () => {
  const applied = await env.challenge(env.workload(policy));
  const token = env.token({ namespace: 'prod', serviceAccount: 'other' });
  expect(await refusalOf(env.workloads.submit(submissionOf(applied, token)))).toBe('token_subject');
  const [problem] = await problems(policy.policy_id);
  expect(problem).toMatchObject({ actor: 'control', code: 'token_subject' });
  expect(problem).not.toHaveProperty('verified_subject');
});

test('a verified token: its subject is recorded', async () => {
  const limited = await env.policy(await env.active({ display_name: 'second' }), {
    max_keys_per_token: 1,
  });
  const token = env.token();
  await env.enroll(env.workload(limited), token);
  expect(await refusalOf(env.enroll(env.workload(limited), token))).toBe('token_key_limit');
  expect(await problems(limited.policy_id)).toMatchObject([
    {
      actor: `workload:${env.issuer.issuer}|${SUBJECT}`,
      code: 'token_key_limit',
      verified_issuer: env.issuer.issuer,
      verified_subject: SUBJECT,
    },
  ]);
});
