/** Tests the agent against a Control on loopback: what it enrolls, when, which files it keeps, and its log. */
import { stat, writeFile } from 'node:fs/promises';
import { afterEach, describe, expect, it } from '@jest/globals';
import type { KeeperOptions } from '../../../src/caller/agent/keeper-ports.ts';
import { readEnrolledKeyFile } from '../../../src/caller/enroll/state-file.ts';
import type { FakeControlOptions } from '../../support/fakes/control-enrollment.ts';
import { profile } from '../../support/fakes/control-enrollment-answers.ts';
import { hostileRetryAfters } from '../../support/fixtures/retry-after-headers.ts';
import { AgentFixture } from './keeper-fixture.ts';

const MINUTE = 60_000;
let agent: AgentFixture;
afterEach(() => agent.close());

/** Starts with a valid folder. */
async function start(control: FakeControlOptions = {}, options: Partial<KeeperOptions> = {}): Promise<void> {
  agent = await AgentFixture.start(control, options);
  await agent.pairs.open();
}

/** Starts with an enrolled key. */
async function startEnrolled(control: FakeControlOptions = {}): Promise<void> {
  await start(control);
  await agent.checkUntil(() => agent.count('replaced') === 1);
}

describe('enrolling', () => {
  it('begins at once, and is ready with the key in place', async () => {
    await start();
    expect(agent.isReady).toBe(false);
    await agent.checkUntil(() => agent.count('replaced') === 1);
    expect(await agent.keyId()).toBe(agent.control.keyIds[0]);
    expect(agent.isReady).toBe(true);
    expect(agent.waits).toEqual([]);
  });

  it('sends no request while the key is young', async () => {
    await startEnrolled();
    const asked = agent.control.requests.length;
    const until = agent.nowMs + 5 * MINUTE;
    await agent.checkUntil(() => agent.nowMs > until);
    expect(agent.control.requests.length).toBe(asked);
    expect(agent.control.enrollments.size).toBe(1);
  });

  it('makes a new key when the token changes, and one only', async () => {
    await startEnrolled();
    const before = await agent.keyId();
    agent.pass(48 * MINUTE);
    await agent.renewToken();
    await agent.checkUntil(() => agent.count('replaced') === 2);
    expect(await agent.keyId()).not.toBe(before);
    const [first, second] = [...agent.control.enrollments.values()];
    expect(first?.key.thumbprint).not.toBe(second?.key.thumbprint);
    const until = agent.nowMs + 5 * MINUTE;
    await agent.checkUntil(() => agent.nowMs > until);
    expect(agent.control.enrollments.size).toBe(2);
  });

  it('makes a new key with the same token near the end of one that the policy cut short', async () => {
    await startEnrolled({ maxKeyLifetimeSeconds: 600 });
    const enrolledAtMs = agent.nowMs;
    await agent.checkUntil(() => agent.count('replaced') === 2);
    expect(agent.nowMs - enrolledAtMs).toBeGreaterThanOrEqual(8.4 * MINUTE);
    expect(agent.nowMs - enrolledAtMs).toBeLessThan(8.6 * MINUTE);
  });

  it('does not enroll again and again with a token that the kubelet leaves as it is', async () => {
    await startEnrolled();
    agent.pass(56 * MINUTE);
    await agent.checkUntil(() => agent.trouble === 'token_not_renewed');
    expect(agent.isReady).toBe(true);
    expect(agent.control.enrollments.size).toBe(1);
    await agent.renewToken();
    await agent.checkUntil(() => agent.count('replaced') === 2);
    expect(agent.trouble).toBeUndefined();
  });

  it('begins with a new key on request', async () => {
    await start({}, { startsAnew: true });
    await agent.checkUntil(() => agent.count('replaced') === 1);
    agent.restart();
    await agent.checkUntil(() => agent.count('replaced') === 2);
    const until = agent.nowMs + 5 * MINUTE;
    await agent.checkUntil(() => agent.nowMs > until);
    expect(agent.count('replaced')).toBe(2);
  });

  it('enrolls once when the clock stood still and jumps past the time to renew, within 10 s', async () => {
    await startEnrolled();
    agent.pass(56 * MINUTE);
    await agent.renewToken();
    const waitedMs = agent.skippedMs;
    await agent.checkUntil(() => agent.count('replaced') === 2);
    // The machine of a test may be slow; the waits of the agent are counted.
    expect(agent.skippedMs - waitedMs).toBeLessThanOrEqual(10_000);
    const until = agent.nowMs + 5 * MINUTE;
    await agent.checkUntil(() => agent.nowMs > until);
    expect([agent.count('replaced'), agent.control.enrollments.size]).toEqual([2, 2]);
  });

  it('enrolls after a night of sleep, at the first look', async () => {
    await startEnrolled();
    agent.pass(12 * 60 * MINUTE);
    expect(agent.checks[0]?.problem).toMatch(/^key_expired: /);
    await agent.renewToken();
    await agent.checkUntil(() => agent.count('replaced') === 2);
    expect(agent.isReady).toBe(true);
  });
});

