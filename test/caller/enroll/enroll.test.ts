/** Tests an enrollment through the decisions of Control: issued, pending, denied, renewed, rejected. */
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import type { EnrollRequest } from '../../../src/caller/enroll/enroll-run.ts';
import { FakeControl, type FakeControlOptions, POLICY } from '../../support/fakes/control-enrollment.ts';
import { profile } from '../../support/fakes/control-enrollment-answers.ts';
import { hostileRetryAfters } from '../../support/fixtures/retry-after-headers.ts';
import { newWorkload, outcomeOf, runEnroll, startEnroll, type Workload } from './enroll-fixture.ts';

let control: FakeControl;
let workload: Workload;
let nowMs: number;

async function start(options: FakeControlOptions = {}): Promise<void> {
  control = await FakeControl.start({ nowMs: () => nowMs, ...options });
  workload = newWorkload(await control.token());
}

beforeEach(() => {
  nowMs = Date.UTC(2026, 10, 21, 4, 0, 0);
});
afterEach(() => control.close());

function begin(request: Partial<EnrollRequest> = {}, of = workload) {
  return startEnroll(of, { controlUrl: control.url, request, ports: { nowMs: () => nowMs } });
}

function run(request: Partial<EnrollRequest> = {}, of = workload) {
  return begin(request, of).ended;
}

function state() {
  return JSON.parse(workload.states.text ?? '{}');
}

