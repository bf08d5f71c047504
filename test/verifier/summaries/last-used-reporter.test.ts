/** Tests that last uses of keys reach Control in pages, later if need be, and that their number has a bound. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { describe, expect, it } from '@jest/globals';
import { type KeyUse, MAX_KEY_USES } from '../../../src/bundle/format/key-use.ts';
import {
  LastUsedReporter,
  type LastUsedReporterOptions,
} from '../../../src/verifier/summaries/last-used-reporter.ts';
import { waitFor } from '../../support/wait.ts';

const PAGE_PAUSE_MS = 500;
const MINUTE = 60;

/**
 * Runs some minutes at once. @param use called at the start of each, with its number
 * @returns the key IDs of each post, and what came of it
 */
async function run(
  minutes: number,
  use: (reporter: LastUsedReporter, minute: number) => void,
  post: LastUsedReporterOptions['post'] = async () => 'taken',
  isKnown: LastUsedReporterOptions['isKnown'] = () => true,
) {
  const posts: KeyUse[][] = [];
  const outcomes: string[] = [];
  const waits: number[] = [];
  let minute = 0;
  let isOver = false;
  const reporter = new LastUsedReporter({
    post: (uses, signal) => {
      posts.push([...uses]);
      return post(uses, signal);
    },
    isKnown,
    metrics: { reported: (outcome, keys) => outcomes.push(`${outcome} ${keys}`) },
    nowMs: () => minute * 60_000 + 59_999,
    firstWaitMs: 7,
    sleep: async (waitMs) => {
      waits.push(waitMs);
      if (waitMs === PAGE_PAUSE_MS) return;
      isOver = minute === minutes;
      if (isOver) return new Promise(() => undefined);
      minute += 1;
      use(reporter, minute);
    },
  });
  reporter.start();
  await waitFor('the minutes', () => isOver);
  return { posts, outcomes, waits };
}

const used = (keyId: string, minute: number): KeyUse => ({ keyId, usedAtSeconds: minute * MINUTE });
const many = (count: number) => Array.from({ length: count }, (_, n) => used(`dk_${n}`, 1));

describe('the reporter of last uses', () => {
  it('reports a key that was used once a minute, with the minute, and nothing when none was', async () => {
    const { outcomes, posts, waits } = await run(3, (reporter, minute) => {
      if (minute === 3) return;
      for (let requests = 0; requests < 3; requests++) reporter.add({ derivedKeyId: 'dk_1' });
      reporter.add({ derivedKeyId: undefined });
    });
    expect(posts).toEqual([[used('dk_1', 1)], [used('dk_1', 2)]]);
    expect(outcomes).toEqual(['taken 1', 'taken 1']);
    expect(waits).toEqual([7, 60_000, 60_000, 60_000]);
  });

  it('takes the latest of what workers saw', async () => {
    const { posts } = await run(1, (reporter) => {
      for (const minute of [5, 9, 7]) reporter.merge([used('dk_1', minute)]);
    });
    expect(posts).toEqual([[used('dk_1', 9)]]);
  });

  it('reports many keys in pages, with pauses', async () => {
    const { outcomes, waits } = await run(1, (reporter) => reporter.merge(many(2 * MAX_KEY_USES + 1)));
    expect(outcomes).toEqual(['taken 1000', 'taken 1000', 'taken 1']);
    expect(waits).toEqual([7, PAGE_PAUSE_MS, PAGE_PAUSE_MS, 60_000]);
  });

  it('reports later what Control did not take, first what it was not asked for yet', async () => {
    let attempts = 0;
    const { outcomes, posts, waits } = await run(
      2,
      (reporter, minute) => minute === 1 && reporter.merge(many(MAX_KEY_USES + 2)),
      async () => {
        if (++attempts === 1) throw new Error('Control is not there');
        return 'taken';
      },
    );
    expect(outcomes).toEqual(['failed 1000', 'taken 1000', 'taken 2']);
    // The second page waits for the next minute, too.
    expect(waits).toEqual([7, 60_000, PAGE_PAUSE_MS, 60_000]);
    expect(posts[1]?.slice(0, 2)).toEqual([used('dk_1000', 1), used('dk_1001', 1)]);
  });

  it('keeps only keys that the bundle has, while Control takes none', async () => {
    const { posts } = await run(
      3,
      (reporter, minute) => {
        for (let n = 0; n < 10; n++) reporter.add({ derivedKeyId: `dk_${minute}_${n}` });
      },
      async () => {
        throw new Error('Control is not there');
      },
      (keyId) => keyId === 'dk_1_7',
    );
    expect(posts.map((page) => page.length)).toEqual([10, 11, 11]);
  });

  it('starts once, and reports nothing any more when it is closed', async () => {
    const waiting: (() => void)[] = [];
    const posted: unknown[] = [];
    const reporter = new LastUsedReporter({
      post: async (uses) => {
        posted.push(uses);
        return 'taken';
      },
      isKnown: () => true,
      metrics: { reported: () => undefined },
      sleep: (_, signal) =>
        new Promise((resolve) => {
          waiting.push(resolve);
          signal.addEventListener('abort', () => resolve());
        }),
    });
    reporter.start();
    reporter.start();
    expect(waiting).toHaveLength(1);
    reporter.merge([used('dk_1', 1)]);
    await reporter.close();
    for (const resolve of waiting) resolve();
    await nextTurn();
    expect(posted).toEqual([]);
  });

  it('forgets them when Control is older', async () => {
    const { outcomes } = await run(
      2,
      (reporter, minute) => minute === 1 && reporter.merge(many(MAX_KEY_USES + 1)),
      async () => 'unsupported',
    );
    expect(outcomes).toEqual(['unsupported 1000']);
  });
});
