import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import type { RedisReplayStoreOptions } from '../../../src/verifier/replay/redis.ts';
import { CONSUMED, type ReplayStore, UNAVAILABLE } from '../../../src/verifier/replay/store.ts';
import { freePort } from '../../support/harness/free-port.ts';
import { type GuardedServer, TestRedisSentinel } from '../../support/harness/redis-sentinel.ts';
import { TestRedisServer } from '../../support/harness/redis-server.ts';
import { waitUntil } from '../../support/wait.ts';
import { claimAt, SKEW_SECONDS } from './claims.ts';
import { nowSeconds, problemOf, servingLinks, TestRedisStores, untilAnswered } from './redis-stores.ts';

const MAX_LAG_SECONDS = 2;
/** At least 10 s, and 2 s. */
const MARGIN_SECONDS = 12;
/** The events that a store reports for a promotion. */
const PROMOTION: readonly string[] = ['primary_changed', 'epoch_missing'];

let group: TestRedisSentinel;
const stores = new TestRedisStores();

beforeAll(async () => {
  group = await TestRedisSentinel.start({ minReplicasMaxLagSeconds: MAX_LAG_SECONDS });
});
afterAll(() => group.stop());
afterEach(() => stores.closeAll());

function open(options: Partial<RedisReplayStoreOptions> = {}, url = group.url): ReplayStore {
  return stores.open(url, options);
}

function openServing(options: Partial<RedisReplayStoreOptions> = {}, url = group.url): Promise<ReplayStore> {
  return stores.openServing(url, options);
}

async function configure(nodes: readonly GuardedServer[], name: string, value: string): Promise<void> {
  for (const { server } of nodes) await server.ask('CONFIG', 'SET', name, value);
}

describe('redis under Sentinels', () => {
  it('serves from the primary that the Sentinels name, with F of 12 s, as its max lag is less', async () => {
    const before = nowSeconds();
    const store = await openServing();
    expect(await store.consume(claimAt(nowSeconds()))).toEqual(CONSUMED);
    const primary = await group.primary();
    const [moment, replid] = String(await primary.server.ask('GET', 'proofgate:{0}:epoch')).split(' ');
    expect(Number(moment)).toBeGreaterThanOrEqual(before + MARGIN_SECONDS);
    expect(Number(moment)).toBeLessThanOrEqual(nowSeconds() + MARGIN_SECONDS);
    expect(String(await primary.server.ask('INFO', 'replication'))).toContain(`master_replid:${replid}`);
    expect(stores.raised).toEqual(['epoch_missing']);
    const { fence } = store.health();
    expect(fence?.why).toBe('epoch_missing');
    expect(fence?.secondsLeft).toBeLessThanOrEqual(MARGIN_SECONDS + 2 * SKEW_SECONDS + 1);
  });

  it('fences what was consumed before a promotion, and serves on from the new primary', async () => {
    const store = await openServing();
    const primary = await group.primary();
    const [candidate] = await group.replicas();
    if (candidate === undefined) throw new Error('no replica');
    await group.candidate(candidate);
    // The write is lost: the replica that is promoted has not got it.
    group.holdReplication(primary, candidate);
    const now = nowSeconds();
    const lost = claimAt(now, { issuedAtSeconds: now, expiresAtSeconds: now + 60 });
    const [moment] = String(await primary.server.ask('GET', 'proofgate:{0}:epoch')).split(' ');
    const beyondFence = claimAt(now, { issuedAtSeconds: Number(moment) + 2 * SKEW_SECONDS + 1 });
    expect(await store.consume(beyondFence)).toEqual(CONSUMED);
    stores.raised = [];
    await primary.server.kill();
    group.heal();
    await group.promoted(primary);
    await primary.server.startAgain();
    const again = () => store.consume({ ...beyondFence, nowSeconds: nowSeconds() });
    expect(await untilAnswered(again)).toEqual(UNAVAILABLE.fenced);
    expect(await store.consume({ ...lost, nowSeconds: nowSeconds() })).toEqual(UNAVAILABLE.fenced);
    // Without the epoch, too, where the promoted one had not got that yet.
    await waitUntil(() => stores.raised.some((why) => PROMOTION.includes(why)));
    expect(await store.consume(claimAt(nowSeconds()))).toEqual(CONSUMED);
    await group.candidates();
    await group.settled();
  });

  it('finds the primary through whichever Sentinel answers', async () => {
    const gone = await freePort();
    const [port] = group.sentinelPorts([2]);
    const url = `redis-sentinel://127.0.0.1:${gone},127.0.0.1:${port}/${group.primaryName}`;
    const store = await openServing({}, url);
    expect(await store.consume(claimAt(nowSeconds()))).toEqual(CONSUMED);
  });

  it('goes on with its primary while no Sentinel answers', async () => {
    const store = await openServing({ recheckIntervalMs: 50 });
    for (const { server } of group.sentinels) server.freeze();
    try {
      // Several looks at the server and at the Sentinels.
      const until = performance.now() + 1_500;
      while (performance.now() < until) {
        expect(await store.consume(claimAt(nowSeconds()))).toEqual(CONSUMED);
      }
    } finally {
      for (const { server } of group.sentinels) server.thaw();
    }
    await group.settled();
  });
});