describe('approval', () => {
  it('is waited for without hammering, and the key of the one enrollment is put in place', async () => {
    await start({ approval: 'manual' });
    const beganMs = agent.nowMs;
    agent.onSleep = () => {
      if (agent.nowMs - beganMs > 30 * MINUTE) agent.control.approveAll();
    };
    await agent.checkUntil(() => agent.trouble === 'enrollment_pending');
    expect(agent.isReady).toBe(false);
    await agent.checkUntil(() => agent.count('replaced') === 1);
    expect(agent.control.enrollments.size).toBe(1);
    expect(agent.control.distinctSubmissions).toBe(1);
    const polls = agent.control.requests.filter(({ path }) => /\/enr_[^/]+$/.test(path));
    expect(polls.length).toBeLessThan(90);
  });

  it('that is refused is asked for again only with another token', async () => {
    await start({ approval: 'manual' });
    agent.onSleep = () => agent.control.denyAll('denied_by_operator');
    await agent.checkUntil(() => agent.trouble === 'enrollment_denied');
    const until = agent.nowMs + 50 * MINUTE;
    await agent.checkUntil(() => agent.nowMs > until);
    expect(agent.control.enrollments.size).toBe(1);
    await agent.renewToken();
    await agent.checkUntil(() => agent.control.enrollments.size === 2);
  });

  it.each(['policy_rebound', 'policy_not_active', 'source_not_active'])(
    'that ended with %s is asked for again with the same token',
    async (code) => {
      await start({ approval: 'manual' });
      agent.onSleep = () => agent.control.denyAll(code);
      await agent.checkUntil(() => agent.trouble === code);
      agent.onSleep = () => agent.control.approveAll();
      await agent.checkUntil(() => agent.count('replaced') === 1);
      expect(agent.control.enrollments.size).toBe(2);
    },
  );
});

