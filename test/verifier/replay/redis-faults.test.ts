import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { CONSUMED, REPLAYED, type ReplayStore, UNAVAILABLE } from '../../../src/verifier/replay/store.ts';
import { TestRedisServer } from '../../support/harness/redis-server.ts';
import { waitUntil } from '../../support/wait.ts';
import { claimAt } from './claims.ts';
import { nowSeconds, problemOf, servingLinks, TestRedisStores, untilAnswered } from './redis-stores.ts';

const stores = new TestRedisStores();
let server: TestRedisServer;

beforeAll(async () => {
  server = await TestRedisServer.start();
});
afterAll(() => server.stop());
afterEach(() => stores.closeAll());

/** Refused while the fault lasts; afterwards what was consumed before is known, and new proofs are taken. */
async function refusesDuring(
  store: ReplayStore,
  fault: { readonly begin: () => Promise<unknown>; readonly end: () => Promise<unknown> },
  problem: RegExp,
): Promise<void> {
  const before = claimAt(nowSeconds());
  expect(await store.consume(before)).toEqual(CONSUMED);
  await fault.begin();
  try {
    const during = claimAt(nowSeconds());
    for (let time = 0; time < 20; time += 1) {
      expect(await store.consume(during)).toEqual(UNAVAILABLE.store);
      expect((await store.consume(before)).kind).not.toBe('consumed');
    }
    await waitUntil(() => problem.test(problemOf(store)));
  } finally {
    await fault.end();
  }
  expect(await untilAnswered(() => store.consume(claimAt(nowSeconds())))).toEqual(CONSUMED);
  expect(await store.consume(before)).toEqual(REPLAYED);
}

describe('redis: a server that cannot write', () => {
  it('is full', async () => {
    const store = await stores.openServing(server.url, { recheckIntervalMs: 50 });
    await refusesDuring(
      store,
      {
        begin: () => server.ask('CONFIG', 'SET', 'maxmemory', '1'),
        end: () => server.ask('CONFIG', 'SET', 'maxmemory', '0'),
      },
      /refuses what the replay store needs \(OOM\)/,
    );
  });

  it('lacks replicas', async () => {
    const store = await stores.openServing(server.url, { recheckIntervalMs: 50 });
    await refusesDuring(
      store,
      {
        begin: () => server.ask('CONFIG', 'SET', 'min-replicas-to-write', '1'),
        end: () => server.ask('CONFIG', 'SET', 'min-replicas-to-write', '0'),
      },
      /\(NOREPLICAS\)/,
    );
  });

  it('is busy with a script', async () => {
    const store = await stores.openServing(server.url, { recheckIntervalMs: 50, timeoutMs: 200 });
    await server.ask('CONFIG', 'SET', 'busy-reply-threshold', '10');
    let endless: Promise<unknown> = Promise.resolve();
    await refusesDuring(
      store,
      {
        begin: async () => {
          endless = server.ask('EVAL', 'while true do end', '0').catch(() => undefined);
          await waitUntil(async () => (await server.command('GET', 'any')).startsWith('-BUSY'));
        },
        end: async () => {
          await server.ask('SCRIPT', 'KILL');
          await endless;
        },
      },
      /\(BUSY\)|does not answer in time/,
    );
  });

  it('may not be asked for what is needed', async () => {
    await server.ask('ACL', 'SETUSER', 'limited', 'on', '>a-secret', '~proofgate:*', '+@all', '-evalsha');
    const store = stores.open(server.url.replace('://', '://limited:a-secret@'));
    await waitUntil(() => /\(NOPERM\)/.test(problemOf(store)));
    expect(await store.consume(claimAt(nowSeconds()))).toEqual(UNAVAILABLE.store);
    await server.ask('ACL', 'SETUSER', 'limited', '+evalsha');
    await waitUntil(() => servingLinks(store) === 1);
    expect(await store.consume(claimAt(nowSeconds()))).toEqual(CONSUMED);
  });

  it('may not delete, which it does only when a hash expires: it is reported at the start', async () => {
    await server.ask('ACL', 'SETUSER', 'keeper', 'on', '>a-secret', '~proofgate:*', '+@all', '-unlink');
    const store = stores.open(server.url.replace('://', '://keeper:a-secret@'));
    await waitUntil(() => /\(NOPERM\)/.test(problemOf(store)));
    expect(await store.consume(claimAt(nowSeconds()))).toEqual(UNAVAILABLE.store);
    await server.ask('ACL', 'SETUSER', 'keeper', '+unlink');
    await waitUntil(() => servingLinks(store) === 1);
  });

  it('needs no more rights than docs/operate/replay.md names', async () => {
    const rights = '-@all +info +eval +evalsha +script|load +get +set +hget +hexists +hsetnx +exists';
    const more = '+unlink +incr +expire +ttl +time +config|get +ping +hello +auth +client +select +quit';
    const words = `${rights} ${more}`.split(' ');
    await server.ask('ACL', 'SETUSER', 'least', 'on', '>a-secret', '~proofgate:*', ...words);
    const store = await stores.openServing(server.url.replace('://', '://least:a-secret@'));
    const claim = claimAt(nowSeconds());
    expect(await store.consume(claim)).toEqual(CONSUMED);
    await server.ask('SCRIPT', 'FLUSH');
    expect(await store.consume(claim)).toEqual(REPLAYED);
  });
});

describe('redis: a slow server', () => {
  it('answers late: refused in time, known afterwards', async () => {
    const store = await stores.openServing(server.url, { timeoutMs: 200 });
    const claim = claimAt(nowSeconds());
    await server.ask('CLIENT', 'PAUSE', '2000', 'ALL');
    const endOfPause = server.ask('PING');
    expect(await Promise.race([store.consume(claim), endOfPause])).toEqual(UNAVAILABLE.store);
    // It is unknown whether the proof was consumed: if it was, it must not pass now.
    expect(await untilAnswered(() => store.consume(claimAt(nowSeconds())))).toEqual(CONSUMED);
    const first = await store.consume(claim);
    expect(await store.consume(claim)).toEqual(REPLAYED);
    expect(['consumed', 'replayed']).toContain(first.kind);
  });
});