describe('redis under Sentinels: what must not be used', () => {
  it('refuses a primary that would write on with a replica promoted', async () => {
    const store = await openServing({ recheckIntervalMs: 50 });
    await configure(group.nodes, 'min-replicas-to-write', '1');
    await waitUntil(() => /has min-replicas-to-write 1, and needs 2 at least/.test(problemOf(store)));
    expect(await store.consume(claimAt(nowSeconds()))).toEqual(UNAVAILABLE.store);
    await configure(group.nodes, 'min-replicas-to-write', '2');
    await configure(group.nodes, 'min-replicas-max-lag', '0');
    await waitUntil(() => /has min-replicas-max-lag 0/.test(problemOf(store)));
    expect(await store.consume(claimAt(nowSeconds()))).toEqual(UNAVAILABLE.store);
    await configure(group.nodes, 'min-replicas-max-lag', `${MAX_LAG_SECONDS}`);
    await waitUntil(() => servingLinks(store) === 1);
    expect(await store.consume(claimAt(nowSeconds()))).toEqual(CONSUMED);
  });

  it('needs every replica, also one that may not be promoted: it could stay with a replaced primary', async () => {
    const replicas = await group.replicas();
    await replicas[1]?.server.ask('CONFIG', 'SET', 'replica-priority', '0');
    await configure(group.nodes, 'min-replicas-to-write', '1');
    try {
      const store = open({ recheckIntervalMs: 50 });
      await waitUntil(() => /min-replicas-to-write 1, and needs 2 at least/.test(problemOf(store)));
      // Without a replica that may be promoted, no primary is ever replaced.
      await replicas[0]?.server.ask('CONFIG', 'SET', 'replica-priority', '0');
      await waitUntil(() => servingLinks(store) === 1);
    } finally {
      await group.candidates();
      await configure(group.nodes, 'min-replicas-to-write', '2');
    }
  });

  it('refuses while the primary has lost its replicas, and serves when they are back', async () => {
    const store = await openServing({ recheckIntervalMs: 50 });
    const replicas = await group.replicas();
    for (const { server } of replicas) server.freeze();
    const primary = await group.primary();
    await waitUntil(async () =>
      String(await primary.server.ask('INFO', 'replication')).includes('min_slaves_good_slaves:0'),
    );
    expect(await store.consume(claimAt(nowSeconds()))).toEqual(UNAVAILABLE.store);
    await waitUntil(() => /\(NOREPLICAS\)/.test(problemOf(store)));
    for (const { server } of replicas) server.thaw();
    const outcome = await untilAnswered(() => store.consume(claimAt(nowSeconds())));
    expect(outcome).toEqual(CONSUMED);
    await group.settled();
  });

  it('says which name the Sentinels do not know, and that none answers', async () => {
    const [port] = group.sentinelPorts([0]);
    const stranger = open({}, `redis-sentinel://127.0.0.1:${port}/other`);
    await waitUntil(() =>
      /^no Sentinel names the primary other: .*knows no primary/.test(problemOf(stranger)),
    );
    const alone = open({}, `redis-sentinel://127.0.0.1:${await freePort()}/replay`);
    await waitUntil(() => /cannot connect to Redis at .*ECONNREFUSED/.test(problemOf(alone)));
    expect(await alone.consume(claimAt(nowSeconds()))).toEqual(UNAVAILABLE.store);
  });

  it('refuses a Sentinel in place of a server, and a server in place of a Sentinel', async () => {
    const [port] = group.sentinelPorts([0]);
    const sentinel = open({}, `redis://127.0.0.1:${port}`);
    await waitUntil(() => /is a Redis Sentinel: give it as redis-sentinel:/.test(problemOf(sentinel)));
    const server = await TestRedisServer.start();
    try {
      const single = open({}, `redis-sentinel://127.0.0.1:${server.port}/replay`);
      await waitUntil(() => /is no Sentinel/.test(problemOf(single)));
    } finally {
      await server.stop();
    }
  });
});
