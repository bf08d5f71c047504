import type { Socket } from 'node:net';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { createRedisReplayStore, type RedisReplayStoreOptions } from '../../../src/verifier/replay/redis.ts';
import {
  CONSUMED,
  REPLAYED,
  type ReplayClaim,
  type ReplayStore,
  UNAVAILABLE,
} from '../../../src/verifier/replay/store.ts';
import { freePort } from '../../support/harness/free-port.ts';
import { startImpostor, TestRedisServer } from '../../support/harness/redis-server.ts';
import { waitUntil } from '../../support/wait.ts';
import { claimAt, randomIdentifier, SKEW_SECONDS } from './claims.ts';
import { describeReplayStore } from './replay-store-suite.ts';

const EPOCH_KEY = 'proofgate:{0}:epoch';
/** Followed by `expires-at` divided by 32. */
const BUCKETS = 'proofgate:{0}:jti:';
/** Generous, so that a busy machine fails no test; the tests of time-outs set their own. */
const TIMEOUT_MS = 2_000;
const FENCE_ONLY = /: proofs are refused for another \d+ s$/;

let server: TestRedisServer;
let opened: ReplayStore[] = [];

beforeAll(async () => {
  server = await TestRedisServer.start();
});
afterAll(() => server.stop());

afterEach(async () => {
  for (const store of opened) await store.close();
  opened = [];
});

function open(options: Partial<RedisReplayStoreOptions> = {}): ReplayStore {
  const store = createRedisReplayStore({ url: server.url, timeoutMs: TIMEOUT_MS, ...options });
  opened.push(store);
  return store;
}

function problemOf(store: ReplayStore): string {
  const health = store.health();
  return health.ready ? '' : health.problem;
}

/** Serving, though proofs of now may be fenced still. */
async function untilServing(store: ReplayStore): Promise<ReplayStore> {
  await waitUntil(() => problemOf(store) === '' || FENCE_ONLY.test(problemOf(store)));
  return store;
}

async function openServing(options: Partial<RedisReplayStoreOptions> = {}): Promise<ReplayStore> {
  return await untilServing(open(options));
}

function bucketKey({ expiresAtSeconds }: ReplayClaim): string {
  return `${BUCKETS}${Math.floor(expiresAtSeconds / 32)}`;
}

const nowSeconds = (): number => Math.floor(Date.now() / 1000);

async function readEpoch(from = server): Promise<{ moment: number; replid: string; skew: number }> {
  const [moment, replid = '', skew] = ((await from.command('GET', EPOCH_KEY)).split('\r\n')[1] ?? '').split(
    ' ',
  );
  return { moment: Number(moment), replid, skew: Number(skew) };
}

describeReplayStore('redis', {
  create: async (options) => {
    await server.command('FLUSHALL');
    return {
      store: await openServing(options),
      nowSeconds,
      fenceMomentSeconds: async () => (await readEpoch()).moment,
      fenceSkews: 2,
    };
  },
  destroy: (store) => store.close(),
});

