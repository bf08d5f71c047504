import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { isStoreId } from '../../../src/bundle/format/instance-report.ts';
import type { Mark, SharedMark } from '../../../src/verifier/loading/state/shared-mark.ts';
import {
  createRedisSharedMark,
  type RedisSharedMarkOptions,
} from '../../../src/verifier/redis/redis-shared-mark.ts';
import { freePort } from '../../support/harness/free-port.ts';
import { TestRedisCluster } from '../../support/harness/redis-cluster.ts';
import { TestRedisSentinel } from '../../support/harness/redis-sentinel.ts';
import { TestRedisServer } from '../../support/harness/redis-server.ts';

const SITE = 'shop-eu-1';
const KEY = `proofgate:{0}:mark:${SITE}`;
const TIMEOUT_MS = 5_000;

let server: TestRedisServer;
let opened: SharedMark[] = [];

beforeAll(async () => {
  server = await TestRedisServer.start();
});
afterAll(() => server.stop());
beforeEach(async () => {
  await server.ask('FLUSHALL');
});
afterEach(async () => {
  for (const mark of opened) await mark.close();
  opened = [];
});

function open(options: Partial<RedisSharedMarkOptions> = {}): SharedMark {
  const mark = createRedisSharedMark({ url: server.url, ...options });
  opened.push(mark);
  return mark;
}

function markAt(revision: number, fill = 'A'): Mark {
  return { revision, head: `${fill.repeat(42)}A` };
}

async function keepsTheContract(shared: SharedMark): Promise<void> {
  expect(await shared.read(SITE, TIMEOUT_MS)).toBeUndefined();
  expect(await shared.raise(SITE, markAt(7), TIMEOUT_MS)).toEqual(markAt(7));
  expect(await shared.raise(SITE, markAt(6), TIMEOUT_MS)).toEqual(markAt(7));
  expect(await shared.raise(SITE, markAt(7, 'B'), TIMEOUT_MS)).toEqual(markAt(7));
  expect(await shared.raise(SITE, markAt(8, 'C'), TIMEOUT_MS)).toEqual(markAt(8, 'C'));
  expect(await shared.read(SITE, TIMEOUT_MS)).toEqual(markAt(8, 'C'));
  expect(await shared.read('another-site', TIMEOUT_MS)).toBeUndefined();
  expect(await shared.reset(SITE, TIMEOUT_MS)).toEqual(markAt(8, 'C'));
  expect(await shared.reset(SITE, TIMEOUT_MS)).toBeUndefined();
  expect(await shared.read(SITE, TIMEOUT_MS)).toBeUndefined();
}

