/** Tests the agent against a Control on loopback: what it enrolls, when, which files it keeps, and its log. */
import { writeFile } from 'node:fs/promises';
import { afterEach, describe, expect, it } from '@jest/globals';
import type { KeeperOptions } from '../../../src/workload/agent/keeper-ports.ts';
import type { FakeControlOptions } from '../../fakes/control-enrollment.ts';
import { KeeperStand } from './keeper-fixture.ts';

const MINUTE = 60_000;
let stand: KeeperStand;
afterEach(() => stand.close());

/** Starts with a valid folder. */
async function start(control: FakeControlOptions = {}, options: Partial<KeeperOptions> = {}): Promise<void> {
  stand = await KeeperStand.start(control, options);
  await stand.pairs.open();
}

/** Starts with an enrolled key. */
async function startEnrolled(control: FakeControlOptions = {}): Promise<void> {
  await start(control);
  await stand.turnUntil(() => stand.count('replaced') === 1);
}

describe('enrolling', () => {
  it('begins at once, and is ready with the key in place', async () => {
    await start();
    expect(stand.isReady).toBe(false);
    await stand.turnUntil(() => stand.count('replaced') === 1);
    expect(await stand.keyId()).toBe(stand.control.keyIds[0]);
    expect(stand.isReady).toBe(true);
    expect(stand.waits).toEqual([]);
  });

  it('sends no request while the key is young', async () => {
    await startEnrolled();
    const asked = stand.control.requests.length;
    const until = stand.nowMs + 5 * MINUTE;
    await stand.turnUntil(() => stand.nowMs > until);
    expect(stand.control.requests.length).toBe(asked);
    expect(stand.control.enrollments.size).toBe(1);
  });

  it('makes a new key when the token changes, and one only', async () => {
    await startEnrolled();
    const before = await stand.keyId();
    stand.pass(48 * MINUTE);
    await stand.renewToken();
    await stand.turnUntil(() => stand.count('replaced') === 2);
    expect(await stand.keyId()).not.toBe(before);
    const [first, second] = [...stand.control.enrollments.values()];
    expect(first?.key.thumbprint).not.toBe(second?.key.thumbprint);
    const until = stand.nowMs + 5 * MINUTE;
    await stand.turnUntil(() => stand.nowMs > until);
    expect(stand.control.enrollments.size).toBe(2);
  });

  it('makes a new key with the same token near the end of one that the policy cut short', async () => {
    await startEnrolled({ maxKeyLifetimeSeconds: 600 });
    const enrolledAtMs = stand.nowMs;
    await stand.turnUntil(() => stand.count('replaced') === 2);
    expect(stand.nowMs - enrolledAtMs).toBeGreaterThanOrEqual(8.4 * MINUTE);
    expect(stand.nowMs - enrolledAtMs).toBeLessThan(8.6 * MINUTE);
  });

  it('does not enroll again and again with a token that the kubelet leaves as it is', async () => {
    await startEnrolled();
    stand.pass(56 * MINUTE);
    await stand.turnUntil(() => stand.trouble === 'token_not_renewed');
    expect(stand.isReady).toBe(true);
    expect(stand.control.enrollments.size).toBe(1);
    await stand.renewToken();
    await stand.turnUntil(() => stand.count('replaced') === 2);
    expect(stand.trouble).toBeUndefined();
  });

  it('begins with a new key on request', async () => {
    await start({}, { startsAnew: true });
    await stand.turnUntil(() => stand.count('replaced') === 1);
    stand.restart();
    await stand.turnUntil(() => stand.count('replaced') === 2);
    const until = stand.nowMs + 5 * MINUTE;
    await stand.turnUntil(() => stand.nowMs > until);
    expect(stand.count('replaced')).toBe(2);
  });

  it('enrolls after a night of sleep, at the first look', async () => {
    await startEnrolled();
    stand.pass(12 * 60 * MINUTE);
    expect(stand.checks[0]?.problem).toMatch(/^key_expired: /);
    await stand.renewToken();
    await stand.turnUntil(() => stand.count('replaced') === 2);
    expect(stand.isReady).toBe(true);
  });
});