describe('automatic approval', () => {
  it('issues a key at once, with what it signs', async () => {
    await start({ maxKeyLifetimeSeconds: 600 });
    const { kind, record } = await run();
    expect(kind).toBe('enrolled');
    expect(record.key).toMatchObject({
      keyId: control.keyIds[0],
      fingerprint: workload.key.publicKey.thumbprint,
      status: 'active',
      expiresAtMs: nowMs + 600_000,
      clientId: 'billing',
      coordinates: { authSite: 'shop-eu-1', keyId: control.keyIds[0], keyBinding: 'software' },
      profiles: [{ routeId: 'orders-read', method: 'GET' }],
    });
    expect(control.requests.map(({ method, path }) => `${method} ${path}`)).toEqual([
      'POST /v1/enrollments/challenges',
      'POST /v1/enrollments',
    ]);
  });

  it('asks for the key while it is current, and enrolls again once it nears its end: 15 % of its life, or a shorter refresh skew', async () => {
    await start({ maxKeyLifetimeSeconds: 600 });
    await run();
    const asked = control.requests.length;
    nowMs += 509_000;
    expect((await run()).kind).toBe('cached');
    expect(control.requests.slice(asked).map(({ method }) => method)).toEqual(['GET']);
    nowMs += 2_000;
    expect((await run({ refreshSkewMs: 60_000 })).kind).toBe('cached');
    const renewed = await run();
    expect(renewed.kind).toBe('enrolled');
    expect(renewed.record.key.keyId).toBe(control.keyIds[1]);
    expect(control.keyIds).toHaveLength(2);
    expect(new Set([...control.enrollments.values()].map(({ key }) => key.thumbprint)).size).toBe(1);
  });

  it('renews the profiles of a current key, and keeps the key', async () => {
    await start();
    const { record } = await run();
    control.profiles = [
      profile(),
      profile({ name: 'orders-write', route_id: 'orders-write', method: 'POST' }),
    ];
    const { kind, record: renewed } = await run();
    expect([kind, renewed.key.keyId]).toEqual(['cached', record.key.keyId]);
    expect(renewed.key.profiles.map(({ routeId }) => routeId)).toEqual(['orders-read', 'orders-write']);
    expect(state().enrolled.signing_profiles).toHaveLength(2);
    expect(control.keyIds).toHaveLength(1);
  });

  it('tells a revoked key, and remembers it with Control gone', async () => {
    await start();
    const { record } = await run();
    for (const enrollment of control.enrollments.values()) enrollment.keyStatus = 'revoked';
    expect(await outcomeOf(run())).toBe('key_revoked');
    expect(state().enrolled.derived_key).toMatchObject({ key_id: record.key.keyId, status: 'revoked' });
    control.interfere = () => ({ status: 503, code: 'unavailable' });
    expect(await outcomeOf(run({ submitRetries: 0 }))).toBe('unavailable');
    expect(control.enrollments.size).toBe(1);
  });

  it.each([
    [401, 'poll_unauthorized'],
    [429, 'rate_limited'],
    [503, 'unavailable'],
    [404, 'not_found'],
  ])('keeps a current key on %i %s, and says that it was not confirmed', async (httpStatus, code) => {
    await start();
    const { record } = await run();
    control.interfere = () => ({ status: httpStatus, code });
    const { ended, events, waits } = begin();
    expect(await ended).toEqual({ kind: 'cached', record });
    expect(events).toEqual([{ kind: 'unconfirmed', fault: code }]);
    expect(waits).toEqual([]);
  });

  it('enrolls a key again that Control has lost', async () => {
    await start();
    await run();
    control.enrollments.clear();
    const { kind, record } = await run();
    expect([kind, record.key.keyId]).toEqual(['enrolled', control.keyIds[0]]);
  });

  it.each([
    ['another policy', 'epr_other', false, 'policy_unknown'],
    ['force', POLICY, true, 'done'],
  ])('asks again for %s', async (_why, policy, forcesReenrollment, outcome) => {
    await start();
    await run();
    const asked = control.requests.length;
    const target = { controlUrl: control.url, policy };
    expect(await outcomeOf(run({ forcesReenrollment, target }))).toBe(outcome);
    expect(control.requests.length).toBeGreaterThan(asked);
    // A usable key is enrolled after either outcome.
    expect(state().enrolled.derived_key.key_id).toBe(control.keyIds.at(-1));
  });

  it('forgets what the state says of another key', async () => {
    await start();
    await run();
    const other = { ...newWorkload(workload.token), states: workload.states };
    expect((await run({}, other)).record.key.fingerprint).toBe(other.key.publicKey.thumbprint);
    expect(control.keyIds).toHaveLength(2);
  });

  it('takes a key without profiles, and answers that say more than is known', async () => {
    await start();
    control.profiles = [];
    expect((await run()).record.key.profiles).toEqual([]);
    control.profiles = [profile({ colour: 'red' })];
    expect((await run({ forcesReenrollment: true })).record.key.profiles).toHaveLength(1);
  });

  it('takes no key with an invalid profile', async () => {
    await start();
    control.profiles = [profile({ origins: [] })];
    expect(await outcomeOf(run())).toBe('submission_unconfirmed');
    expect(state().enrolled).toBeUndefined();
    control.profiles = [profile()];
    expect(await outcomeOf(run())).toBe('done');
    expect(control.enrollments.size).toBe(1);
  });
});

