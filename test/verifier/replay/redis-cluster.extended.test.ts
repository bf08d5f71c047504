import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { CLUSTER_TAGS, slotOfTag } from '../../../src/verifier/redis/cluster-view.ts';
import type { RedisReplayStoreOptions } from '../../../src/verifier/replay/redis.ts';
import {
  CONSUMED,
  REPLAYED,
  type ReplayClaim,
  type ReplayStore,
  UNAVAILABLE,
} from '../../../src/verifier/replay/store.ts';
import { type ClusterNode, TestRedisCluster } from '../../support/harness/redis-cluster.ts';
import { waitUntil } from '../../support/wait.ts';
import { claimAt, randomIdentifier, SKEW_SECONDS } from './claims.ts';
import { nowSeconds, problemOf, servingLinks, TestRedisStores, untilAnswered } from './redis-stores.ts';

const MAX_LAG_SECONDS = 2;
const NODE_TIMEOUT_MS = 3_000;
/** The largest of both and 10 s, and two. */
const MARGIN_SECONDS = 12;
const PRIMARY_COUNT = 3;
const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';

const stores = new TestRedisStores();
let cluster: TestRedisCluster;

beforeAll(async () => {
  cluster = await TestRedisCluster.start({
    minReplicasMaxLagSeconds: MAX_LAG_SECONDS,
    nodeTimeoutMs: NODE_TIMEOUT_MS,
  });
});
afterAll(() => cluster.stop());
afterEach(() => stores.closeAll());

function openServing(options: Partial<RedisReplayStoreOptions> = {}): Promise<ReplayStore> {
  return stores.openServing(cluster.url, options, PRIMARY_COUNT);
}

/** A claim of a holder whose records are in this shard. */
function claimIn(shard: number, changes: Partial<ReplayClaim> = {}): ReplayClaim {
  const holderThumbprint = `${ALPHABET[shard]}${randomIdentifier().slice(1)}`;
  return claimAt(nowSeconds(), { holderThumbprint, ...changes });
}

function tagOf(shard: number): string {
  return CLUSTER_TAGS[shard] ?? '';
}

function ownerOf(shard: number): Promise<ClusterNode> {
  return cluster.ownerOf(slotOfTag(tagOf(shard)));
}

async function epochOf(shard: number): Promise<{ readonly moment: number; readonly replid: string }> {
  const { server } = await ownerOf(shard);
  const [moment, replid = ''] = String(await server.ask('GET', `proofgate:{${tagOf(shard)}}:epoch`)).split(
    ' ',
  );
  return { moment: Number(moment), replid };
}

/** Beyond the shard's fence as it is, and within any that goes up from now on. */
async function barelyFresh(shard: number): Promise<ReplayClaim> {
  const { moment } = await epochOf(shard);
  // What is set up within one second would meet a later fence of the same second, which reaches no further.
  const startSeconds = nowSeconds();
  await waitUntil(() => nowSeconds() > startSeconds);
  return claimIn(shard, { issuedAtSeconds: moment + 2 * SKEW_SECONDS + 1 });
}

/** Shards by whether the node serves them. */
async function shardsOf(node: ClusterNode): Promise<{ readonly own: number[]; readonly others: number[] }> {
  const own: number[] = [];
  const others: number[] = [];
  for (const shard of CLUSTER_TAGS.keys()) ((await ownerOf(shard)) === node ? own : others).push(shard);
  return { own, others };
}

const shardOnAnotherThan = async (node: ClusterNode): Promise<number> =>
  (await shardsOf(node)).others[0] ?? -1;

describe('redis as a Cluster', () => {
  it('spreads holders over all primaries, each part with an epoch of its own and F of 12 s', async () => {
    const before = nowSeconds();
    const store = await openServing();
    for (const shard of CLUSTER_TAGS.keys()) {
      const claim = claimIn(shard);
      expect(await store.consume(claim)).toEqual(CONSUMED);
      expect(await store.consume(claim)).toEqual(REPLAYED);
      const number = Math.floor(claim.expiresAtSeconds / 32);
      const { server } = await ownerOf(shard);
      const key = `proofgate:{${tagOf(shard)}}:jti:${number}`;
      expect(await server.ask('HEXISTS', key, claim.identifier)).toBe(1);
      const { moment } = await epochOf(shard);
      expect(moment).toBeGreaterThanOrEqual(before + MARGIN_SECONDS);
      expect(moment).toBeLessThanOrEqual(nowSeconds() + MARGIN_SECONDS);
    }
    for (const primary of await cluster.primaries()) {
      expect((await shardsOf(primary)).own.length).toBeGreaterThanOrEqual(21);
    }
  });

  it('finds all nodes through one of them', async () => {
    const [, node] = cluster.nodes;
    const store = await stores.openServing(`redis-cluster://127.0.0.1:${node?.gate.port}`, {}, PRIMARY_COUNT);
    expect(await store.consume(claimIn(40))).toEqual(CONSUMED);
  });

  it('consumes one of many copies that come at once', async () => {
    const [first, second] = [await openServing(), await openServing()];
    for (const shard of [0, 21, 42, 63]) {
      const claim = claimIn(shard);
      const copies = Array.from({ length: 50 }, async (_, at) => (at % 2 ? first : second).consume(claim));
      const outcomes = await Promise.all(copies);
      expect(outcomes.filter(({ kind }) => kind === 'consumed')).toHaveLength(1);
      expect(outcomes.filter(({ kind }) => kind === 'replayed')).toHaveLength(49);
    }
  });
});