describe('approval', () => {
  it('is waited for without hammering, and the key of the one enrollment is put in place', async () => {
    await start({ approval: 'manual' });
    const beganMs = stand.nowMs;
    stand.onSleep = () => {
      if (stand.nowMs - beganMs > 30 * MINUTE) stand.control.approveAll();
    };
    await stand.turnUntil(() => stand.trouble === 'enrollment_pending');
    expect(stand.isReady).toBe(false);
    await stand.turnUntil(() => stand.count('replaced') === 1);
    expect(stand.control.enrollments.size).toBe(1);
    expect(stand.control.distinctSubmissions).toBe(1);
    const polls = stand.control.requests.filter(({ path }) => /\/enr_[^/]+$/.test(path));
    expect(polls.length).toBeLessThan(90);
  });

  it('that is refused is asked for again only with another token', async () => {
    await start({ approval: 'manual' });
    stand.onSleep = () => stand.control.denyAll('denied_by_operator');
    await stand.turnUntil(() => stand.trouble === 'enrollment_denied');
    const until = stand.nowMs + 50 * MINUTE;
    await stand.turnUntil(() => stand.nowMs > until);
    expect(stand.control.enrollments.size).toBe(1);
    await stand.renewToken();
    await stand.turnUntil(() => stand.control.enrollments.size === 2);
  });
});

describe('a Control that', () => {
  it('is away leaves the old key in place until its end', async () => {
    await startEnrolled();
    stand.pass(48 * MINUTE);
    await stand.renewToken();
    stand.control.interfere = () => ({ status: 503, code: 'unavailable' });
    await stand.turnUntil(() => stand.trouble === 'unavailable');
    expect(stand.isReady).toBe(true);
    expect(stand.checks[1]?.warning).toMatch(/^unavailable: /);
    await stand.turnUntil(() => !stand.isReady);
    expect(stand.checks[0]?.problem).toMatch(/^key_expired: .*; unavailable: /);
    stand.control.interfere = undefined;
    await stand.turnUntil(() => stand.isReady);
    expect(stand.control.enrollments.size).toBe(2);
  });

  it('is away is asked ever more slowly', async () => {
    await start();
    stand.control.interfere = () => ({ status: 503, code: 'unavailable' });
    const until = stand.nowMs + 60 * MINUTE;
    await stand.turnUntil(() => stand.nowMs > until);
    expect(stand.control.requests.length).toBeGreaterThan(50);
    expect(stand.control.requests.length).toBeLessThan(80);
  });

  it('asks to be left alone for longer than a run lasts is left alone', async () => {
    await start();
    stand.control.interfere = () => ({ status: 429, code: 'rate_limited', retryAfterSeconds: 900 });
    await stand.turnUntil(() => stand.trouble === 'rate_limited');
    const until = stand.nowMs + 14 * MINUTE;
    await stand.turnUntil(() => stand.nowMs > until);
    expect(stand.control.requests.length).toBe(1);
    stand.control.interfere = undefined;
    await stand.turnUntil(() => stand.isReady);
    expect(stand.nowMs).toBeGreaterThan(until);
  });

  it.each(['policy_not_active', 'source_not_active', 'policy_revision_outdated'])(
    'refuses with %s is asked slowly, and at once with another token',
    async (code) => {
      await start();
      stand.control.policyProblem = [409, code];
      await stand.turnUntil(() => stand.trouble === code);
      const until = stand.nowMs + 60 * MINUTE;
      await stand.turnUntil(() => stand.nowMs > until);
      const asked = stand.control.requests.length;
      expect(asked).toBeLessThan(12);
      expect(stand.checks[0]?.problem).toMatch(new RegExp(`^not_enrolled; ${code}: `));
      await stand.renewToken();
      await stand.turnUntil(() => stand.control.requests.length > asked);
      expect(stand.nowMs - until).toBeLessThan(MINUTE);
      stand.control.policyProblem = undefined;
      await stand.turnUntil(() => stand.isReady);
    },
  );

  it('refuses the token says why; the key that was shown with it is not used again', async () => {
    await start();
    await stand.renewToken({ subject: 'system:serviceaccount:prod:other' });
    await stand.turnUntil(() => stand.trouble === 'token_subject_mismatch');
    expect(await stand.pairs.next()).toBeUndefined();
    await stand.renewToken();
    await stand.turnUntil(() => stand.isReady);
    expect(stand.control.enrollments.size).toBe(1);
  });
});

describe('a token file that', () => {
  it.each([
    ['is empty', '', 'workload_token_malformed'],
    ['holds something else', 'no token', 'workload_token_malformed'],
  ])('%s is reported, and checked again', async (_what, text, code) => {
    await start();
    await stand.putToken(text);
    await stand.turnUntil(() => stand.trouble === code);
    expect(stand.control.requests.length).toBe(0);
    await stand.renewToken();
    await stand.turnUntil(() => stand.isReady);
  });

  it('is not there does not shake a key that is good', async () => {
    await startEnrolled();
    await stand.putToken('');
    const until = stand.nowMs + 30 * MINUTE;
    await stand.turnUntil(() => stand.nowMs > until);
    expect(stand.isReady).toBe(true);
    expect(stand.checks[1]?.warning).toBeUndefined();
    await stand.turnUntil(() => stand.trouble === 'workload_token_malformed');
  });
});