describe('redis: the epoch', () => {
  beforeEach(async () => {
    await server.command('FLUSHALL');
  });

  it('is there before the first request, and never expires', async () => {
    const before = nowSeconds();
    await openServing();
    const epoch = await readEpoch();
    expect(epoch.moment).toBeGreaterThanOrEqual(before);
    expect(epoch.moment).toBeLessThanOrEqual(nowSeconds());
    expect(await server.command('INFO', 'replication')).toContain(`master_replid:${epoch.replid}`);
    expect(epoch.skew).toBe(0);
    expect(await server.command('TTL', EPOCH_KEY)).toBe(':-1');
  });

  it('does not move for a newcomer that finds agreement, nor for its first claim', async () => {
    const replid = /master_replid:([0-9a-f]+)/.exec(await server.command('INFO', 'replication'))?.[1];
    await openServing();
    const begunLongAgo = nowSeconds() - 100;
    const kept = `${begunLongAgo} ${replid} ${SKEW_SECONDS} 0 ${nowSeconds()} 0 0 epoch_missing `;
    await server.command('SET', EPOCH_KEY, kept);
    const newcomer = await openServing();
    expect(newcomer.health()).toEqual({ ready: true, links: { serving: 1, unfit: 0 } });
    const now = nowSeconds();
    const fresh = claimAt(now, { issuedAtSeconds: now, expiresAtSeconds: now + 60 });
    expect(await newcomer.consume(fresh)).toEqual(CONSUMED);
    expect((await readEpoch()).moment).toBe(begunLongAgo);
  });

  it('is shared: two stores on one server see the same records', async () => {
    const [first, second] = [await openServing(), await openServing()];
    const claim = claimAt(nowSeconds());
    expect(await first.consume(claim)).toEqual(CONSUMED);
    expect(await second.consume(claim)).toEqual(REPLAYED);
  });

  it('fences what was consumed before a FLUSHALL', async () => {
    const store = await openServing();
    const now = nowSeconds();
    const claim = claimAt(now);
    expect(await store.consume(claim)).toEqual(CONSUMED);
    await server.command('FLUSHALL');
    const recent = claimAt(now, { issuedAtSeconds: now + SKEW_SECONDS });
    expect(await store.consume(recent)).toEqual(UNAVAILABLE.fenced);
    expect((await readEpoch()).moment).toBeGreaterThanOrEqual(now);
  });

  it('never goes back to an earlier moment', async () => {
    await server.command('SET', EPOCH_KEY, '9999999999 abcdef 5');
    const store = await openServing();
    expect((await readEpoch()).moment).toBe(9_999_999_999);
    expect(await store.consume(claimAt(nowSeconds()))).toEqual(UNAVAILABLE.fenced);
  });

  it('keeps records without a time to live, for three skews and two seconds beyond the proof', async () => {
    const store = await openServing();
    const now = nowSeconds();
    const claim = claimAt(now);
    expect(await store.consume(claim)).toEqual(CONSUMED);
    expect(await server.command('TTL', bucketKey(claim))).toBe(':-1');
    // Two existing hashes: the records of the first have all expired, those of the second have not.
    const over = Math.floor((now - 3 * SKEW_SECONDS - 2) / 32) - 1;
    const numbers = [over, over + 2];
    for (const number of numbers) await server.command('HSET', `${BUCKETS}${number}`, 'identifier', 'nonce');
    const { moment, replid } = await readEpoch();
    const kept = `${moment} ${replid} ${SKEW_SECONDS} 0 ${now - 1} 0 0 epoch_missing ${numbers.join(',')}`;
    await server.command('SET', EPOCH_KEY, kept);
    await openServing();
    expect(await server.command('EXISTS', `${BUCKETS}${over}`)).toBe(':0');
    expect(await server.command('EXISTS', `${BUCKETS}${over + 2}`)).toBe(':1');
    // A proof that would lie in what was deleted is refused, whatever else speaks for it.
    const deleted = claimAt(now, { expiresAtSeconds: over * 32 + 31 });
    expect(await store.consume(deleted)).toEqual(UNAVAILABLE.fenced);
  });
});