describe('manual approval', () => {
  it('is waited for, longer from time to time, up to 30 s', async () => {
    await start({ approval: 'manual' });
    let polls = 0;
    control.interfere = (method) => {
      if (method === 'GET' && ++polls === 12) control.approveAll();
      return undefined;
    };
    const { ended, waits, events } = begin();
    expect((await ended).record.key.keyId).toBe(control.keyIds[0]);
    expect(waits[0]).toBe(1750);
    expect(Math.max(...waits)).toBeLessThanOrEqual(30_000);
    expect(waits.every((waitMs, i) => i === 0 || waitMs >= (waits[i - 1] ?? 0))).toBe(true);
    expect(events.filter(({ kind }) => kind === 'waiting')).toHaveLength(waits.length);
  });

  it('is not awaited with --no-wait; the next run asks for the same', async () => {
    await start({ approval: 'manual' });
    expect(await outcomeOf(run({ waitsForActivation: false }))).toBe('enrollment_pending');
    expect(await outcomeOf(run({ waitsForActivation: false }))).toBe('enrollment_pending');
    control.approveAll();
    const { ended, events } = begin({ waitsForActivation: false });
    await ended;
    expect(events).toEqual([{ kind: 'resumed', attempt: 'submitted' }]);
    expect(control.submissions).toHaveLength(1);
  });

  it('ends when time is up, also with a forced enrollment, which is then gone on with', async () => {
    await start({ approval: 'manual' });
    const request = { forcesReenrollment: true };
    expect(await outcomeOf(run(request))).toBe('enrollment_pending');
    control.approveAll();
    await run(request);
    expect(control.submissions).toHaveLength(1);
    await run(request).catch(() => undefined);
    expect(control.submissions).toHaveLength(2);
  });

  it('is stopped by a signal, during a wait and before', async () => {
    await start({ approval: 'manual' });
    const stop = new AbortController();
    const sleep = async () => stop.abort();
    const ports = { stop: stop.signal, sleep, nowMs: () => nowMs };
    const stopped = startEnroll(workload, { controlUrl: control.url, ports });
    expect(await outcomeOf(stopped.ended)).toBe('enrollment_pending');
    const early = startEnroll(newWorkload(workload.token), { controlUrl: control.url, ports });
    expect(await outcomeOf(early.ended)).toBe('interrupted');
    control.approveAll();
    expect((await run()).kind).toBe('enrolled');
    expect(control.submissions).toHaveLength(1);
  });

  it('keeps the old key usable while the next one is pending', async () => {
    await start({ maxKeyLifetimeSeconds: 600 });
    await run();
    const [first] = control.keyIds;
    await control.close();
    const manual = await FakeControl.start({ approval: 'manual', nowMs: () => nowMs });
    control = manual;
    workload.token = await manual.token();
    expect(await outcomeOf(run({ waitsForActivation: false }))).toBe('enrollment_pending');
    expect(state()).toMatchObject({
      enrolled: { derived_key: { key_id: first } },
      attempt: { kind: 'submitted' },
      control_url: manual.url,
    });
  });

  it('tells a denial and its code; the next run submits anew', async () => {
    await start({ approval: 'manual' });
    await outcomeOf(run({ waitsForActivation: false }));
    control.denyAll('operator_denied');
    await expect(run()).rejects.toMatchObject({ code: 'enrollment_denied', kind: 'refused' });
    await expect(run({ waitsForActivation: false })).rejects.toMatchObject({ code: 'enrollment_pending' });
    expect(control.enrollments.size).toBe(2);
  });

  it('tells an enrollment that expired before anybody approved it', async () => {
    await start({ approval: 'manual' });
    await outcomeOf(run({ waitsForActivation: false }));
    nowMs += 3_601_000;
    control.approveAll();
    // The token, or the policy's maximum: Control does not say which.
    const message = expect.stringMatching(/token.*policy/);
    await expect(run()).rejects.toMatchObject({ code: 'enrollment_expired', kind: 'refused', message });
    expect(state().attempt).toBeUndefined();
  });

  it('enrolls anew when the key that came of it is near its end already', async () => {
    await start({ approval: 'manual' });
    await outcomeOf(run({ waitsForActivation: false }));
    control.approveAll();
    nowMs += 3_500_000;
    workload.token = await control.token();
    expect(await outcomeOf(run({ waitsForActivation: false }))).toBe('enrollment_pending');
    control.approveAll();
    expect((await run()).record.key.keyId).toBe(control.keyIds[1]);
  });

  it('tells an enrollment that Control lost; the next run submits anew', async () => {
    await start({ approval: 'manual' });
    await outcomeOf(run({ waitsForActivation: false }));
    control.enrollments.clear();
    await expect(run()).rejects.toMatchObject({ code: 'enrollment_unknown', kind: 'refused' });
    await outcomeOf(run({ waitsForActivation: false }));
    expect(control.enrollments.size).toBe(1);
  });

  it('tells clocks that are apart, and keeps the enrollment', async () => {
    await start({ approval: 'manual' });
    await outcomeOf(run({ waitsForActivation: false }));
    control.approveAll();
    const ports = { nowMs: () => nowMs + 61_000 };
    const apart = startEnroll(workload, { controlUrl: control.url, ports });
    await expect(apart.ended).rejects.toMatchObject({ code: 'poll_unauthorized', kind: 'refused' });
    expect((await run()).kind).toBe('enrolled');
    expect(control.submissions).toHaveLength(1);
  });

  it('waits as long as Control wishes when it throttles polls, and never submits for that', async () => {
    await start({ approval: 'manual' });
    let polls = 0;
    control.interfere = (method) => {
      if (method !== 'GET') return undefined;
      polls += 1;
      if (polls === 3) control.approveAll();
      return polls < 3 ? { status: 429, code: 'rate_limited', retryAfter: 45 } : undefined;
    };
    const { ended, waits } = begin();
    await ended;
    expect(waits.map((waitMs) => waitMs >= 45_000)).toEqual([true, true]);
    expect(control.submissions).toHaveLength(1);
  });

  it.each(hostileRetryAfters())('waits at most a minute, and asks a last time: %s', async (retryAfter) => {
    await start({ approval: 'manual' });
    let polls = 0;
    control.interfere = (method) => {
      if (method !== 'GET') return undefined;
      polls += 1;
      return { status: 503, code: 'unavailable', retryAfter };
    };
    const { ended, waits } = begin({ timeoutMs: 90_000 });
    expect(await outcomeOf(ended)).toBe('enrollment_pending');
    expect(Math.max(...waits)).toBeLessThanOrEqual(61_000);
    expect(polls).toBe(waits.length + 1);
    expect(polls).toBeGreaterThan(3);
  });

  it.each(hostileRetryAfters())('submits again within a minute: %s', async (retryAfter) => {
    await start();
    let asked = 0;
    control.interfere = () => {
      asked += 1;
      return asked < 3 ? { status: 503, code: 'unavailable', retryAfter } : undefined;
    };
    const { ended, waits } = begin();
    await ended;
    expect(waits).toHaveLength(2);
    expect(Math.max(...waits)).toBeLessThanOrEqual(61_000);
  });
});

