/** Tests that a policy moves to another source without a new reference, and admits no workload under the facts of the old one. */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { EnrollmentPolicyView } from '../../../src/control/contract/sources-contract.ts';
import { bindWaitingPolicies } from '../../../src/control/keys/waiting-policies.ts';
import type { RevisionName } from '../../../src/control/sources/source-changes.ts';
import type { ServiceAccountIssuer } from '../../support/fakes/service-account-issuer.ts';
import { databaseKinds } from '../store/databases.ts';
import { BY, EnrollmentEnvironment, refusalOf, submissionOf } from './enrollment-fixture.ts';

describe.each(databaseKinds())('on $name', (database) => {
  let env: EnrollmentEnvironment;
  let cluster: ServiceAccountIssuer;
  let from: RevisionName;
  let to: RevisionName;

  beforeAll(async () => {
    await database.start();
    const open = await database.fresh();
    env = await EnrollmentEnvironment.open((nowMs) => open({ nowMs }));
    cluster = await env.anotherIssuer();
    from = await env.active();
    to = await publishingOfCluster();
    await env.acknowledge(to);
  });
  afterAll(async () => {
    await env.close();
    await database.stop();
  });

  async function publishingOfCluster(): Promise<RevisionName> {
    const name = await env.validated({ issuer: cluster.issuer, jwks_uri: cluster.jwksUri });
    await env.activate(name, new URL(cluster.issuer).host);
    return name;
  }

  const rebind = (
    { policy_id: id, version }: Pick<EnrollmentPolicyView, 'policy_id' | 'version'>,
    { sourceId, revision }: RevisionName = to,
    expected_issuer = cluster.issuer,
  ) =>
    env.policies.rebind(id, { source_id: sourceId, source_revision: revision, expected_issuer }, version, BY);
  const tokenOfCluster = () => cluster.token({ nowMs: env.ms });

  test('the same reference admits the new cluster alone; keys of the old one stay', async () => {
    const policy = await env.policy(from);
    const workload = env.workload(policy);
    const { derived_key: old } = await env.enroll(workload);
    const view = await rebind(policy);
    expect(view).toEqual({
      ...policy,
      source_id: to.sourceId,
      verified_issuer: cluster.issuer,
      version: 2,
      updated_at: view.updated_at,
    });
    expect(await refusalOf(env.enroll(env.workload(policy)))).toBe('token_key_unknown');
    const { derived_key: key } = await env.enroll(env.workload(policy), tokenOfCluster());
    const keys = new Map((await env.keysOf()).map((row) => [row.keyId, [row.sourceId, row.status]]));
    expect(keys.get(old?.key_id ?? '')).toEqual([from.sourceId, 'active']);
    expect(keys.get(key?.key_id ?? '')).toEqual([to.sourceId, 'active']);
    const events = await env.read((tx) =>
      tx.audit.list({ reach: { kind: 'everything' }, resourceId: policy.policy_id, limit: 10 }),
    );
    const rebound = events.find(({ kind }) => kind === 'proofgate.control.enrollment_policy.rebind');
    expect(rebound?.actor).toBe(BY.actor);
    const [before, after] = [rebound?.before, rebound?.after].map((text) => JSON.parse(text ?? ''));
    expect([before, after]).toEqual([policy, view]);
  });

  test('the old source’s on_retire ends its keys, and none that the new one enrolled', async () => {
    const name = await env.active({ audience: 'retired', on_retire: 'revoke' });
    const policy = await env.policy(name);
    const { derived_key: old } = await env.enroll(env.workload(policy), env.token({ audience: 'retired' }));
    await rebind(policy);
    const { derived_key: key } = await env.enroll(env.workload(policy), tokenOfCluster());
    await env.sources.lifecycle.retire(name, BY);
    const statusOf = async (id = '') => (await env.keys.key(id)).status;
    expect([await statusOf(old?.key_id), await statusOf(key?.key_id)]).toEqual(['revoked', 'active']);
  });

  test('policy_issuer_mismatch unless the expected issuer is exactly the revision’s; nothing changes', async () => {
    const policy = await env.policy(from, { approval: 'manual' });
    const { enrollment_id: id } = await env.enroll(env.workload(policy));
    for (const issuer of [env.issuer.issuer, `${cluster.issuer}/`, cluster.issuer.toUpperCase()]) {
      expect(await refusalOf(rebind(policy, to, issuer))).toBe('policy_issuer_mismatch');
    }
    expect(await env.policies.get(policy.policy_id)).toEqual(policy);
    expect((await env.decisions.enrollment(id)).state).toBe('pending_approval');
  });

  test('its checks are those of a creation, and of a change', async () => {
    const policy = await env.policy(from);
    const suspended = await env.active({ audience: 'suspended' });
    const retired = await env.active({ audience: 'ended' });
    await env.sources.lifecycle.suspend(suspended, BY);
    await env.sources.lifecycle.retire(retired, BY);
    for (const name of [await env.draft(), await env.validated(), suspended, retired]) {
      expect(await refusalOf(rebind(policy, name, env.issuer.issuer))).toBe('source_not_active');
    }
    await env.addSite(`other-${database.name}`);
    const elsewhere = await env.active({ audience: `other-${database.name}` }, `other-${database.name}`);
    for (const name of [elsewhere, { ...to, revision: 9 }, { sourceId: 'tas_none', revision: 1 }]) {
      expect(await refusalOf(rebind(policy, name, env.issuer.issuer))).toBe('reference_unknown');
    }
    expect(await refusalOf(rebind({ ...policy, version: 2 }))).toBe('precondition_failed');
    expect(await env.policies.get(policy.policy_id)).toEqual(policy);
    await env.policies.delete(policy.policy_id, 1, BY);
    expect(await refusalOf(rebind({ ...policy, version: 2 }))).toBe('policy_state_conflict');
  });

  test('what the old source verified is denied: policy_rebound; what the new one verified waits on', async () => {
    const policy = await env.policy(from, { approval: 'manual' });
    const old = env.workload(policy);
    const { enrollment_id: id } = await env.enroll(old);
    const rebound = await rebind(policy);
    expect(await env.poll(id, old.key)).toMatchObject({ state: 'denied', denial_code: 'policy_rebound' });
    expect(await env.auditKinds(id)).toEqual(['enrollment.submit', 'enrollment.deny']);
    const { enrollment_id: next } = await env.enroll(env.workload(policy), tokenOfCluster());
    await rebind(rebound);
    expect((await env.decisions.approve(next, {}, BY)).state).toBe('issued');
  });

  test('a challenge from before admits only a token of the new source', async () => {
    const policy = await env.policy(from);
    const applied = await env.challenge(env.workload(policy));
    await rebind(policy);
    const before = await env.keysOf();
    expect(await refusalOf(env.workloads.submit(submissionOf(applied, env.token())))).toBe(
      'token_key_unknown',
    );
    expect(await env.keysOf()).toEqual(before);
    const { enrollment } = await env.workloads.submit(submissionOf(applied, tokenOfCluster()));
    expect(enrollment.state).toBe('issued');
  });

  test('a submission whose token was verified before, and that commits after, enrolls nothing', async () => {
    const policy = await env.policy(from);
    const applied = await env.challenge(env.workload(policy));
    const before = [await env.keysOf(), await env.enrollmentsOf()];
    const keySets = env.cache.keysFor.bind(env.cache);
    env.cache.keysFor = async (...of) => {
      env.cache.keysFor = keySets;
      await rebind(policy);
      return keySets(...of);
    };
    const submission = submissionOf(applied, env.token());
    expect(await refusalOf(env.workloads.submit(submission))).toBe('unavailable');
    // Unknown keys are looked for once a minute.
    env.ms += 60_000;
    expect(await refusalOf(env.workloads.submit(submission))).toBe('token_key_unknown');
    expect([await env.keysOf(), await env.enrollmentsOf()]).toEqual(before);
  });

  test('to a revision that is about to be active: waiting, then active with it', async () => {
    const name = await publishingOfCluster();
    const policy = await env.policy(from);
    expect(await rebind(policy, name)).toMatchObject({ state: 'waiting', refuses_with: 'source_not_active' });
    for (const token of [env.token(), tokenOfCluster()]) {
      expect(await refusalOf(env.enroll(env.workload(policy), token))).toBe('source_not_active');
    }
    await env.acknowledge(name);
    await env.store.writeUnaudited(undefined, (tx) =>
      bindWaitingPolicies(tx, { ...name, issuer: cluster.issuer }, {}, env.ms),
    );
    expect((await env.enroll(env.workload(policy), tokenOfCluster())).state).toBe('issued');
  });

  test('a deactivated policy stays so until it is reactivated', async () => {
    const policy = await env.policy(from);
    const { version } = await env.policies.deactivate(policy.policy_id, BY);
    expect(await rebind({ ...policy, version })).toMatchObject({ state: 'deactivated' });
    expect(await refusalOf(env.enroll(env.workload(policy), tokenOfCluster()))).toBe('policy_not_active');
    await env.policies.reactivate(policy.policy_id, BY);
    expect((await env.enroll(env.workload(policy), tokenOfCluster())).state).toBe('issued');
  });
});
