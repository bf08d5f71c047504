/** Tests the store in front of a scripted Redis: what it sends, and how it interprets each answer. */
import { afterEach, describe, expect, it } from '@jest/globals';
import { CLUSTER_TAGS } from '../../../src/verifier/redis/cluster-view.ts';
import { CONSUME_CODES, REPLAY_SCRIPTS } from '../../../src/verifier/redis/replay-scripts.ts';
import { createRedisReplayStore, type RedisReplayStoreOptions } from '../../../src/verifier/replay/redis.ts';
import {
  CONSUMED,
  REPLAYED,
  type ReplayOutcome,
  type ReplayStore,
  UNAVAILABLE,
} from '../../../src/verifier/replay/store.ts';
import {
  infoText,
  RedisSpeaker,
  SILENCE,
  type Spoken,
  type SpokenReply,
} from '../../support/fakes/redis-speaker.ts';
import { RedisErrorReply } from '../../support/harness/redis-reply.ts';
import { waitUntil } from '../../support/wait.ts';
import { claimAt, SKEW_SECONDS } from './claims.ts';

const NOW = 1_800_000_000;
const { consume, prepare } = REPLAY_SCRIPTS;

let speakers: RedisSpeaker[] = [];
let stores: ReplayStore[] = [];
afterEach(async () => {
  for (const store of stores) await store.close();
  for (const speaker of speakers) await speaker.stop();
  [stores, speakers] = [[], []];
});

/** What the server answers to each consume, in this order; then that it is consumed. */
interface Answers {
  readonly consumes?: (SpokenReply | (() => Promise<SpokenReply>))[];
  readonly inFull?: SpokenReply[];
  readonly fields?: SpokenReply[];
  /** For the epoch of this key. Default: one that began long ago. */
  readonly prepares?: (epochKey: string) => SpokenReply | undefined;
  readonly isCluster?: boolean;
}

const OPEN_EPOCH: SpokenReply = [NOW, NOW - 1000, SKEW_SECONDS, 'epoch_missing', 0];
const REFUSED = new RedisErrorReply('READONLY no writes');

function next(
  planned: (SpokenReply | (() => Promise<SpokenReply>))[] | undefined,
  otherwise: SpokenReply,
): SpokenReply | Promise<SpokenReply> {
  const [first] = planned?.splice(0, 1) ?? [];
  if (first === undefined) return otherwise;
  return typeof first === 'function' ? first() : first;
}

function answering(answers: Answers, port: () => number): Spoken {
  return ([command = '', ...words]) => {
    const [first = '', keyCount = ''] = words;
    switch (command.toUpperCase()) {
      case 'INFO':
        return infoText({
          redis_version: '7.2.0',
          loading: 0,
          role: 'master',
          connected_slaves: 0,
          master_replid2: '0'.repeat(40),
          maxmemory_policy: 'noeviction',
          cluster_enabled: answers.isCluster === true ? 1 : 0,
        });
      case 'CONFIG':
        return ['min-replicas-to-write', '1', 'min-replicas-max-lag', '3', 'cluster-node-timeout', '4000'];
      case 'CLUSTER':
        return first === 'INFO'
          ? infoText({ cluster_state: 'ok', cluster_current_epoch: 1 })
          : [[0, 16_383, ['127.0.0.1', port(), 'id']]];
      case 'SCRIPT':
        return 'loaded';
      case 'EVALSHA':
        if (first === prepare.sha1) return answers.prepares?.(words[2] ?? '') ?? OPEN_EPOCH;
        return next(answers.consumes, CONSUME_CODES.consumed);
      case 'EVAL':
        return next(answers.inFull, CONSUME_CODES.consumed);
      case 'HGET':
        return next(answers.fields, null);
      default:
        return new RedisErrorReply(`ERR ${command} ${keyCount}`);
    }
  };
}

async function open(answers: Answers = {}, options: Partial<RedisReplayStoreOptions> = {}) {
  let port = 0;
  const speaker = await RedisSpeaker.start(answering(answers, () => port));
  port = speaker.port;
  speakers.push(speaker);
  const scheme = answers.isCluster === true ? 'redis-cluster' : 'redis';
  const store = createRedisReplayStore({
    url: `${scheme}://127.0.0.1:${port}`,
    timeoutMs: 1_000,
    recheckIntervalMs: 3_600_000,
    expectedSkewSeconds: () => SKEW_SECONDS,
    clockSeconds: () => NOW,
    ...options,
  });
  stores.push(store);
  await waitUntil(() => store.health().links?.serving === 1);
  return { speaker, store };
}

/** The words of each consume: epoch, hash, two quotas, identifier, nonce, issued-at and so on. */
const consumesOf = ({ asked }: RedisSpeaker) =>
  asked
    .filter(([command, sha1]) => command?.toUpperCase() === 'EVALSHA' && sha1 === consume.sha1)
    .map((words) => words.slice(3));