it('submits anew when the token was replaced between a submission and its lost answer', async () => {
  await start();
  // Stopped while Control handles the request.
  stand.control.interfere = (_method, path) => {
    if (path === '/v1/enrollments') stand.stop.abort();
    return undefined;
  };
  await stand.turnUntil(() => stand.control.enrollments.size === 1);
  stand.control.interfere = undefined;
  await stand.renewToken();
  stand.restart();
  const beganMs = stand.nowMs;
  await stand.turnUntil(() => stand.isReady);
  expect(stand.events.filter(({ kind }) => kind !== 'enrolling')).toMatchObject([
    { kind: 'failed', failure: { code: 'challenge_consumed' } },
    { kind: 'replaced' },
  ]);
  expect(stand.nowMs - beganMs).toBeLessThan(10_000);
});

it('goes on after a file of the next key was spoilt', async () => {
  await startEnrolled({ maxKeyLifetimeSeconds: 600 });
  await writeFile(await stand.pairs.nextKeyFile(), 'not a key', { mode: 0o600 });
  await stand.turnUntil(() => stand.count('replaced') === 2);
  expect(await stand.keyId()).toBe(stand.control.keyIds[1]);
});

it('says nothing secret', async () => {
  await startEnrolled();
  stand.control.policyProblem = [409, 'policy_not_active'];
  stand.pass(48 * MINUTE);
  await stand.renewToken();
  await stand.turnUntil(() => stand.trouble === 'policy_not_active');
  const said = JSON.stringify([stand.events, stand.checks]);
  for (const secret of [...stand.control.secrets, await stand.tokenText()])
    expect(said).not.toContain(secret);
});

function notReady(): void {
  const target = { condition: 'target_acknowledged', state: 'pending', satisfied: false };
  stand.control.readiness = { ready: false, conditions: [target] };
}

describe('propagation', () => {
  it('keeps the old key in place until verifiers have the new one', async () => {
    await startEnrolled();
    const before = await stand.keyId();
    stand.pass(48 * MINUTE);
    await stand.renewToken();
    notReady();
    const held: (string | undefined)[] = [];
    stand.onSleep = async () => {
      held.push(await stand.keyId());
      if (held.length === 5) stand.control.readiness = { ready: true, conditions: [] };
    };
    await stand.turnUntil(() => stand.count('replaced') === 2);
    expect(held).toEqual([before, before, before, before, before]);
    expect(await stand.keyId()).toBe(stand.control.keyIds[1]);
    expect(stand.checks).toMatchObject([{ name: 'key' }, { name: 'renewal', warning: undefined }]);
  });

  it('waits for half of what the old key has left, and says so then', async () => {
    await startEnrolled();
    stand.pass(48 * MINUTE);
    await stand.renewToken();
    notReady();
    const beganMs = stand.nowMs;
    await stand.turnUntil(() => stand.count('replaced') === 2);
    expect((stand.nowMs - beganMs) / MINUTE).toBeCloseTo(6, 0);
    expect(stand.isReady).toBe(true);
    expect(stand.checks[1]?.warning).toMatch(/^key_unconfirmed: /);
    stand.control.readiness = { ready: true, conditions: [] };
    await stand.turnUntil(() => stand.checks[1]?.warning === undefined);
  });

  it('does not keep a pod from starting where a verifier is gone', async () => {
    await start();
    notReady();
    const beganMs = stand.nowMs;
    await stand.turnUntil(() => stand.isReady);
    expect(stand.nowMs - beganMs).toBeLessThan(31_000);
  });
});

describe('revocation', () => {
  it('is noticed, reported, and answered with a new key', async () => {
    await startEnrolled();
    const derivedKey = { condition: 'derived_key', state: 'revoked', satisfied: false };
    stand.control.readiness = { ready: false, conditions: [derivedKey] };
    stand.control.policyProblem = [403, 'subject_blocked'];
    await stand.turnUntil(() => stand.trouble === 'subject_blocked');
    expect(stand.checks[0]?.problem).toMatch(/^key_revoked: .*; subject_blocked: /);
    stand.control.policyProblem = undefined;
    stand.control.readiness = { ready: true, conditions: [] };
    await stand.turnUntil(() => stand.count('replaced') === 2);
    expect(stand.isReady).toBe(true);
  });
});