describe('refusals', () => {
  it.each([
    [409, 'policy_not_active'],
    [422, 'policy_issuer_mismatch'],
    [409, 'policy_revision_outdated'],
    [409, 'source_not_active'],
    [403, 'subject_blocked'],
    [409, 'token_key_limit'],
    [422, 'public_key_invalid'],
    [422, 'unsupported_enrollment_provider'],
    [400, 'request_malformed'],
    [418, 'never_heard_of'],
  ])('of status %d say their code: %s', async (status, code) => {
    await start();
    control.policyProblem = [status, code];
    await expect(run()).rejects.toMatchObject({ code, kind: 'refused' });
    expect(state().attempt).toBeUndefined();
    control.policyProblem = undefined;
    expect(await outcomeOf(run())).toBe('done');
    expect(control.enrollments.size).toBe(1);
  });

  it.each([
    ['audience', { audience: 'elsewhere' }, 'token_audience_mismatch'],
    ['subject', { subject: 'system:serviceaccount:prod:billing2' }, 'token_subject_mismatch'],
    ['expiry', { ttlSeconds: -1 }, 'token_invalid'],
  ])('of a token with the wrong %s', async (_what, members, code) => {
    await start();
    workload.token = await control.token(members);
    await expect(run()).rejects.toMatchObject({ code, kind: 'refused' });
    expect(control.enrollments.size).toBe(0);
    // With a valid token the same command succeeds.
    workload.token = await control.token();
    expect(await outcomeOf(run())).toBe('done');
  });

  it('of a key that was revoked', async () => {
    await start();
    control.revokedThumbprints.add(workload.key.publicKey.thumbprint);
    await expect(run()).rejects.toMatchObject({ code: 'key_revoked', kind: 'refused' });
  });

  it('of a URL that Control does not go by', async () => {
    await start({ publicUrls: () => ['https://control.shop.example'] });
    await expect(run()).rejects.toMatchObject({ code: 'signature_invalid', kind: 'refused' });
  });

  it.each(['revoked', 'expired'] as const)('of a key that is %s when it is asked for', async (status) => {
    await start({ approval: 'manual' });
    await outcomeOf(run({ waitsForActivation: false }));
    control.approveAll();
    for (const enrollment of control.enrollments.values()) enrollment.keyStatus = status;
    control.policyProblem = [409, 'policy_not_active'];
    await expect(run()).rejects.toMatchObject({ kind: 'refused' });
    expect(state().enrolled.derived_key.status).toBe(status);
  });

  it('of a challenge that expires again and again, after the retries that are allowed', async () => {
    await start();
    control.interfere = (method, path) =>
      method === 'POST' && path === '/v1/enrollments'
        ? { status: 410, code: 'challenge_expired' }
        : undefined;
    await expect(run()).rejects.toMatchObject({ code: 'challenge_expired', kind: 'refused' });
    expect(
      control.requests.map(({ path }) => path).filter((path) => path.endsWith('s/challenges')),
    ).toHaveLength(3);
  });
});