describe('the shared mark in Redis', () => {
  it('is the highest that anybody raised it to, until it is reset', async () => {
    await keepsTheContract(open());
  });

  it('needs no more rights than docs/operate/replay.md names, and says NOPERM where one is missing', async () => {
    const rights = '-@all +info +eval +get +set +type +del +ping +hello +auth +client +select +quit';
    const ask = (...words: readonly string[]) =>
      server.ask('ACL', 'SETUSER', 'least', 'on', '>a-secret', '~proofgate:*', ...words);
    await ask(...rights.split(' '));
    const url = server.url.replace('://', '://least:a-secret@');
    await keepsTheContract(open({ url }));
    for (const right of ['type', 'del']) {
      await open({ url }).raise(SITE, markAt(7), TIMEOUT_MS);
      await ask(`-${right}`);
      await expect(open({ url }).reset(SITE, TIMEOUT_MS)).rejects.toThrow(/\(NOPERM\)/);
      await ask(`+${right}`);
    }
    await server.ask('ACL', 'DELUSER', 'least');
  });

  it('is beside an ID of the store, the same for all, which an emptied Redis has anew', async () => {
    const id = await open().storeId(SITE, TIMEOUT_MS);
    expect(isStoreId(id)).toBe(true);
    const others = [open(), open(), open()].map((other) => other.storeId('another-site', TIMEOUT_MS));
    expect(await Promise.all(others)).toEqual([id, id, id]);
    expect(await server.ask('TTL', 'proofgate:{0}:store')).toBe(-1);
    await server.ask('FLUSHALL');
    const next = await open().storeId(SITE, TIMEOUT_MS);
    expect(next).not.toBe(id);
    await server.ask('SET', 'proofgate:{0}:store', 'mine');
    await expect(open().storeId(SITE, TIMEOUT_MS)).rejects.toMatchObject({ fault: 'corrupt' });
  });

  it('is the highest of those that many raise at once, and never expires', async () => {
    const [first, second] = [open(), open()];
    const revisions = Array.from({ length: 100 }, (_, at) => ((at * 37) % 100) + 1);
    await Promise.all(
      revisions.map((revision, at) => (at % 2 ? first : second).raise(SITE, markAt(revision), TIMEOUT_MS)),
    );
    expect(await first.read(SITE, TIMEOUT_MS)).toEqual(markAt(100));
    expect(await server.ask('TTL', KEY)).toBe(-1);
  });

  it('compares as numbers, up to the largest', async () => {
    const shared = open();
    await shared.raise(SITE, markAt(9), TIMEOUT_MS);
    expect(await shared.raise(SITE, markAt(10), TIMEOUT_MS)).toEqual(markAt(10));
    const largest = markAt(Number.MAX_SAFE_INTEGER);
    await shared.raise(SITE, markAt(Number.MAX_SAFE_INTEGER - 1), TIMEOUT_MS);
    expect(await shared.raise(SITE, largest, TIMEOUT_MS)).toEqual(largest);
    expect(await shared.read(SITE, TIMEOUT_MS)).toEqual(largest);
  });

  const unreadable: readonly (readonly [string, readonly string[]])[] = [
    ['another text', ['SET', KEY, 'high']],
    ['a head that is none', ['SET', KEY, '7 short']],
    ['revision 0', ['SET', KEY, `0 ${markAt(1).head}`]],
    ['more than a safe integer', ['SET', KEY, `9007199254740993 ${markAt(1).head}`]],
    ['another type', ['HSET', KEY, 'revision', '7']],
    ['a mark behind something else', ['SET', KEY, `x7 ${markAt(1).head}`]],
    ['a mark with something behind it', ['SET', KEY, `7 ${markAt(1).head} x`]],
  ];
  it.each(unreadable)('is not written over when it is %s, and can be reset', async (_name, command) => {
    await server.ask(...command);
    const shared = open();
    await expect(shared.read(SITE, TIMEOUT_MS)).rejects.toMatchObject({ fault: 'corrupt' });
    await expect(shared.raise(SITE, markAt(3), TIMEOUT_MS)).rejects.toMatchObject({ fault: 'corrupt' });
    expect(await server.ask('EXISTS', KEY)).toBe(1);
    expect(await shared.reset(SITE, TIMEOUT_MS)).toBe('unreadable');
    expect(await shared.raise(SITE, markAt(3), TIMEOUT_MS)).toEqual(markAt(3));
  });

  it('is unavailable while Redis is away or hangs, and answers again', async () => {
    const away = open({ url: `redis://127.0.0.1:${await freePort()}` });
    await expect(away.read(SITE, 100)).rejects.toMatchObject({ fault: 'unavailable' });
    const shared = open();
    await shared.raise(SITE, markAt(3), TIMEOUT_MS);
    server.freeze();
    await expect(shared.read(SITE, 200)).rejects.toMatchObject({ fault: 'unavailable' });
    await expect(shared.raise(SITE, markAt(4), 200)).rejects.toMatchObject({ fault: 'unavailable' });
    server.thaw();
    expect((await shared.read(SITE, TIMEOUT_MS))?.revision).toBeGreaterThanOrEqual(3);
  });

  it('is unavailable once it is closed', async () => {
    const shared = open();
    await shared.close();
    await expect(shared.read(SITE, TIMEOUT_MS)).rejects.toMatchObject({ fault: 'unavailable' });
  });
});

describe('the shared mark elsewhere', () => {
  it('lies on the primary of Sentinels', async () => {
    const group = await TestRedisSentinel.start();
    try {
      await keepsTheContract(open({ url: group.url }));
    } finally {
      await group.stop();
    }
  });

  it('lies on whichever primary of a Cluster has its slot', async () => {
    const cluster = await TestRedisCluster.start();
    try {
      await keepsTheContract(open({ url: cluster.url }));
    } finally {
      await cluster.stop();
    }
  });
});
