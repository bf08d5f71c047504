/**
 * Tests manual approval, polling, revocation, and the effect of suspended and retired sources on pending enrollments and keys.
 */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { EnrollmentPolicyView } from '../../../src/control/contract/sources-contract.ts';
import {
  DEFAULT_RETENTION,
  pruneRecords,
  startEnrollmentJobs,
} from '../../../src/control/enrollment/enrollment-jobs.ts';
import type { RevisionName } from '../../../src/control/sources/source-changes.ts';
import { leadRounds } from '../../../src/control/store/leader-jobs.ts';
import { waitFor } from '../../support/wait.ts';
import {
  BY,
  CLIENT,
  EnrollmentEnvironment,
  newKey,
  refusalOf,
  SITE,
  SUBJECT,
  type Workload,
} from './enrollment-fixture.ts';

let env: EnrollmentEnvironment;
let source: RevisionName;
let manual: EnrollmentPolicyView;

beforeAll(async () => {
  env = await EnrollmentEnvironment.open();
  source = await env.active();
  manual = await env.policy(source, { approval: 'manual' });
});
afterAll(() => env.close());

interface Waiting extends Workload {
  readonly id: string;
}

async function waiting(policy = manual, token?: string): Promise<Waiting> {
  const workload = env.workload(policy);
  const { enrollment_id: id, state, derived_key: key } = await env.enroll(workload, token);
  expect([state, key]).toEqual(['pending_approval', undefined]);
  return { ...workload, id };
}

async function keyOf(id: string) {
  return (await env.keysOf()).find(({ enrollmentId }) => enrollmentId === id);
}