describe('a Control that', () => {
  it('is away leaves the old key in place until its end', async () => {
    await startEnrolled();
    agent.pass(48 * MINUTE);
    await agent.renewToken();
    agent.control.interfere = () => ({ status: 503, code: 'unavailable' });
    await agent.checkUntil(() => agent.trouble === 'unavailable');
    expect(agent.isReady).toBe(true);
    expect(agent.checks[1]?.warning).toMatch(/^unavailable: /);
    await agent.checkUntil(() => !agent.isReady);
    expect(agent.checks[0]?.problem).toMatch(/^key_expired: .*; unavailable: /);
    agent.control.interfere = undefined;
    await agent.checkUntil(() => agent.isReady);
    expect(agent.control.enrollments.size).toBe(2);
  });

  it('is away is asked ever more slowly', async () => {
    await start();
    agent.control.interfere = () => ({ status: 503, code: 'unavailable' });
    const until = agent.nowMs + 60 * MINUTE;
    await agent.checkUntil(() => agent.nowMs > until);
    expect(agent.control.requests.length).toBeGreaterThan(50);
    expect(agent.control.requests.length).toBeLessThan(80);
  });

  it.each(hostileRetryAfters())(
    'without a key, is back within 10 s of it, whatever it asks: %s',
    async (after) => {
      await start();
      agent.control.interfere = () => ({ status: 503, code: 'unavailable', retryAfter: after });
      await agent.checkUntil(() => agent.trouble === 'unavailable');
      agent.control.interfere = undefined;
      const waitedMs = agent.skippedMs;
      await agent.checkUntil(() => agent.isReady);
      expect(agent.skippedMs - waitedMs).toBeLessThanOrEqual(11_000);
    },
  );

  it.each(hostileRetryAfters())('does not outlast the key, whatever it asks: %s', async (after) => {
    await startEnrolled();
    const endsAtMs = agent.keeper.state.record?.key.expiresAtMs ?? 0;
    agent.pass(48 * MINUTE);
    await agent.renewToken();
    agent.control.interfere = () => ({ status: 503, code: 'unavailable', retryAfter: after });
    await agent.checkUntil(() => agent.trouble === 'unavailable');
    agent.control.interfere = undefined;
    await agent.checkUntil(() => agent.count('replaced') === 2);
    expect(agent.nowMs).toBeLessThanOrEqual(endsAtMs - 50_000);
  });

  it.each(['policy_not_active', 'source_not_active', 'policy_revision_outdated'])(
    'refuses with %s is asked slowly, and at once with another token',
    async (code) => {
      await start();
      agent.control.policyProblem = [409, code];
      await agent.checkUntil(() => agent.trouble === code);
      const until = agent.nowMs + 60 * MINUTE;
      await agent.checkUntil(() => agent.nowMs > until);
      const asked = agent.control.requests.length;
      expect(asked).toBeLessThan(12);
      expect(agent.checks[0]?.problem).toMatch(new RegExp(`^not_enrolled; ${code}: `));
      await agent.renewToken();
      await agent.checkUntil(() => agent.control.requests.length > asked);
      expect(agent.nowMs - until).toBeLessThan(MINUTE);
      agent.control.policyProblem = undefined;
      await agent.checkUntil(() => agent.isReady);
    },
  );

  it('refuses the token says why; the key that was shown with it is not used again', async () => {
    await start();
    await agent.renewToken({ subject: 'system:serviceaccount:prod:other' });
    await agent.checkUntil(() => agent.trouble === 'token_subject_mismatch');
    expect(await agent.pairs.next()).toBeUndefined();
    await agent.renewToken();
    await agent.checkUntil(() => agent.isReady);
    expect(agent.control.enrollments.size).toBe(1);
  });
});

describe('a token file that', () => {
  it.each([
    ['is empty', '', 'workload_token_malformed'],
    ['holds something else', 'no token', 'workload_token_malformed'],
  ])('%s is reported, and checked again', async (_what, text, code) => {
    await start();
    await agent.putToken(text);
    await agent.checkUntil(() => agent.trouble === code);
    expect(agent.control.requests.length).toBe(0);
    await agent.renewToken();
    await agent.checkUntil(() => agent.isReady);
  });

  it('is not there does not shake a key that is good', async () => {
    await startEnrolled();
    await agent.putToken('');
    const until = agent.nowMs + 30 * MINUTE;
    await agent.checkUntil(() => agent.nowMs > until);
    expect(agent.isReady).toBe(true);
    expect(agent.checks[1]?.warning).toBeUndefined();
    await agent.checkUntil(() => agent.trouble === 'workload_token_malformed');
  });
});

it('gets the enrollment of its first token when the token was replaced before the answer arrived', async () => {
  await start();
  // Stopped while Control handles the request.
  agent.control.interfere = (_method, path) => {
    if (path === '/v1/enrollments') agent.stop.abort();
    return undefined;
  };
  await agent.checkUntil(() => agent.control.enrollments.size === 1);
  agent.control.interfere = undefined;
  await agent.renewToken();
  agent.restart();
  const beganMs = agent.nowMs;
  await agent.checkUntil(() => agent.isReady);
  expect(agent.events.filter(({ kind }) => kind !== 'enrolling')).toMatchObject([{ kind: 'replaced' }]);
  expect(agent.control.enrollments.size).toBe(1);
  expect(agent.nowMs - beganMs).toBeLessThan(10_000);
});

it('goes on after a file of the next key was spoilt', async () => {
  await startEnrolled({ maxKeyLifetimeSeconds: 600 });
  await writeFile(await agent.pairs.nextKeyFile(), 'not a key', { mode: 0o600 });
  await agent.checkUntil(() => agent.count('replaced') === 2);
  expect(await agent.keyId()).toBe(agent.control.keyIds[1]);
});