const isLookedAtAgain = async (
  { speaker, store }: { readonly speaker: RedisSpeaker; readonly store: ReplayStore },
  act: () => Promise<unknown>,
): Promise<boolean> => {
  const looks = () => speaker.countOf('INFO') + speaker.countOf('info');
  const before = looks();
  await act();
  // Redis answers one connection in order: after this answer, a look was either requested or not needed.
  await store.consume(claimAt(NOW));
  return looks() > before;
};

describe('what is sent', () => {
  it('names keys, times, quotas, F and replicas', async () => {
    const { speaker, store } = await open({}, { holderQuotaPerMinute: 77, subjectQuotaPerMinute: 88 });
    const claim = claimAt(NOW);
    expect(await store.consume(claim)).toEqual(CONSUMED);
    const [words = []] = consumesOf(speaker);
    const [epoch, bucket, quota, subjectQuota, identifier, , ...numbers] = words;
    expect([epoch, bucket, quota, subjectQuota, identifier]).toEqual([
      'proofgate:{0}:epoch',
      `proofgate:{0}:jti:${Math.floor(claim.expiresAtSeconds / 32)}`,
      `proofgate:{0}:quota:${claim.holderThumbprint}`,
      `proofgate:{0}:subject-quota:${claim.subjectHash}`,
      claim.identifier,
    ]);
    const { expiresAtSeconds, issuedAtSeconds } = claim;
    expect(numbers.map(Number)).toEqual([
      issuedAtSeconds,
      expiresAtSeconds,
      SKEW_SECONDS,
      NOW,
      77,
      SKEW_SECONDS,
      // F, the latest issued-at, replicas that must follow
      0,
      0,
      0,
      88,
    ]);
    expect(store.name).toBe('redis');
  });

  it('has another nonce each time', async () => {
    const { speaker, store } = await open();
    for (let count = 0; count < 50; count += 1) await store.consume(claimAt(NOW));
    expect(new Set(consumesOf(speaker).map((words) => words[5])).size).toBe(50);
  });

  it('has the largest skew of any claim so far', async () => {
    const { speaker, store } = await open();
    for (const skewSeconds of [5, 60, 5]) await store.consume(claimAt(NOW, { skewSeconds }));
    expect(consumesOf(speaker).map((words) => [words[8], words[11]])).toEqual([
      ['5', '5'],
      ['60', '60'],
      ['5', '60'],
    ]);
  });

  it('has the latest issued-at that was consumed, though no later than a skew from now', async () => {
    const { speaker, store } = await open({ consumes: [CONSUME_CODES.consumed, CONSUME_CODES.replayed] });
    await store.consume(claimAt(NOW, { issuedAtSeconds: NOW - 7 }));
    await store.consume(claimAt(NOW, { issuedAtSeconds: NOW - 3 }));
    await store.consume(claimAt(NOW, { issuedAtSeconds: NOW + 900 }));
    await store.consume(claimAt(NOW));
    // The second was a replay: nothing was consumed then.
    expect(consumesOf(speaker).map((words) => Number(words[13]))).toEqual([
      0,
      NOW - 7,
      NOW - 7,
      NOW + SKEW_SECONDS,
    ]);
  });

  it('goes to the shard that the first bits of the holder say', async () => {
    const { speaker, store } = await open({ isCluster: true });
    for (const first of ['A', 'B', 'a', '_']) {
      const holderThumbprint = `${first}${'x'.repeat(42)}`;
      expect(await store.consume(claimAt(NOW, { holderThumbprint }))).toEqual(CONSUMED);
    }
    const tags = [0, 1, 26, 63].map((shard) => CLUSTER_TAGS[shard]);
    expect(consumesOf(speaker).map(([epoch]) => epoch)).toEqual(
      tags.map((tag) => `proofgate:{${tag}}:epoch`),
    );
  });
});

describe('what an answer means', () => {
  it.each<[string, SpokenReply, ReplayOutcome, boolean]>([
    ['consumed', CONSUME_CODES.consumed, CONSUMED, false],
    ['replayed', CONSUME_CODES.replayed, REPLAYED, false],
    ['fenced', CONSUME_CODES.fenced, UNAVAILABLE.fenced, true],
    ['raised', CONSUME_CODES.raised, UNAVAILABLE.fenced, true],
    ['quota', CONSUME_CODES.quota, UNAVAILABLE.quota, false],
    ['clock', CONSUME_CODES.clock, UNAVAILABLE.store, true],
    ['none of the script', 'OK', UNAVAILABLE.store, true],
    ['a text', `${CONSUME_CODES.consumed}`, UNAVAILABLE.store, true],
    ['nothing', null, UNAVAILABLE.store, true],
    ['a refusal', REFUSED, UNAVAILABLE.store, true],
  ])('%s', async (_what, answer, outcome, isSuspect) => {
    const { speaker, store } = await open({ consumes: [answer] });
    let found: ReplayOutcome | undefined;
    const again = await isLookedAtAgain({ speaker, store }, async () => {
      found = await store.consume(claimAt(NOW));
    });
    expect([found, again]).toEqual([outcome, isSuspect]);
  });

  it('fenced has the server looked at again once, however many proofs are old', async () => {
    const { speaker, store } = await open({ consumes: Array(20).fill(CONSUME_CODES.fenced) });
    const look = () => isLookedAtAgain({ speaker, store }, async () => store.consume(claimAt(NOW)));
    expect([await look(), await look(), await look()]).toEqual([true, false, false]);
  });
});