describe('a Control that cannot answer', () => {
  it.each([
    [0, 1],
    [2, 3],
    [5, 6],
  ])('is asked again as often as %d retries allow', async (submitRetries, asked) => {
    await start();
    control.interfere = () => ({ status: 503, code: 'issuer_keys_unavailable' });
    await expect(run({ submitRetries })).rejects.toMatchObject({
      code: 'issuer_keys_unavailable',
      kind: 'unreachable',
    });
    expect(control.requests).toHaveLength(asked);
  });

  it.each([
    [503, 'unavailable'],
    [408, 'request_timeout'],
  ])('may have accepted what it answers %i %s for: the same submission follows', async (status, code) => {
    await start();
    control.interfere = (method, path) =>
      method === 'POST' && path === '/v1/enrollments' ? { status, code } : undefined;
    await expect(run()).rejects.toMatchObject({ code: 'submission_unconfirmed', kind: 'pending' });
    const { challenge_id: challengeId } = state().attempt;
    control.interfere = undefined;
    expect(await outcomeOf(run())).toBe('done');
    expect(control.submissions).toEqual([expect.objectContaining({ challengeId, status: 201 })]);
  });

  it.each(['issuer_keys_unavailable', 'rate_limited'])(
    'knows that nothing came of it when it says %s',
    async (code) => {
      await start();
      const status = code === 'rate_limited' ? 429 : 503;
      control.interfere = (method, path) =>
        method === 'POST' && path === '/v1/enrollments' ? { status, code } : undefined;
      await expect(run()).rejects.toMatchObject({ code });
      expect(state().attempt).toBeUndefined();
    },
  );

  it('is distinguished from one that throttles', async () => {
    await start();
    control.interfere = () => ({ status: 429, code: 'rate_limited', retryAfter: 20 });
    const { ended, waits } = begin();
    await expect(ended).rejects.toMatchObject({ code: 'rate_limited', kind: 'pending' });
    expect(waits.every((waitMs) => waitMs >= 20_000)).toBe(true);
  });

  it('is distinguished from one that is not there', async () => {
    await start();
    const controlUrl = control.url;
    await control.close();
    const { ended } = startEnroll(workload, { controlUrl });
    await expect(ended).rejects.toMatchObject({ code: 'unreachable', kind: 'unreachable' });
    control = await FakeControl.start();
  });
});

it('says nothing of tokens, challenges and signatures in states, events and errors', async () => {
  await start({ approval: 'manual' });
  const texts: string[] = [];
  const first = begin({ waitsForActivation: false });
  await first.ended.catch((error: Error) => texts.push(`${error.message} ${error.stack}`));
  texts.push(JSON.stringify(first.events), workload.states.text ?? '');
  control.approveAll();
  const second = begin();
  texts.push(JSON.stringify(await second.ended), workload.states.text ?? '');
  const secrets = [workload.token, ...workload.token.split('.').slice(1), ...control.secrets];
  expect(secrets.length).toBeGreaterThan(4);
  for (const secret of secrets) expect(texts.filter((text) => text.includes(secret))).toEqual([]);
});

it('runs twice at once without harm: each key ID is of the one key', async () => {
  await start();
  await Promise.all([runEnroll(workload, { controlUrl: control.url }), run()]);
  expect(control.keyIds).toContain(state().enrolled.derived_key.key_id);
});