describe('approval', () => {
  test('nothing is issued until an operator says so; then the workload sees its key', async () => {
    const { id, key } = await waiting();
    expect(await keyOf(id)).toBeUndefined();
    expect(await env.poll(id, key)).toMatchObject({ state: 'pending_approval' });
    const heard: string[] = [];
    const stop = env.store.subscribe(({ topic, reference }) => heard.push(`${topic} ${reference}`));
    const approved = await env.decisions.approve(id, {}, BY);
    stop();
    expect(approved).toMatchObject({ state: 'issued', decided_by: BY.actor });
    expect(heard).toEqual(expect.arrayContaining([`enrollment_decided ${id}`, `site_changed ${SITE}`]));
    const polled = await env.poll(id, key);
    expect(polled).toMatchObject({
      state: 'issued',
      derived_key: { key_id: approved.key_id, status: 'active' },
    });
    expect(await env.auditKinds(id)).toEqual(['enrollment.submit', 'enrollment.approve']);
    expect(await refusalOf(env.decisions.approve(id, {}, BY))).toBe('enrollment_state_conflict');
    expect(await refusalOf(env.decisions.deny(id, {}, BY))).toBe('enrollment_state_conflict');
  });

  test('concurrent decisions make one', async () => {
    const { id } = await waiting();
    const outcomes = await Promise.all(
      Array.from({ length: 50 }, (_, index) =>
        refusalOf(index % 2 ? env.decisions.approve(id, {}, BY) : env.decisions.deny(id, {}, BY)),
      ),
    );
    expect(outcomes.filter((code) => code === 'not refused')).toHaveLength(1);
    expect(outcomes.filter((code) => code === 'enrollment_state_conflict')).toHaveLength(49);
    const { state } = await env.decisions.enrollment(id);
    expect((await keyOf(id)) === undefined).toBe(state === 'denied');
  });

  test('the key’s end was fixed when the proof was accepted', async () => {
    const short = await env.policy(source, { approval: 'manual', max_key_lifetime_seconds: 100 });
    const acceptedSeconds = Math.floor(env.ms / 1000);
    const { id } = await waiting(short);
    env.ms += 90_000;
    await env.policies.change(short.policy_id, { max_key_lifetime_seconds: 86_400 }, 1, BY);
    await env.decisions.approve(id, {}, BY);
    expect((await keyOf(id))?.expiresAtSeconds).toBe(acceptedSeconds + 100);
  });

  test('enrollment_expired: approved too late, it has expired and stays so', async () => {
    const { id, key } = await waiting(manual, env.token({ expiresInSeconds: 600 }));
    env.ms += 600_000;
    expect(await refusalOf(env.decisions.approve(id, {}, BY))).toBe('enrollment_expired');
    expect(await env.poll(id, key)).toMatchObject({ state: 'expired' });
    expect(await keyOf(id)).toBeUndefined();
    expect(await env.auditKinds(id)).toEqual(['enrollment.submit', 'enrollment.expire']);
    expect(await refusalOf(env.decisions.approve(id, {}, BY))).toBe('enrollment_state_conflict');
  });

  test('denied: the workload sees a code and not the reason', async () => {
    const { id, key } = await waiting();
    await env.decisions.deny(id, { reason: 'not on our list' }, BY);
    const polled = await env.poll(id, key);
    expect(polled).toMatchObject({ state: 'denied', denial_code: 'denied_by_operator' });
    expect(JSON.stringify(polled)).not.toContain('list');
    const [event] = await env.read((tx) =>
      tx.audit.list({ resourceId: id, reach: { kind: 'everything' }, limit: 1 }),
    );
    expect(JSON.parse(event?.after ?? '{}')).toMatchObject({ reason: 'not on our list' });
    expect(await keyOf(id)).toBeUndefined();
  });

  test('a policy that ends denies who waits: policy_not_active', async () => {
    for (const end of ['deactivate', 'delete'] as const) {
      const policy = await env.policy(source, { approval: 'manual' });
      const { id, key } = await waiting(policy);
      if (end === 'delete') await env.policies.delete(policy.policy_id, 1, BY);
      else await env.policies.deactivate(policy.policy_id, BY);
      expect(await env.poll(id, key)).toMatchObject({ state: 'denied', denial_code: 'policy_not_active' });
      expect(await env.auditKinds(id)).toEqual(['enrollment.submit', 'enrollment.deny']);
    }
  });

  test('everything is checked again: blocked subject, revoked key, token limit', async () => {
    const blockedPolicy = await env.policy(source, {
      approval: 'manual',
      verified_subject: 'system:serviceaccount:prod:blocked',
    });
    const blocked = await waiting(blockedPolicy, env.token({ serviceAccount: 'blocked' }));
    await env.store.writeUnaudited(undefined, (tx) =>
      tx.keys.blockSubject({
        siteId: SITE,
        issuer: env.issuer.issuer,
        subject: 'system:serviceaccount:prod:blocked',
        blockedAtMs: env.ms,
        blockedBy: 'test',
      }),
    );
    expect(await refusalOf(env.decisions.approve(blocked.id, {}, BY))).toBe('subject_blocked');

    const revoked = await waiting();
    await env.store.writeUnaudited(undefined, (tx) =>
      tx.keys.rejectPublicKey(SITE, revoked.key.publicKey.thumbprint, env.ms),
    );
    expect(await refusalOf(env.decisions.approve(revoked.id, {}, BY))).toBe('key_revoked');

    const policy = await env.policy(source, { approval: 'manual' });
    const token = env.token();
    const two = [await waiting(policy, token), await waiting(policy, token)];
    await env.policies.change(policy.policy_id, { max_keys_per_token: 1 }, 1, BY);
    expect(await refusalOf(env.decisions.approve(two[0]?.id ?? '', {}, BY))).toBe('token_key_limit');

    for (const { id } of [blocked, revoked, ...two]) {
      expect(await keyOf(id)).toBeUndefined();
      expect((await env.decisions.enrollment(id)).state).toBe('pending_approval');
    }
  });

  test('the issuer’s key that signed the token is looked for again', async () => {
    const name = await env.active({ audience: 'withdrawn' });
    const policy = await env.policy(name, { approval: 'manual' });
    const { id } = await waiting(policy, env.token({ audience: 'withdrawn' }));
    const keep = (jwks: object, fetchedAtMs: number) =>
      env.store.writeUnaudited(undefined, (tx) =>
        tx.sources.putKeySet({ ...name, jwks: JSON.stringify(jwks), fetchedAtMs }),
      );
    const published = env.issuer.keySet();
    await keep({ keys: [] }, env.ms + 1);
    expect(await refusalOf(env.decisions.approve(id, {}, BY))).toBe('token_key_unknown');
    expect((await env.decisions.enrollment(id)).state).toBe('pending_approval');
    // Stored while a clock was ahead: unusable until the next fetch replaces it.
    await keep(published, env.ms + 31_000);
    expect(await refusalOf(env.decisions.approve(id, {}, BY))).toBe('issuer_keys_unavailable');
    await keep({ keys: [] }, env.ms);
    expect(await refusalOf(env.decisions.approve(id, {}, BY))).toBe('token_key_unknown');
    await keep(published, env.ms + 2);
    expect((await env.decisions.approve(id, {}, BY)).state).toBe('issued');
  });

  test('a suspended source lets who waits wait; resumed, they can be approved', async () => {
    const name = await env.active({ audience: 'waiting' });
    const policy = await env.policy(name, { approval: 'manual' });
    const { id } = await waiting(policy, env.token({ audience: 'waiting' }));
    await env.sources.lifecycle.suspend(name, BY);
    expect(await refusalOf(env.challenge(env.workload(policy)))).toBe('source_not_active');
    expect(await refusalOf(env.decisions.approve(id, {}, BY))).toBe('source_not_active');
    await env.sources.lifecycle.resume(name, BY);
    expect(await refusalOf(env.decisions.approve(id, {}, BY))).toBe('source_not_active');
    expect((await env.decisions.enrollment(id)).state).toBe('pending_approval');
    await env.acknowledge(name);
    expect((await env.decisions.approve(id, {}, BY)).state).toBe('issued');
  });

  test('a retired source denies who waits: source_not_active', async () => {
    const name = await env.active({ audience: 'ended' });
    const policy = await env.policy(name, { approval: 'manual' });
    const { id, key } = await waiting(policy, env.token({ audience: 'ended' }));
    await env.sources.lifecycle.retire(name, BY);
    expect(await env.poll(id, key)).toMatchObject({ state: 'denied', denial_code: 'source_not_active' });
    expect(await refusalOf(env.challenge(env.workload(policy)))).toBe('source_not_active');
  });

  test('a retired source denies those too whom an older revision verified', async () => {
    const first = await env.active({ audience: 'older' });
    const policy = await env.policy(first, { approval: 'manual' });
    const { id, key } = await waiting(policy, env.token({ audience: 'older' }));
    await env.sources.drafts.addRevision(first.sourceId, {}, BY);
    const second = { ...first, revision: 2 };
    await env.sources.lifecycle.validate(second, BY);
    await env.activate(second);
    await env.acknowledge(second);
    expect((await env.decisions.enrollment(id)).state).toBe('pending_approval');
    await env.sources.lifecycle.retire(second, BY);
    expect(await env.poll(id, key)).toMatchObject({ state: 'denied', denial_code: 'source_not_active' });
  });

  test('policy_revision_outdated: what another revision has vouched for is not approved', async () => {
    const first = await env.active({ audience: 'outdated' });
    const policy = await env.policy(first, { approval: 'manual' });
    const { id } = await waiting(policy, env.token({ audience: 'outdated' }));
    await env.sources.drafts.addRevision(first.sourceId, {}, BY);
    const second = { ...first, revision: 2 };
    await env.sources.lifecycle.validate(second, BY);
    await env.activate(second);
    await env.acknowledge(second);
    expect(await refusalOf(env.decisions.approve(id, {}, BY))).toBe('policy_revision_outdated');
    await env.policies.change(policy.policy_id, { source_revision: 2 }, 1, BY);
    expect(await refusalOf(env.decisions.approve(id, {}, BY))).toBe('policy_revision_outdated');
    expect(await keyOf(id)).toBeUndefined();
  });
});