describe('redis: what operators see of fences', () => {
  beforeEach(async () => {
    await server.command('FLUSHALL');
  });

  it('is not ready under the fence of its start, and ready after it', async () => {
    const raised: string[] = [];
    let ahead = 0;
    const store = await openServing({
      observer: { fenceRaised: (why) => raised.push(why) },
      expectedSkewSeconds: () => SKEW_SECONDS,
      // No second look, because there the clocks would differ.
      recheckIntervalMs: 60_000,
      clockSeconds: () => Date.now() / 1000 + ahead,
    });
    const seconds = 2 * SKEW_SECONDS + 1;
    const start = store.health();
    expect(start).toMatchObject({ ready: false, fence: { why: 'epoch_missing' } });
    expect(start.fence?.secondsLeft).toBeLessThanOrEqual(seconds);
    expect(start.fence?.secondsLeft).toBeGreaterThanOrEqual(seconds - 1);
    expect(raised).toEqual(['epoch_missing']);
    // As if the fence's time had passed.
    ahead = seconds;
    expect(store.health()).toEqual({ ready: true, links: { serving: 1, unfit: 0 } });
  });

  it('is ready, and warns, under a fence that went up later', async () => {
    const replid = /master_replid:([0-9a-f]+)/.exec(await server.command('INFO', 'replication'))?.[1];
    const settled = `${nowSeconds() - 100} ${replid} 0 0 ${nowSeconds()} 0 0 epoch_missing `;
    await server.command('SET', EPOCH_KEY, settled);
    const raised: string[] = [];
    const observer = { fenceRaised: (why: string) => raised.push(why) };
    const store = await openServing({ observer, recheckIntervalMs: 20 });
    expect(store.health()).toMatchObject({ ready: true });
    expect(raised).toEqual([]);
    await server.command('FLUSHALL');
    await waitUntil(() => raised.length > 0);
    expect(raised).toEqual(['epoch_missing']);
    expect(store.health()).toMatchObject({
      ready: true,
      warning: expect.stringMatching(
        /^Redis was empty, restarted or flushed \(epoch_missing\).*: proofs are refused for another \d+ s$/,
      ),
      fence: { why: 'epoch_missing' },
    });
  });

  it('tells of what was deleted by a clock that has gone back since', async () => {
    const replid = /master_replid:([0-9a-f]+)/.exec(await server.command('INFO', 'replication'))?.[1];
    const settledWith = (lowest: number) =>
      `${nowSeconds() - 100} ${replid} ${SKEW_SECONDS} 0 ${nowSeconds()} 0 ${lowest} epoch_missing `;
    await server.command('SET', EPOCH_KEY, settledWith(0));
    const raised: string[] = [];
    const observer = { fenceRaised: (why: string) => raised.push(why) };
    const store = await openServing({ observer, recheckIntervalMs: 20 });
    expect(store.health()).toMatchObject({ ready: true });
    const lowest = Math.floor((nowSeconds() + 3_600) / 32);
    await server.command('SET', EPOCH_KEY, settledWith(lowest));
    await waitUntil(() => store.health().fence !== undefined);
    expect(store.health()).toMatchObject({ fence: { why: 'clock' } });
    expect(raised).toEqual(['clock']);
    const now = nowSeconds();
    const fresh = claimAt(now, { issuedAtSeconds: now, expiresAtSeconds: now + 60 });
    expect(await store.consume(fresh)).toEqual(UNAVAILABLE.fenced);
  });

  it('tells of a fence that a claim has raised, and of a larger skew', async () => {
    const raised: string[] = [];
    const store = await openServing({ observer: { fenceRaised: (why) => raised.push(why) } });
    expect(await store.consume(claimAt(nowSeconds()))).toEqual(CONSUMED);
    // Moments count in seconds: a fence that goes up within the same one is no other.
    const since = nowSeconds();
    await waitUntil(() => nowSeconds() > since);
    const wider = claimAt(nowSeconds(), { skewSeconds: 60, issuedAtSeconds: nowSeconds() });
    expect(await store.consume(wider)).toEqual(UNAVAILABLE.fenced);
    await waitUntil(() => raised.includes('skew_raised'));
    expect(store.health().fence).toMatchObject({ why: 'skew_raised' });
    expect(store.health().fence?.secondsLeft).toBeGreaterThan(115);
  });
});

describe('redis: memory', () => {
  it('takes at most 190 bytes for a record', async () => {
    await server.command('FLUSHALL');
    const store = await openServing();
    expect(await store.consume(claimAt(nowSeconds()))).toEqual(CONSUMED);
    const usedBytes = async () =>
      Number(/used_memory:(\d+)/.exec(await server.command('INFO', 'memory'))?.[1]);
    const before = await usedBytes();
    const holders = Array.from({ length: 100 }, randomIdentifier);
    let consumed = 0;
    while (consumed < 20_000) {
      const claims = holders.map((holderThumbprint) =>
        claimAt(nowSeconds(), { holderThumbprint, subjectHash: holderThumbprint }),
      );
      const outcomes = await Promise.all(claims.map(async (claim) => store.consume(claim)));
      consumed += outcomes.filter(({ kind }) => kind === 'consumed').length;
    }
    expect(((await usedBytes()) - before) / consumed).toBeLessThanOrEqual(190);
  });
});

describe('redis: clocks', () => {
  it('refuses when the clocks differ by more than the skew', async () => {
    const store = await openServing();
    const now = nowSeconds();
    for (const apart of [-SKEW_SECONDS - 2, SKEW_SECONDS + 2]) {
      const claim = claimAt(now, { nowSeconds: now + apart });
      expect(await store.consume(claim)).toEqual(UNAVAILABLE.store);
      expect(await server.command('HEXISTS', bucketKey(claim), claim.identifier)).toBe(':0');
    }
  });

  it('is not ready, and sets no epoch, while the clocks are apart', async () => {
    await server.command('FLUSHALL');
    const store = open({ clockSeconds: () => Date.now() / 1000 + 30 });
    await waitUntil(() => /clocks/.test(problemOf(store)));
    expect(problemOf(store)).toMatch(
      /^the clocks of Redis and of this verifier are (29|30|31) s apart, more than 5 s$/,
    );
    expect(await server.command('EXISTS', EPOCH_KEY)).toBe(':0');
    expect(await store.consume(claimAt(nowSeconds()))).toEqual(UNAVAILABLE.store);
  });
});