describe('redis as a Cluster: slots that move', () => {
  it('fences the part that moved, and no other', async () => {
    const store = await openServing({ recheckIntervalMs: 100 });
    const shard = 5;
    const owner = await ownerOf(shard);
    const target = (await cluster.primaries()).find((node) => node !== owner);
    if (target === undefined) throw new Error('no other primary');
    const neighbour = (await shardsOf(owner)).own.find((other) => other !== shard) ?? -1;
    const [moved, stayed] = [await barelyFresh(shard), await barelyFresh(neighbour)];
    expect(await store.consume(moved)).toEqual(CONSUMED);
    expect(await store.consume(stayed)).toEqual(CONSUMED);
    await cluster.moveSlot(slotOfTag(tagOf(shard)), target);
    expect(await untilAnswered(() => store.consume(moved))).toEqual(UNAVAILABLE.fenced);
    expect(await untilAnswered(() => store.consume(stayed))).toEqual(REPLAYED);
    await waitUntil(() => stores.raised.includes('primary_changed'));
    expect(await untilAnswered(() => store.consume(claimIn(shard)))).toEqual(CONSUMED);
    expect(servingLinks(store)).toBe(PRIMARY_COUNT);
  });

  it('refuses what would be redirected while a slot is on its way, and serves the others', async () => {
    const store = await openServing({ recheckIntervalMs: 100 });
    const shard = 30;
    const slot = slotOfTag(tagOf(shard));
    const owner = await ownerOf(shard);
    const target = (await cluster.primaries()).find((node) => node !== owner);
    if (target === undefined) throw new Error('no other primary');
    const known = claimIn(shard);
    expect(await store.consume(known)).toEqual(CONSUMED);
    await cluster.beginMove(slot, target);
    // The quota's key of a new holder is missing there: TRYAGAIN.
    expect(await store.consume(claimIn(shard))).toEqual(UNAVAILABLE.store);
    await cluster.moveKeys(slot, target);
    // All keys are missing there: ASK.
    expect(await store.consume(known)).toEqual(UNAVAILABLE.store);
    // The store reports a fence from before first.
    await waitUntil(() => /served: Redis refuses some keys.*\((?:ASK|TRYAGAIN)\)/.test(warningOf(store)));
    const neighbour = (await shardsOf(owner)).own.find((other) => other !== shard) ?? -1;
    expect(await store.consume(claimIn(neighbour))).toEqual(CONSUMED);
    await cluster.finishMove(slot, target);
    expect(await untilAnswered(() => store.consume(claimIn(shard)))).toEqual(CONSUMED);
    expect(await store.consume(known)).not.toEqual(CONSUMED);
  });

  it('fences when the new owner has none of the keys', async () => {
    const store = await openServing({ recheckIntervalMs: 100 });
    const shard = 50;
    const owner = await ownerOf(shard);
    const target = (await cluster.primaries()).find((node) => node !== owner);
    if (target === undefined) throw new Error('no other primary');
    const claim = await barelyFresh(shard);
    expect(await store.consume(claim)).toEqual(CONSUMED);
    await cluster.moveSlotWithoutKeys(slotOfTag(tagOf(shard)), target);
    expect(await untilAnswered(() => store.consume(claim))).toEqual(UNAVAILABLE.fenced);
    expect(await untilAnswered(() => store.consume(claimIn(shard)))).toEqual(CONSUMED);
  });

  it('fences when a move is given up and records stay behind on the other side', async () => {
    const store = await openServing();
    const shard = 12;
    const slot = slotOfTag(tagOf(shard));
    const owner = await ownerOf(shard);
    const target = (await cluster.primaries()).find((node) => node !== owner);
    if (target === undefined) throw new Error('no other primary');
    const claim = await barelyFresh(shard);
    expect(await store.consume(claim)).toEqual(CONSUMED);
    await cluster.beginMove(slot, target);
    const key = `proofgate:{${tagOf(shard)}}:jti:${Math.floor(claim.expiresAtSeconds / 32)}`;
    await owner.server.ask('MIGRATE', '127.0.0.1', `${target.server.port}`, key, '0', '5000');
    for (const { server } of [owner, target]) await server.ask('CLUSTER', 'SETSLOT', `${slot}`, 'STABLE');
    expect(await owner.server.ask('EXISTS', `proofgate:{${tagOf(shard)}}:epoch`)).toBe(1);
    expect(await untilAnswered(() => store.consume(claim))).toEqual(UNAVAILABLE.fenced);
    await waitUntil(() => stores.raised.includes('epoch_missing'));
    expect(await untilAnswered(() => store.consume(claimIn(shard)))).toEqual(CONSUMED);
  });
});

