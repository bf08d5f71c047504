import { describe, expect, it } from '@jest/globals';
import { type ReplayKeys, replayKeys } from '../../../src/verifier/redis/replay-keys.ts';
import { REPLAY_SCRIPTS } from '../../../src/verifier/redis/replay-scripts.ts';
import {
  type PreparationInputs,
  type PreparedLink,
  prepareShards,
} from '../../../src/verifier/replay/redis-preparation.ts';

const NOW = 1_800_000_000;
const LABEL = 'redis.example:6379';
const EPOCH = [NOW, NOW - 100, 5, 'epoch_missing', 64];
const CLOCKS_APART = [NOW + 9, 0, 0, 'clock', 0];

interface Sent {
  readonly script: 'consume' | 'prepare';
  readonly words: readonly (string | number)[];
}

/** A primary whose scripts answer, each shard's in its own way; an `Error` or a reply error is what it rejects with. */
class AnsweringLink implements PreparedLink {
  readonly label = LABEL;
  readonly fenceMarginSeconds = 12;
  readonly neededReplicas = 2;
  readonly loaded: string[] = [];
  readonly sent: Sent[] = [];
  readonly #answers: ReadonlyMap<string, unknown>;

  constructor(answers: readonly (readonly [ReplayKeys, unknown])[]) {
    this.#answers = new Map(answers.map(([keys, answer]) => [keys.epoch, answer]));
  }

  async loadScript({ sha1 }: { readonly sha1: string }): Promise<void> {
    this.loaded.push(sha1);
  }

  async runScript(script: { readonly sha1: string }, words: readonly (string | number)[]): Promise<unknown> {
    const isPrepare = script.sha1 === REPLAY_SCRIPTS.prepare.sha1;
    this.sent.push({ script: isPrepare ? 'prepare' : 'consume', words });
    const answer = this.#answers.get(String(words[0]));
    if (answer instanceof Error || isReplyError(answer)) throw answer;
    return answer;
  }
}

const replyError = (code: string) => ({ name: 'ReplyError', message: `${code} slot` });
function isReplyError(answer: unknown): boolean {
  return typeof answer === 'object' && answer !== null && 'name' in answer && answer.name === 'ReplyError';
}

const KEYS = ['a', 'b', 'c'].map(replayKeys);

async function prepareWith(answers: readonly unknown[], changes: Partial<PreparationInputs> = {}) {
  const used = KEYS.slice(0, answers.length);
  const link = new AnsweringLink(used.map((keys, shard) => [keys, answers[shard]]));
  const prepared = await prepareShards(link, {
    keys: new Map(used.entries()),
    nowSeconds: NOW,
    largestSkewSeconds: 3,
    toleranceSeconds: 5,
    latestIssuedSeconds: NOW - 7,
    ...changes,
  });
  return { link, ...prepared };
}

describe('the look at a primary', () => {
  it('has it keep both scripts, and asks for the epoch of each shard', async () => {
    const { epochs, link, problem, refused } = await prepareWith([EPOCH, EPOCH]);
    expect(link.loaded).toEqual([REPLAY_SCRIPTS.consume.sha1, REPLAY_SCRIPTS.prepare.sha1]);
    expect(link.sent).toEqual(
      KEYS.slice(0, 2).map(({ bucketPrefix, epoch }) => ({
        script: 'prepare',
        words: [epoch, bucketPrefix, 5, NOW, 3, 12, NOW - 7, 2],
      })),
    );
    expect([...epochs.keys()].sort()).toEqual([0, 1]);
    expect(epochs.get(0)).toMatchObject({ momentSeconds: NOW - 100, lowestExpirySeconds: 64 });
    expect([refused.size, problem]).toEqual([0, undefined]);
  });

  it('finds nothing wrong with a primary that has no shard', async () => {
    expect(await prepareWith([])).toMatchObject({ problem: undefined });
  });

  it('goes on with the other shards where one is refused, and says with which code', async () => {
    const { epochs, problem, refused } = await prepareWith([EPOCH, replyError('TRYAGAIN'), EPOCH]);
    expect([...epochs.keys()].sort()).toEqual([0, 2]);
    expect([...refused]).toEqual([[1, 'TRYAGAIN']]);
    expect(problem).toBeUndefined();
  });

  it('finds a primary that refuses all of them unfit', async () => {
    const { problem } = await prepareWith([replyError('MOVED'), replyError('MOVED')]);
    expect(problem).toContain(LABEL);
    expect(problem).toContain('(MOVED)');
  });

  it.each([
    ['of one shard', [EPOCH, 'OK', EPOCH]],
    ['of all', ['OK', null]],
    ['beside a refusal', [EPOCH, 'OK', replyError('ASK')]],
  ])('finds a primary unfit whose answer is none of the script, %s', async (_what, answers) => {
    const { problem } = await prepareWith(answers);
    expect(problem).toEqual(expect.stringMatching(/./));
    const asked = await prepareWith([EPOCH, EPOCH, CLOCKS_APART]);
    expect(problem).not.toBe(asked.problem);
  });

  it('finds a primary unfit whose clock is apart, and says how far', async () => {
    const ahead = await prepareWith([EPOCH, CLOCKS_APART]);
    expect(ahead.problem).toMatch(/\b9 s\b.*\b5 s\b/);
    const behind = await prepareWith([[NOW - 8, 0, 0, 'clock', 0]]);
    expect(behind.problem).toMatch(/\b8 s\b.*\b5 s\b/);
  });

  it('rejects when a shard gets no answer', async () => {
    const silent = new Error('Command timed out');
    await expect(prepareWith([EPOCH, silent])).rejects.toBe(silent);
  });
});