describe('polling', () => {
  test('poll_unauthorized: another key, another enrollment, another time, other spellings', async () => {
    const mine = await waiting();
    const theirs = await waiting();
    const seconds = Math.floor(env.ms / 1000);
    const sound = env.authorization(mine.id, mine.key);
    const [scheme = '', word = ''] = sound.split(' ');
    const wrong = [
      undefined,
      '',
      'Bearer x',
      env.authorization(mine.id, theirs.key),
      env.authorization(theirs.id, mine.key),
      env.authorization(mine.id, mine.key, seconds - 61),
      env.authorization(mine.id, mine.key, seconds + 61),
      sound.replace(`${seconds}.`, `${seconds + 1}.`),
      `${scheme} 0${word}`,
      `${scheme}  ${word}`,
      `${sound}=`,
      `${sound} x`,
      `Bearer ${word}`,
    ];
    for (const authorization of wrong) {
      expect(await refusalOf(env.workloads.poll(mine.id, authorization))).toBe('poll_unauthorized');
      expect(await refusalOf(env.workloads.readiness(mine.id, authorization))).toBe('poll_unauthorized');
    }
    for (const offset of [-60, 60]) {
      const edge = env.authorization(mine.id, mine.key, seconds + offset);
      expect((await env.workloads.poll(mine.id, edge)).enrollment_id).toBe(mine.id);
    }
    const lower = sound.replace('Proofgate-Key', 'proofgate-key');
    expect((await env.workloads.poll(mine.id, lower)).enrollment_id).toBe(mine.id);
  });

  test('enrollment_unknown', async () => {
    const { key } = await waiting();
    expect(await refusalOf(env.poll('enr_none', key))).toBe('enrollment_unknown');
  });

  test('readiness of what waits says what it waits for', async () => {
    const { id, key } = await waiting();
    const asked = () => env.workloads.readiness(id, env.authorization(id, key));
    const { ready, conditions } = await asked();
    expect(ready).toBe(false);
    expect(conditions.map(({ condition }) => condition)).toEqual([
      'derived_key',
      'route_grant',
      'signing_profile',
      'target_acknowledged',
      'version_current',
    ]);
    expect(conditions[0]).toMatchObject({ state: 'pending_approval', satisfied: false });
    expect(conditions.slice(1).map(({ state }) => state)).toEqual(Array(4).fill('no_key'));
    await env.decisions.approve(id, {}, BY);
    const approved = await asked();
    expect(approved.conditions.map(({ condition, satisfied }) => [condition, satisfied])).toEqual([
      ['derived_key', true],
      ['route_grant', true],
      ['signing_profile', true],
      ['target_acknowledged', false],
      ['version_current', false],
    ]);
    expect(approved.ready).toBe(false);
  });
});

