/** Tests several instances of Control on one PostgreSQL: each action happens once, on whichever instance the request arrives. */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { EnrollmentPlane } from '../../../src/control/enrollment/enrollment-plane.ts';
import { StoreUnavailableError } from '../../../src/control/store/port.ts';
import { databaseKinds } from '../store/databases.ts';
import { BY, EnrollmentEnvironment, refusalOf, SITE, submissionOf } from './enrollment-fixture.ts';

const database = databaseKinds().find(({ name }) => name === 'postgres');
let env: EnrollmentEnvironment;
let instances: readonly EnrollmentPlane[];

beforeAll(async () => {
  if (database === undefined) throw new Error('no PostgreSQL');
  await database.start();
  const open = await database.fresh();
  env = await EnrollmentEnvironment.open((nowMs) => open({ nowMs }));
  instances = [env.plane, await env.anotherInstance(), await env.anotherInstance()];
});
afterAll(async () => {
  await env.close();
  await database?.stop();
});

const instance = (index: number): EnrollmentPlane => instances[index % instances.length] ?? env.plane;

/** A thousand concurrent requests may time out waiting for ten connections, so this retries after 503, as clients do. */
async function untilAnswered<T>(ask: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await ask();
    } catch (error) {
      if (!(error instanceof StoreUnavailableError) || attempt === 20) throw error;
    }
  }
}

test('1,000 concurrent submissions of one challenge make one key', async () => {
  const policy = await env.policy(await env.active());
  const applied = await env.challenge(env.workload(policy));
  const submission = submissionOf(applied, env.token());
  const answers = await Promise.all(
    Array.from({ length: 1000 }, (_, index) =>
      untilAnswered(() => instance(index).workloads.submit(submission)),
    ),
  );
  // None when the answer to the creating request was lost.
  expect(answers.filter(({ created }) => created).length).toBeLessThanOrEqual(1);
  expect(new Set(answers.map(({ enrollment }) => enrollment.derived_key?.key_id)).size).toBe(1);
  expect(await env.keysOf()).toHaveLength(1);
  expect(await env.auditKinds(answers[0]?.enrollment.enrollment_id)).toEqual(['enrollment.submit']);
});

test('five keys a token, asked of all of them at once', async () => {
  const policy = await env.policy(await env.active({ audience: 'limits' }));
  const token = env.token({ audience: 'limits' });
  const applied = await Promise.all(Array.from({ length: 30 }, () => env.challenge(env.workload(policy))));
  const codes = await Promise.all(
    applied.map((one, index) => refusalOf(instance(index).workloads.submit(submissionOf(one, token)))),
  );
  expect(codes.filter((code) => code === 'not refused')).toHaveLength(5);
  expect(codes.filter((code) => code === 'token_key_limit')).toHaveLength(25);
});

test('slots and audiences are taken once', async () => {
  await env.addSite('small', 2);
  const names = await Promise.all(
    Array.from({ length: 6 }, () => env.validated({ audience: 'small' }, 'small')),
  );
  const codes = await Promise.all(
    names.map((name, index) => refusalOf(instance(index).sources.lifecycle.activate(name, env.scope, BY))),
  );
  expect(codes.filter((code) => code === 'not refused')).toHaveLength(2);
  expect(codes.filter((code) => code === 'source_capacity_exhausted')).toHaveLength(4);

  const sites = ['a', 'b', 'c', 'd', 'e', 'f'];
  for (const site of sites) await env.addSite(site);
  const rivals = await Promise.all(sites.map((site) => env.validated({ audience: 'wanted' }, site)));
  const outcomes = await Promise.all(
    rivals.map((name, index) => refusalOf(instance(index).sources.lifecycle.activate(name, env.scope, BY))),
  );
  expect(outcomes.filter((code) => code === 'not refused')).toHaveLength(1);
  expect(outcomes.filter((code) => code === 'audience_taken')).toHaveLength(5);
  for (const one of instances) await one.sources.lifecycle.untilIdle();
});

test('a decision is made once, and a revocation holds for whom another one answers', async () => {
  const name = await env.active({ audience: 'decided', on_retire: 'revoke' });
  const policy = await env.policy(name, { approval: 'manual' });
  const token = env.token({ audience: 'decided' });
  const workload = env.workload(policy);
  const { enrollment_id: id } = await env.enroll(workload, token);
  const codes = await Promise.all(
    Array.from({ length: 30 }, (_, index) => refusalOf(instance(index).decisions.approve(id, {}, BY))),
  );
  expect(codes.filter((code) => code === 'not refused')).toHaveLength(1);
  expect(codes.filter((code) => code === 'enrollment_state_conflict')).toHaveLength(29);
  const applied = await env.challenge(workload);
  await instance(1).sources.lifecycle.retire(name, BY);
  expect(await refusalOf(instance(2).workloads.submit(submissionOf(applied, token)))).toBe(
    'source_not_active',
  );
  const living = await instance(2).keys.ofSite(SITE, { status: 'active' }, { after: undefined, limit: 1000 });
  expect(living.filter(({ source_id: sourceId }) => sourceId === name.sourceId)).toEqual([]);
});