describe('redis: a server that forgets scripts', () => {
  it('sends the script again', async () => {
    const store = await openServing();
    await server.command('SCRIPT', 'FLUSH');
    const claim = claimAt(nowSeconds());
    const outcomes = await Promise.all(Array.from({ length: 20 }, async () => store.consume(claim)));
    expect(outcomes.filter((outcome) => outcome.kind === 'consumed')).toHaveLength(1);
    expect(outcomes.filter((outcome) => outcome.kind === 'replayed')).toHaveLength(19);
  });
});

describe('redis: a server that must not be used', () => {
  const unfit: readonly (readonly [string, readonly string[], RegExp])[] = [
    ['may evict', ['--maxmemory-policy', 'allkeys-lru'], /must have maxmemory-policy noeviction/],
    ['is a replica', ['--replicaof', '127.0.0.1 1'], /is a replica: its address must lead to the primary/],
    ['runs in Cluster mode', ['--cluster-enabled', 'yes'], /runs in Cluster mode: give it as redis-cluster/],
    ['wants a password', ['--requirepass', 'a-secret'], /asks for a password.*\(NOAUTH\)/],
  ];

  it.each(unfit)('%s: not ready, and refuses', async (_name, settings, problem) => {
    // By default the port of Cluster mode is 10,000 above the other, where connections that go out have theirs.
    const busPort = await freePort();
    const other = await TestRedisServer.start(...settings, '--cluster-port', `${busPort}`);
    try {
      const store = open({ url: other.url });
      await waitUntil(() => problem.test(problemOf(store)));
      expect(await store.consume(claimAt(nowSeconds()))).toEqual(UNAVAILABLE.store);
    } finally {
      await other.stop();
    }
  });

  it('notices a changed setting, and that it was put right', async () => {
    const store = await openServing({ recheckIntervalMs: 20 });
    await server.command('CONFIG', 'SET', 'maxmemory-policy', 'volatile-ttl');
    await waitUntil(() => /noeviction/.test(problemOf(store)));
    expect(await store.consume(claimAt(nowSeconds()))).toEqual(UNAVAILABLE.store);
    await server.command('CONFIG', 'SET', 'maxmemory-policy', 'noeviction');
    await untilServing(store);
    expect(await store.consume(claimAt(nowSeconds()))).toEqual(CONSUMED);
  });

  it('notices a primary that became a replica', async () => {
    const other = await TestRedisServer.start();
    try {
      const store = await openServing({ url: other.url });
      await other.command('REPLICAOF', '127.0.0.1', '1');
      expect(await store.consume(claimAt(nowSeconds()))).toEqual(UNAVAILABLE.store);
      await waitUntil(() => /is a replica/.test(problemOf(store)));
      await other.command('REPLICAOF', 'NO', 'ONE');
      await untilServing(store);
      const now = nowSeconds();
      // Promotion changes master_replid: what the former primary remembered may be missing.
      const recent = claimAt(now, { issuedAtSeconds: now + SKEW_SECONDS });
      expect(await store.consume(recent)).toEqual(UNAVAILABLE.fenced);
      expect(await store.consume(claimAt(now))).toEqual(CONSUMED);
    } finally {
      await other.stop();
    }
  });
});