it('says nothing secret', async () => {
  await startEnrolled();
  agent.control.policyProblem = [409, 'policy_not_active'];
  agent.pass(48 * MINUTE);
  await agent.renewToken();
  await agent.checkUntil(() => agent.trouble === 'policy_not_active');
  const said = JSON.stringify([agent.events, agent.checks]);
  for (const secret of [...agent.control.secrets, await agent.tokenText()])
    expect(said).not.toContain(secret);
});

function notReady(): void {
  const target = { condition: 'target_acknowledged', state: 'pending', satisfied: false };
  agent.control.readiness = { ready: false, conditions: [target] };
}

describe('propagation', () => {
  it('keeps the old key in place until verifiers have the new one', async () => {
    await startEnrolled();
    const before = await agent.keyId();
    agent.pass(48 * MINUTE);
    await agent.renewToken();
    notReady();
    const held: (string | undefined)[] = [];
    agent.onSleep = async () => {
      held.push(await agent.keyId());
      if (held.length === 5) agent.control.readiness = { ready: true, conditions: [] };
    };
    await agent.checkUntil(() => agent.count('replaced') === 2);
    expect(held).toEqual([before, before, before, before, before]);
    expect(await agent.keyId()).toBe(agent.control.keyIds[1]);
    expect(agent.checks).toMatchObject([{ name: 'key' }, { name: 'renewal', warning: undefined }]);
  });

  it('waits for half of what the old key has left, and says so then', async () => {
    await startEnrolled();
    agent.pass(48 * MINUTE);
    await agent.renewToken();
    notReady();
    const beganMs = agent.nowMs;
    await agent.checkUntil(() => agent.count('replaced') === 2);
    expect((agent.nowMs - beganMs) / MINUTE).toBeCloseTo(6, 0);
    expect(agent.isReady).toBe(true);
    expect(agent.checks[1]?.warning).toMatch(/^key_unconfirmed: /);
    agent.control.readiness = { ready: true, conditions: [] };
    await agent.checkUntil(() => agent.checks[1]?.warning === undefined);
  });

  it('does not keep a pod from starting where a verifier is gone', async () => {
    await start();
    notReady();
    const beganMs = agent.nowMs;
    await agent.checkUntil(() => agent.isReady);
    expect(agent.nowMs - beganMs).toBeLessThan(31_000);
  });
});

describe('changed grants', () => {
  it('renews the profiles of the key in place, and keeps the key', async () => {
    await startEnrolled();
    const before = await agent.keyId();
    agent.control.profiles = [profile(), profile({ name: 'write', route_id: 'write', method: 'POST' })];
    await agent.checkUntil(() => agent.count('refreshed') === 1);
    const { state } = await readEnrolledKeyFile(agent.keyFile);
    expect(state.enrolled?.key.profiles.map(({ routeId }) => routeId)).toEqual(['orders-read', 'write']);
    expect([await agent.keyId(), agent.count('replaced')]).toEqual([before, 1]);
    // Nothing else changed, so nothing is written again.
    const { mtimeMs } = await stat(`${agent.keyFile}.enrollment.json`);
    agent.pass(30 * MINUTE);
    await agent.keeper.check(agent.stop.signal);
    expect((await stat(`${agent.keyFile}.enrollment.json`)).mtimeMs).toBe(mtimeMs);
  });
});

describe('revocation', () => {
  it('is noticed, reported, and answered with a new key', async () => {
    await startEnrolled();
    const derivedKey = { condition: 'derived_key', state: 'revoked', satisfied: false };
    agent.control.readiness = { ready: false, conditions: [derivedKey] };
    agent.control.policyProblem = [403, 'subject_blocked'];
    await agent.checkUntil(() => agent.trouble === 'subject_blocked');
    expect(agent.checks[0]?.problem).toMatch(/^key_revoked: .*; subject_blocked: /);
    agent.control.policyProblem = undefined;
    agent.control.readiness = { ready: true, conditions: [] };
    await agent.checkUntil(() => agent.count('replaced') === 2);
    expect(agent.isReady).toBe(true);
  });
});