describe('revocation', () => {
  test('every living key ID with the public key ends; that key is refused for ever', async () => {
    const policy = await env.policy(source);
    const workload = env.workload(policy);
    const first = await env.enroll(workload);
    const second = await env.enroll(workload);
    const bystander = await env.enroll(env.workload(policy));
    const keyIds = [first, second].map((one) => one.derived_key?.key_id ?? '');
    const before = (await env.changesOf()).length;
    const result = await env.keys.revoke(keyIds[0] ?? '', { reason: 'leaked' }, BY);
    expect(result.revoked_key_ids.toSorted()).toEqual(keyIds.toSorted());
    expect(result).toMatchObject({
      subject_blocked: false,
      key: { status: 'revoked', revoked_by: BY.actor, revoked_reason: 'leaked' },
    });
    for (const id of keyIds) {
      expect((await env.keys.key(id)).status).toBe('revoked');
      expect(await env.auditKinds(id)).toEqual(['derived_key.issue', 'derived_key.revoke']);
      expect(await refusalOf(env.keys.revoke(id, {}, BY))).toBe('key_state_conflict');
    }
    expect(
      (await env.changesOf())
        .slice(before)
        .map(({ reference }) => reference)
        .toSorted(),
    ).toEqual(keyIds.toSorted());
    expect((await env.keys.key(bystander.derived_key?.key_id ?? '')).status).toBe('active');
    expect(await refusalOf(env.challenge(workload))).toBe('key_revoked');
    expect(await env.poll(first.enrollment_id, workload.key)).toMatchObject({
      state: 'issued',
      derived_key: { status: 'revoked' },
    });
    // The ban remains after the record of the key is pruned.
    env.ms += DEFAULT_RETENTION.endedKeysMs + 2 * 86_400_000;
    await pruneRecords(env.store, env.ms, DEFAULT_RETENTION);
    expect(await refusalOf(env.keys.key(keyIds[0] ?? ''))).toBe('not_found');
    expect(await refusalOf(env.challenge(workload))).toBe('key_revoked');
  });

  test('key_revoked: revoked between challenge and submission', async () => {
    const policy = await env.policy(source);
    const workload = env.workload(policy);
    const { derived_key: key } = await env.enroll(workload);
    const applied = await env.challenge(workload);
    await env.keys.revoke(key?.key_id ?? '', {}, BY);
    const { submissionOf } = await import('./enrollment-fixture.ts');
    const before = await env.keysOf();
    expect(await refusalOf(env.workloads.submit(submissionOf(applied, env.token())))).toBe('key_revoked');
    expect(await env.keysOf()).toEqual(before);
  });

  test('the public key of an expired key is refused for ever, with every living key of it', async () => {
    const policy = await env.policy(source, { max_key_lifetime_seconds: 60 });
    const workload = env.workload(policy);
    const { derived_key: expired } = await env.enroll(workload);
    env.ms += 60_000;
    const { derived_key: living } = await env.enroll(workload);
    const [expiredId, livingId] = [expired?.key_id ?? '', living?.key_id ?? ''];
    const result = await env.keys.revoke(expiredId, { reason: 'leaked' }, BY);
    expect(result).toMatchObject({ key: { status: 'expired' }, revoked_key_ids: [livingId] });
    expect((await env.keys.key(livingId)).status).toBe('revoked');
    expect(await env.auditKinds(expiredId)).toEqual(['derived_key.issue', 'derived_key.refuse_public_key']);
    expect(await refusalOf(env.challenge(workload))).toBe('key_revoked');
    expect(await refusalOf(env.keys.revoke(expiredId, {}, BY))).toBe('key_state_conflict');
  });

  test('of an expired key that no other key shares, the public key and the subject are refused', async () => {
    const subject = 'system:serviceaccount:prod:gone';
    const policy = await env.policy(source, { max_key_lifetime_seconds: 60, verified_subject: subject });
    const workload = env.workload(policy);
    const { derived_key: key } = await env.enroll(workload, env.token({ serviceAccount: 'gone' }));
    env.ms += 60_000;
    const before = (await env.changesOf()).length;
    const result = await env.keys.revoke(key?.key_id ?? '', { block_subject: true }, BY);
    expect(result).toMatchObject({ key: { status: 'expired' }, revoked_key_ids: [], subject_blocked: true });
    // No bundle lists an expired key, so its revocation changes no bundle.
    expect((await env.changesOf()).length).toBe(before);
    expect(await refusalOf(env.challenge(env.workload(policy)))).toBe('subject_blocked');
    const named = { issuer: policy.verified_issuer, subject };
    await env.keys.unblockSubject(SITE, named, BY);
    expect(await refusalOf(env.challenge(workload))).toBe('key_revoked');
  });

  test('a subject is blocked without a key, once', async () => {
    const subject = 'system:serviceaccount:prod:never';
    const policy = await env.policy(source, { verified_subject: subject });
    const named = { issuer: policy.verified_issuer, subject };
    const blocked = await env.keys.blockSubject(SITE, named, BY);
    expect(blocked.view).toMatchObject({ site_id: SITE, ...named, blocked_by: BY.actor });
    expect(await refusalOf(env.challenge(env.workload(policy)))).toBe('subject_blocked');
    expect(await refusalOf(env.keys.blockSubject(SITE, named, BY))).toBe('already_exists');
    const audited = await env.auditKinds(`${named.issuer}|${subject}`);
    expect(audited).toEqual(['blocked_subject.block']);
    await env.keys.unblockSubject(SITE, named, BY);
    expect(await refusalOf(env.challenge(env.workload(policy)))).toBe('not refused');
  });

  test('an expired key says expired', async () => {
    const policy = await env.policy(source, { max_key_lifetime_seconds: 60 });
    const { derived_key: key } = await env.enroll(env.workload(policy));
    const keyId = key?.key_id ?? '';
    env.ms += 59_999;
    expect((await env.keys.key(keyId)).status).toBe('active');
    env.ms += 1;
    expect((await env.keys.key(keyId)).status).toBe('expired');
    const page = { after: undefined, limit: 100 };
    const expired = await env.keys.ofSite(SITE, { status: 'expired', clientId: CLIENT }, page);
    expect(expired.map(({ key_id: id }) => id)).toContain(keyId);
    const active = await env.keys.ofSite(SITE, { status: 'active' }, page);
    expect(active.map(({ key_id: id }) => id)).not.toContain(keyId);
    expect(await env.keys.ofSite(SITE, { clientId: 'unknown' }, page)).toEqual([]);
  });

  test('keys are found by a part of their subject, or by their fingerprint', async () => {
    const policy = await env.policy(source, { verified_subject: 'system:serviceaccount:prod:found' });
    const token = env.token({ serviceAccount: 'found' });
    const { derived_key: key } = await env.enroll(env.workload(policy), token);
    const found = async (filter: object) => {
      const keys = await env.keys.ofSite(SITE, filter, { after: undefined, limit: 100 });
      return keys.map(({ key_id: id }) => id);
    };
    expect(await found({ subject: 'prod:fou' })).toEqual([key?.key_id]);
    const { fingerprint } = await env.keys.key(key?.key_id ?? '');
    expect(await found({ fingerprint })).toEqual([key?.key_id]);
    for (const filter of [
      { subject: 'prod:FOU' },
      { subject: 'prod_found' },
      { fingerprint, subject: 'another' },
    ]) {
      expect(await found(filter)).toEqual([]);
    }
  });

  test('subject_blocked until it is let in again', async () => {
    const subject = 'system:serviceaccount:prod:rogue';
    const policy = await env.policy(source, { verified_subject: subject });
    const other = await env.policy(source);
    const { derived_key: key } = await env.enroll(
      env.workload(policy),
      env.token({ serviceAccount: 'rogue' }),
    );
    const result = await env.keys.revoke(key?.key_id ?? '', { block_subject: true }, BY);
    expect(result.subject_blocked).toBe(true);
    expect(await refusalOf(env.challenge(env.workload(policy)))).toBe('subject_blocked');
    expect((await env.enroll(env.workload(other))).state).toBe('issued');
    const name = { issuer: env.issuer.issuer, subject };
    const listed = await env.keys.blockedSubjects(SITE, { after: undefined, limit: 10 });
    expect(listed).toContainEqual(expect.objectContaining({ ...name, blocked_by: BY.actor }));
    await env.keys.unblockSubject(SITE, name, BY);
    expect(await refusalOf(env.keys.unblockSubject(SITE, name, BY))).toBe('not_found');
    const again = await env.enroll(env.workload(policy), env.token({ serviceAccount: 'rogue' }));
    expect(again.state).toBe('issued');
  });

  test.each(['suspend', 'retire'] as const)(
    '%s with revoke ends the source’s keys in one go',
    async (event) => {
      const audience = `revoke-on-${event}`;
      const name = await env.active({ audience, on_suspend: 'revoke', on_retire: 'revoke' });
      const policy = await env.policy(name);
      const elsewhere = await env.policy(source);
      const shared = newKey();
      const token = () => env.token({ audience });
      const ended = [
        await env.enroll(env.workload(policy), token()),
        await env.enroll(env.workload(policy, shared), token()),
        await env.enroll(env.workload(elsewhere, shared)),
      ];
      const kept = await env.enroll(env.workload(elsewhere));
      const before = (await env.changesOf()).length;
      await env.sources.lifecycle[event](name, BY);
      for (const { derived_key: key } of ended) {
        expect(await env.keys.key(key?.key_id ?? '')).toMatchObject({
          status: 'revoked',
          revoked_by: BY.actor,
          version: 2,
        });
      }
      expect((await env.keys.key(kept.derived_key?.key_id ?? '')).status).toBe('active');
      const changes = (await env.changesOf()).slice(before).filter(({ kind }) => kind === 'key');
      expect(changes.map(({ reference }) => reference).toSorted()).toEqual(
        ended.map((one) => one.derived_key?.key_id).toSorted(),
      );
      expect(await refusalOf(env.challenge(env.workload(elsewhere, shared)))).toBe('key_revoked');
      const [audit] = await env.read((tx) =>
        tx.audit.list({
          resourceId: `${name.sourceId}/1`,
          reach: { kind: 'everything' },
          limit: 1,
        }),
      );
      expect(JSON.parse(audit?.after ?? '{}')).toMatchObject({ revoked_keys: 3 });
    },
  );

  test('keep: keys outlive a suspended and a retired source', async () => {
    const name = await env.active({ audience: 'kept' });
    const policy = await env.policy(name);
    const { derived_key: key } = await env.enroll(env.workload(policy), env.token({ audience: 'kept' }));
    await env.sources.lifecycle.suspend(name, BY);
    await env.sources.lifecycle.retire(name, BY);
    expect((await env.keys.key(key?.key_id ?? '')).status).toBe('active');
  });

  test('an unfinished replacement is retired without on_retire', async () => {
    const first = await env.active({ audience: 'replaced', on_retire: 'revoke' });
    const policy = await env.policy(first);
    const { derived_key: key } = await env.enroll(env.workload(policy), env.token({ audience: 'replaced' }));
    await env.sources.drafts.addRevision(first.sourceId, {}, BY);
    const second = { ...first, revision: 2 };
    await env.sources.lifecycle.validate(second, BY);
    await env.activate(second);
    await env.sources.lifecycle.retire(second, BY);
    expect((await env.keys.key(key?.key_id ?? '')).status).toBe('active');
    await env.sources.lifecycle.retire(first, BY);
    expect((await env.keys.key(key?.key_id ?? '')).status).toBe('revoked');
  });
});