describe('redis: a server that goes away', () => {
  let own: TestRedisServer;
  beforeEach(async () => {
    own = await TestRedisServer.start();
  });
  afterEach(() => own.stop());

  it('fences after a restart that lost everything', async () => {
    const store = await openServing({ url: own.url });
    const before = nowSeconds();
    const claim = claimAt(before, { issuedAtSeconds: before + 2 * SKEW_SECONDS + 30 });
    const old = claimAt(before, { issuedAtSeconds: before + SKEW_SECONDS });
    expect(await store.consume(claim)).toEqual(CONSUMED);
    await own.kill();
    await waitUntil(() => !FENCE_ONLY.test(problemOf(store)) && problemOf(store) !== '');
    expect(await store.consume(claim)).toEqual(UNAVAILABLE.store);
    await own.startAgain();
    await untilServing(store);
    expect(await store.consume({ ...old, nowSeconds: nowSeconds() })).toEqual(UNAVAILABLE.fenced);
    expect(await store.consume(claimAt(nowSeconds()))).toEqual(CONSUMED);
  });

  it('answers while the server hangs, and serves again afterwards', async () => {
    const store = await openServing({ url: own.url, timeoutMs: 200 });
    own.freeze();
    expect(await store.consume(claimAt(nowSeconds()))).toEqual(UNAVAILABLE.store);
    await waitUntil(() => /does not answer in time/.test(problemOf(store)));
    own.thaw();
    await untilServing(store);
    expect(await store.consume(claimAt(nowSeconds()))).toEqual(CONSUMED);
  });

  it('is down from the start: not ready, then ready', async () => {
    await own.kill();
    const store = open({ url: own.url });
    await waitUntil(() =>
      /cannot connect to Redis at 127\.0\.0\.1:\d+ \(ECONNREFUSED\)/.test(problemOf(store)),
    );
    expect(await store.consume(claimAt(nowSeconds()))).toEqual(UNAVAILABLE.store);
    await own.startAgain();
    await untilServing(store);
    expect(await store.consume(claimAt(nowSeconds()))).toEqual(CONSUMED);
  });

  it('closes while a server hangs, or is down', async () => {
    const hanging = await openServing({ url: own.url, timeoutMs: 200 });
    const down = open({ url: `redis://127.0.0.1:${await freePort()}` });
    await waitUntil(() => problemOf(down) !== '');
    own.freeze();
    await Promise.all([hanging.close(), down.close()]);
    own.thaw();
  });
});

describe('redis: no answer', () => {
  it('reads back that it won, when the answer was late', async () => {
    const store = await openServing({ timeoutMs: 1_000 });
    // The script's share of the time-out is 600 ms; the server resumes at 750 ms.
    await server.command('CLIENT', 'PAUSE', '750', 'ALL');
    const claim = claimAt(nowSeconds());
    expect(await store.consume(claim)).toEqual(CONSUMED);
    expect(await store.consume(claim)).toEqual(REPLAYED);
  });

  it('consumes at most once when connections are cut in the middle', async () => {
    const store = await openServing();
    let cuts = 0;
    const cut = async () => {
      for (; cuts < 20; cuts += 1) {
        await server.command('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes').catch(() => '');
        await untilServing(store);
      }
    };
    const consumedTwice: string[] = [];
    const load = async () => {
      while (cuts < 20) {
        const claim = claimAt(nowSeconds());
        const [first, second] = [await store.consume(claim), await store.consume(claim)];
        if (first.kind === 'consumed' && second.kind === 'consumed') consumedTwice.push(claim.identifier);
        await new Promise(setImmediate);
      }
    };
    await Promise.all([cut(), load(), load(), load(), load()]);
    expect(consumedTwice).toEqual([]);
    // The store may hear of the last cut only now.
    await waitUntil(async () => (await store.consume(claimAt(nowSeconds()))).kind === 'consumed');
  });

  it('reads back after the connection was lost, and refuses where there is nothing to read', async () => {
    const proxy = await startProxy(server.port);
    try {
      const store = await openServing({ url: proxy.url });
      const won = claimAt(nowSeconds());
      proxy.cutAfterForwarding();
      expect(await store.consume(won)).toEqual(CONSUMED);
      expect(await store.consume(won)).toEqual(REPLAYED);
      const lost = claimAt(nowSeconds());
      proxy.cutInsteadOfForwarding();
      expect(await store.consume(lost)).toEqual(UNAVAILABLE.store);
      expect(await store.consume(lost)).toEqual(CONSUMED);
    } finally {
      await proxy.stop();
    }
  });
});

