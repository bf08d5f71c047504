/** Tests that a new key replaces the old one once verifiers know it, and that a revoked key must go. */
import { afterEach, describe, expect, it } from '@jest/globals';
import { KeeperStand } from '../../workload/agent/keeper-fixture.ts';

const MINUTE = 60_000;
let stand: KeeperStand;
afterEach(() => stand.close());

/** Starts with a valid folder. */
async function start(): Promise<void> {
  stand = await KeeperStand.start();
  await stand.pairs.open();
}

/** Starts with an enrolled key. */
async function startEnrolled(): Promise<void> {
  await start();
  await stand.turnUntil(() => stand.count('replaced') === 1);
}

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