describe('jobs', () => {
  test('a failed round is reported, and rounds go on until they are stopped', async () => {
    const rounds: number[] = [];
    const failures: unknown[] = [];
    const stop = leadRounds(env.store, 'test', {
      pauseMs: 1,
      report: (error) => failures.push(error),
      run: async (round) => {
        rounds.push(round);
        if (round === 1) throw new Error('the database is gone');
      },
    });
    await waitFor('four rounds', () => (rounds.length >= 4 ? true : undefined));
    await stop();
    const ended = rounds.length;
    expect(rounds.slice(0, 4)).toEqual([0, 1, 2, 3]);
    expect(failures).toEqual([new Error('the database is gone')]);
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect(rounds).toHaveLength(ended);
  });

  test('who was not decided in time expires by itself, and hears of it', async () => {
    const { id } = await waiting(manual, env.token({ expiresInSeconds: 600 }));
    const other = await waiting(manual, env.token({ expiresInSeconds: 7200 }));
    env.ms += 600_000;
    const heard = new Promise<void>((resolve) => {
      env.store.subscribe(({ topic, reference }) => {
        if (topic === 'enrollment_decided' && reference === id) resolve();
      });
    });
    const report = (error: unknown) => env.faults.push(error);
    const { store, nowMs, decisions, sources, cache: keySets } = env;
    const { lifecycle } = sources;
    const parts = { store, nowMs, decisions, lifecycle, keySets, report };
    const stop = startEnrollmentJobs({ ...parts, housekeepingRoundMs: 10 });
    await heard;
    await stop();
    expect((await env.decisions.enrollment(id)).state).toBe('expired');
    expect((await env.decisions.enrollment(other.id)).state).toBe('pending_approval');
    expect(env.faults).toEqual([]);
  });

  test('removes what is no longer needed, in the order of its references; what is refused for ever stays', async () => {
    const policy = await env.policy(source);
    const gone = await env.enroll(env.workload(policy), env.token({ expiresInSeconds: 600 }));
    await env.policies.delete(policy.policy_id, 1, BY);
    const early = await pruneRecords(env.store, env.ms, DEFAULT_RETENTION);
    expect([early.keys, early.enrollments]).toEqual([0, 0]);
    env.ms += 600_000 + DEFAULT_RETENTION.endedKeysMs + 1000;
    const alive = await env.enroll(env.workload(manual), env.token({ expiresInSeconds: 86_400 }));
    const pruned = await pruneRecords(env.store, env.ms, DEFAULT_RETENTION);
    expect(pruned.keys).toBeGreaterThan(0);
    expect(pruned.enrollments).toBeGreaterThanOrEqual(pruned.keys);
    expect(pruned.challenges).toBeGreaterThan(0);
    expect(pruned.policies).toBeGreaterThan(0);
    expect(pruned.auditEvents).toBe(0);
    expect(await refusalOf(env.decisions.enrollment(gone.enrollment_id))).toBe('enrollment_unknown');
    expect(await refusalOf(env.policies.get(policy.policy_id))).toBe('not_found');
    expect((await env.decisions.enrollment(alive.enrollment_id)).state).toBe('pending_approval');
    env.ms += DEFAULT_RETENTION.auditMs;
    expect((await pruneRecords(env.store, env.ms, DEFAULT_RETENTION)).auditEvents).toBeGreaterThan(0);
  });
});

test('no token, challenge or signature is in the database, the audit trail included', async () => {
  const { submissionOf, sha256 } = await import('./enrollment-fixture.ts');
  const policy = await env.policy(await env.active({ audience: 'secrets' }));
  const applied = await env.challenge(env.workload(policy));
  const submission = submissionOf(applied, env.token({ audience: 'secrets' }));
  const { enrollment } = await env.workloads.submit(submission);
  const rows = await env.read(async (tx) => ({
    challenge: await tx.enrollments.challenge(submission.challenge_id),
    enrollment: await tx.enrollments.find(enrollment.enrollment_id),
    key: await tx.keys.find(enrollment.derived_key?.key_id ?? ''),
    audit: await tx.audit.list({ reach: { kind: 'everything' }, limit: 1000 }),
  }));
  const text = JSON.stringify(rows);
  const [header = '', payload = '', tokenSignature = ''] = submission.workload_token.split('.');
  const secrets = [submission.signature, applied.challenge.challenge, header, payload, tokenSignature];
  for (const secret of secrets) expect(text).not.toContain(secret);
  expect(rows.enrollment?.tokenHash).toBe(sha256(`${header}.${payload}`));
  expect(rows.enrollment?.verifiedSubject).toBe(SUBJECT);
});