describe('redis: something else on the port', () => {
  const impostors: readonly (readonly [string, (socket: Socket) => void])[] = [
    ['never answers', () => undefined],
    ['hangs up', (socket) => socket.destroy()],
    ['speaks HTTP', (socket) => socket.on('data', () => socket.write('HTTP/1.1 400 Bad Request\r\n\r\n'))],
    ['speaks first', (socket) => socket.write('220 mail.example ESMTP\r\n')],
    ['says OK to everything', (socket) => socket.on('data', () => socket.write('+OK\r\n'.repeat(3)))],
    ['echoes', (socket) => socket.pipe(socket)],
    ['echoes as an error', (socket) => socket.on('data', (data) => socket.write(`-${data}`))],
    ['sends answers to nothing', (socket) => socket.write('$-1\r\n_\r\n'.repeat(20))],
    ['sends what is nearly RESP', (socket) => socket.write('>>$!7-+\r\n6\r\n8101\r\n*7~_\r\n5%\r\n*8$')],
    ['sends zeros', (socket) => socket.on('data', () => socket.write(Buffer.alloc(10_000)))],
    ['promises much', (socket) => socket.on('data', () => socket.write('$999999999\r\nabc'))],
  ];

  it.each(impostors)('%s: not ready, refuses, tells no secret', async (_name, answer) => {
    let received = '';
    const impostor = await startImpostor((socket) => {
      socket.on('data', (data) => {
        received += String(data);
      });
      answer(socket);
    });
    try {
      const url = impostor.url.replace('redis://', 'redis://someone:verysecret@');
      const store = open({ url, timeoutMs: 100, connectTimeoutMs: 200 });
      await waitUntil(() => !problemOf(store).startsWith('connecting'));
      expect(await store.consume(claimAt(nowSeconds()))).toEqual(UNAVAILABLE.store);
      expect(problemOf(store)).toMatch(/^[^\n]+$/);
      expect(problemOf(store)).not.toMatch(/verysecret|someone/);
      expect(received).not.toMatch(/verysecret|someone/);
    } finally {
      await impostor.stop();
    }
  });
});

describe('redis: the login and the URL', () => {
  it('logs in, and never tells the password', async () => {
    const guarded = await TestRedisServer.start('--requirepass', 'p@ss/word');
    try {
      const address = guarded.url.replace('redis://', '');
      const store = await openServing({ url: `redis://:p%40ss%2Fword@${address}` });
      expect(await store.consume(claimAt(nowSeconds()))).toEqual(CONSUMED);
      const stranger = open({ url: `redis://:guessed-wrong@${address}` });
      await waitUntil(() => /WRONGPASS/.test(problemOf(stranger)));
      expect(problemOf(stranger)).toBe(`Redis at ${address} refuses the user name or password (WRONGPASS)`);
    } finally {
      await guarded.stop();
    }
  });

  it.each([
    ['not a url', /malformed/],
    ['http://user:verysecret@host', /must begin with redis:\/\//],
    ['redis-sentinel://:verysecret@host', /must name the primary/],
    ['rediss-cluster://:verysecret@host/1', /one database/],
    ['redis://:verysecret@', /malformed|no host/],
    ['redis://:verysecret@host/database', /database number/],
    ['redis://:verysecret@host?password=verysecret', /no query/],
    ['redis://:%zz-verysecret@host', /percent-encoded/],
  ])('refuses %s', (url, problem) => {
    const create = () => createRedisReplayStore({ url });
    expect(create).toThrow(problem);
    expect(create).not.toThrow(/verysecret/);
  });

  it('keeps databases apart', async () => {
    const identifier = randomIdentifier();
    const [first, second] = [
      await openServing({ url: `${server.url}/1` }),
      await openServing({ url: `${server.url}/2` }),
    ];
    expect(await first.consume(claimAt(nowSeconds(), { identifier }))).toEqual(CONSUMED);
    expect(await second.consume(claimAt(nowSeconds(), { identifier }))).toEqual(CONSUMED);
  });
});

/** Forwards to a port on this machine, and cuts connections around the next consume on request. */
async function startProxy(port: number) {
  let mode: 'forward' | 'cut-after' | 'cut-instead' = 'forward';
  const { connect } = await import('node:net');
  const proxy = await startImpostor((client) => {
    const upstream = connect(port, '127.0.0.1');
    upstream.on('error', () => undefined);
    client.on('close', () => upstream.destroy());
    upstream.on('close', () => client.destroy());
    upstream.pipe(client);
    client.on('data', (data) => {
      const isConsume = mode !== 'forward' && data.includes(':jti:') && data.includes('evalsha');
      if (!isConsume) {
        upstream.write(data);
        return;
      }
      if (mode === 'cut-instead') {
        mode = 'forward';
        client.destroy();
        return;
      }
      mode = 'forward';
      upstream.unpipe(client);
      upstream.once('data', () => client.destroy());
      upstream.resume();
      upstream.write(data);
    });
  });
  return {
    ...proxy,
    cutAfterForwarding: () => {
      mode = 'cut-after';
    },
    cutInsteadOfForwarding: () => {
      mode = 'cut-instead';
    },
  };
}