describe('a server that forgot the script', () => {
  const FORGOTTEN = new RedisErrorReply('NOSCRIPT no matching script');

  it.each<[string, SpokenReply, ReplayOutcome]>([
    ['gets it in full', CONSUME_CODES.consumed, CONSUMED],
    ['gets it in full, and knows the proof', CONSUME_CODES.replayed, REPLAYED],
    ['and refuses it in full', REFUSED, UNAVAILABLE.store],
    ['and has it forgotten again', FORGOTTEN, UNAVAILABLE.store],
  ])('%s', async (_what, answer, outcome) => {
    const { speaker, store } = await open({ consumes: [FORGOTTEN], inFull: [answer] });
    expect(await store.consume(claimAt(NOW))).toEqual(outcome);
    const [sent] = consumesOf(speaker);
    const full = speaker.asked.filter(([command]) => command?.toUpperCase() === 'EVAL');
    // The same arguments, including the nonce, exactly once.
    expect(full.map((words) => words.slice(1))).toEqual([[consume.source, '4', ...(sent ?? [])]]);
  });

  it('and does not answer to it in full is asked what became of it', async () => {
    const { speaker, store } = await open({ consumes: [FORGOTTEN], inFull: [SILENCE] });
    expect(await store.consume(claimAt(NOW))).toEqual(UNAVAILABLE.store);
    expect(speaker.asked.some(([command]) => command?.toUpperCase() === 'HGET')).toBe(true);
  });

  it('and only that one gets it in full', async () => {
    const { speaker, store } = await open({ consumes: [REFUSED] });
    expect(await store.consume(claimAt(NOW))).toEqual(UNAVAILABLE.store);
    expect(speaker.asked.some(([command]) => command?.toUpperCase() === 'EVAL')).toBe(false);
  });
});

describe('no answer', () => {
  /** After the script's share of the time-out, and before all of it is over. */
  const late = () =>
    new Promise<SpokenReply>((resolve) => {
      setTimeout(resolve, 700, CONSUME_CODES.consumed);
    });

  it('is refused when what became of it cannot be read either', async () => {
    const { store } = await open({ consumes: [SILENCE], fields: [SILENCE] });
    expect(await store.consume(claimAt(NOW))).toEqual(UNAVAILABLE.store);
  });

  it('is refused when the record is not there, of another, or cannot be read', async () => {
    for (const field of [null, 'another-nonce', new RedisErrorReply('WRONGTYPE')]) {
      const { store } = await open({ consumes: [late], fields: [field] });
      expect(await store.consume(claimAt(NOW))).toEqual(UNAVAILABLE.store);
    }
  });

  it('is consumed when the record is there, and our own', async () => {
    const fields: SpokenReply[] = [];
    const { speaker, store } = await open({ consumes: [late], fields });
    const answer = store.consume(claimAt(NOW));
    await waitUntil(() => consumesOf(speaker).length === 1);
    fields.push(consumesOf(speaker)[0]?.[5] ?? null);
    expect(await answer).toEqual(CONSUMED);
  });
});

describe('a shard that its primary refuses', () => {
  it('has the Cluster asked again, and the others are served', async () => {
    const refused = `proofgate:{${CLUSTER_TAGS[3]}}:epoch`;
    const prepares = (key: string) => (key === refused ? new RedisErrorReply('TRYAGAIN') : undefined);
    const { speaker, store } = await open({ isCluster: true, prepares });
    expect(store.health()).toMatchObject({ ready: true, warning: expect.stringContaining('(TRYAGAIN)') });
    await waitUntil(() => speaker.countOf('CLUSTER', 'SLOTS') >= 2);
  });

  it('is not asked for where none is', async () => {
    const { speaker } = await open({ isCluster: true });
    const asked = speaker.countOf('CLUSTER', 'SLOTS');
    await new Promise((resolve) => {
      setTimeout(resolve, 200);
    });
    expect(speaker.countOf('CLUSTER', 'SLOTS')).toBe(asked);
  });
});