describe('redis as a Cluster: primaries that go away', () => {
  it('fences the parts of a primary that was replaced without its last writes, and goes on with the others', async () => {
    const store = await openServing();
    const primary = await ownerOf(0);
    const elsewhere = await shardOnAnotherThan(primary);
    const replica = await cluster.replicaOf(primary);
    const [lost, kept] = [await barelyFresh(0), await barelyFresh(elsewhere)];
    // An existing fence would hide the one that must be raised.
    await waitUntil(() => nowSeconds() > lost.issuedAtSeconds);
    cluster.holdReplication(primary, replica);
    const late = { ...lost, issuedAtSeconds: nowSeconds(), nowSeconds: nowSeconds() };
    expect(await store.consume(late)).toEqual(CONSUMED);
    expect(await store.consume({ ...kept, nowSeconds: nowSeconds() })).toEqual(CONSUMED);
    await primary.server.kill();
    cluster.heal();
    await cluster.promoted(replica);
    const again = (claim: ReplayClaim) => () => store.consume({ ...claim, nowSeconds: nowSeconds() });
    await primary.server.startAgain();
    expect(await untilAnswered(again(late))).toEqual(UNAVAILABLE.fenced);
    expect(await untilAnswered(again(kept))).toEqual(REPLAYED);
    await waitUntil(() => stores.raised.includes('primary_changed'));
    expect(store.health()).toMatchObject({ fence: { why: 'primary_changed' } });
    expect(await untilAnswered(() => store.consume(claimIn(0)))).toEqual(CONSUMED);
    await cluster.settled();
  });

  it('refuses everything while the Cluster is down, and resumes by itself', async () => {
    const store = await openServing({ recheckIntervalMs: 200 });
    const primary = await ownerOf(0);
    const replica = await cluster.replicaOf(primary);
    const elsewhere = await shardOnAnotherThan(primary);
    await replica.server.kill();
    await primary.server.kill();
    await waitUntil(async () => (await store.consume(claimIn(elsewhere))) === UNAVAILABLE.store);
    await waitUntil(() => problemOf(store) !== '');
    await primary.server.startAgain();
    await replica.server.startAgain();
    expect(await untilAnswered(() => store.consume(claimIn(elsewhere)))).toEqual(CONSUMED);
    expect(await untilAnswered(() => store.consume(claimIn(0)))).toEqual(CONSUMED);
    await cluster.settled();
  });
});

describe('redis as a Cluster: what must not be used', () => {
  it('refuses primaries that write without a replica', async () => {
    const store = await openServing({ recheckIntervalMs: 50 });
    const primaries = await cluster.primaries();
    for (const { server } of primaries) await server.ask('CONFIG', 'SET', 'min-replicas-to-write', '0');
    await waitUntil(() => /has min-replicas-to-write 0, and needs 1 at least/.test(problemOf(store)));
    expect(await store.consume(claimIn(0))).toEqual(UNAVAILABLE.store);
    for (const { server } of primaries) await server.ask('CONFIG', 'SET', 'min-replicas-to-write', '1');
    expect(await untilAnswered(() => store.consume(claimIn(0)))).toEqual(CONSUMED);
  });

  it('goes by what the operator says where CONFIG is forbidden', async () => {
    const primaries = await cluster.primaries();
    for (const { server } of primaries) {
      await server.ask('ACL', 'SETUSER', 'limited', 'on', '>a-secret', '~proofgate:*', '+@all', '-config');
    }
    const url = cluster.url.replace('://', '://limited:a-secret@');
    const silent = stores.open(url);
    await waitUntil(() =>
      /does not tell its min-replicas-to-write .*give --redis-min-replicas/.test(problemOf(silent)),
    );
    const before = nowSeconds();
    for (const { server } of primaries) await server.ask('FLUSHALL');
    const declared = { minReplicasToWrite: 1, minReplicasMaxLagSeconds: 40, clusterNodeTimeoutMs: 1_000 };
    const store = await stores.openServing(url, { declaredFailoverSettings: declared }, PRIMARY_COUNT);
    expect(await store.consume(claimIn(9))).toEqual(CONSUMED);
    expect((await epochOf(9)).moment).toBeGreaterThanOrEqual(before + 42);
    for (const { server } of primaries) await server.ask('ACL', 'DELUSER', 'limited');
  });

  it('refuses a single server', async () => {
    const { TestRedisServer } = await import('../../support/harness/redis-server.ts');
    const server = await TestRedisServer.start();
    try {
      const store = stores.open(`redis-cluster://127.0.0.1:${server.port}`);
      await waitUntil(() => problemOf(store) !== '' && !problemOf(store).startsWith('asking'));
      expect(await store.consume(claimIn(0))).toEqual(UNAVAILABLE.store);
    } finally {
      await server.stop();
    }
  });
});

function warningOf(store: ReplayStore): string {
  const health = store.health();
  return health.ready ? (health.warning ?? '') : health.problem;
}
