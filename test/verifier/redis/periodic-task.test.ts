import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, it } from '@jest/globals';
import { PeriodicTask } from '../../../src/verifier/redis/periodic-task.ts';
import { waitUntil } from '../../support/wait.ts';

const SELDOM_MS = 3_600_000;

let opened: PeriodicTask[] = [];
afterEach(async () => {
  for (const look of opened) await look.stop();
  opened = [];
});

interface HeldLooks {
  begun: number;
  underWay: number;
  mostUnderWay: number;
  letGo: () => void;
}

/** Counts looks; each lasts until `letGo`. */
function heldLooks(intervalMs: number) {
  const state: HeldLooks = { begun: 0, underWay: 0, mostUnderWay: 0, letGo: () => undefined };
  const look = new PeriodicTask(intervalMs, async () => {
    state.begun += 1;
    state.underWay += 1;
    state.mostUnderWay = Math.max(state.mostUnderWay, state.underWay);
    await new Promise<void>((resolve) => {
      state.letGo = resolve;
    });
    state.underWay -= 1;
  });
  opened.push(look);
  return { look, state };
}

function countedLooks(intervalMs: number) {
  const state = { begun: 0 };
  const look = new PeriodicTask(intervalMs, async () => {
    state.begun += 1;
  });
  opened.push(look);
  return { look, state };
}

describe('a look that is repeated', () => {
  it('begins at once, and comes again by itself', async () => {
    const { state } = countedLooks(1);
    await waitUntil(() => state.begun >= 3);
  });

  it('does not come again before its interval is over', async () => {
    const { look, state } = countedLooks(SELDOM_MS);
    await waitUntil(() => state.begun === 1);
    await sleep(100);
    expect(state.begun).toBe(1);
    expect(look.isStopped).toBe(false);
  });

  it('comes once for however many ask, and again for those that ask after it', async () => {
    const { look, state } = countedLooks(SELDOM_MS);
    await waitUntil(() => state.begun === 1);
    for (let count = 0; count < 5; count += 1) look.soon();
    await waitUntil(() => state.begun === 2);
    await sleep(120);
    expect(state.begun).toBe(2);
    look.soon();
    await waitUntil(() => state.begun === 3);
  });

  it('is not put off by those that ask again and again', async () => {
    const { look, state } = countedLooks(SELDOM_MS);
    await waitUntil(() => state.begun === 1);
    await waitUntil(() => {
      look.soon();
      return state.begun >= 3;
    });
  });

  it('leaves a pause between two looks that were asked for', async () => {
    const { look, state } = countedLooks(SELDOM_MS);
    await waitUntil(() => state.begun === 1);
    const startedMs = performance.now();
    await waitUntil(() => {
      look.soon();
      return state.begun >= 5;
    });
    expect(performance.now() - startedMs).toBeGreaterThan(150);
  });

  it('is one at a time: who asks during one has another right after it', async () => {
    const { look, state } = heldLooks(SELDOM_MS);
    await waitUntil(() => state.begun === 1);
    look.soon();
    await sleep(120);
    expect(state.begun).toBe(1);
    state.letGo();
    await waitUntil(() => state.begun === 2);
    state.letGo();
    await sleep(120);
    expect(state).toMatchObject({ begun: 2, mostUnderWay: 1 });
  });

  it('ends when stopped, after the look that is under way', async () => {
    const { look, state } = heldLooks(1);
    await waitUntil(() => state.begun === 1);
    let hasStopped = false;
    const stopping = look.stop().then(() => {
      hasStopped = true;
    });
    expect(look.isStopped).toBe(true);
    await sleep(20);
    expect(hasStopped).toBe(false);
    state.letGo();
    await stopping;
    look.soon();
    await sleep(120);
    expect(state).toMatchObject({ begun: 1, underWay: 0 });
  });

  it('never begins when it is stopped first', async () => {
    const { look, state } = countedLooks(1);
    await look.stop();
    await sleep(50);
    expect(state.begun).toBe(0);
  });
});
