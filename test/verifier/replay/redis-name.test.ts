/** Tests one address that leads to another server: a name whose address moves, or a proxy in front of two servers. */
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { ONLY_TAG } from '../../../src/verifier/redis/primaries.ts';
import { replayKeys } from '../../../src/verifier/redis/replay-keys.ts';
import { CONSUMED, type ReplayStore, UNAVAILABLE } from '../../../src/verifier/replay/store.ts';
import { RedisGate } from '../../support/harness/redis-gate.ts';
import { infoFields } from '../../support/harness/redis-reply.ts';
import { TestRedisServer } from '../../support/harness/redis-server.ts';
import { waitUntil } from '../../support/wait.ts';
import { claimAt, SKEW_SECONDS } from './claims.ts';
import { nowSeconds, servingLinks, TestRedisStores, untilAnswered } from './redis-stores.ts';

/** Twice the skew, and a second. */
const LONGER_THAN_FENCE_OF_ONE_SERVER = 2 * SKEW_SECONDS + 1;

const stores = new TestRedisStores();
let former: TestRedisServer;
let successor: TestRedisServer;
let name: RedisGate;
let leadsTo: TestRedisServer;
let url: string;

beforeEach(async () => {
  former = await TestRedisServer.start('--repl-diskless-sync-delay', '0');
  successor = await TestRedisServer.start('--replicaof', '127.0.0.1', `${former.port}`);
  leadsTo = former;
  name = await RedisGate.start(() => leadsTo.port);
  url = `redis://127.0.0.1:${name.port}`;
  await waitUntil(async () => (await replication(successor)).get('master_link_status') === 'up');
});
afterEach(async () => {
  await stores.closeAll();
  await name.close();
  await former.stop();
  await successor.stop();
});

async function replication(server: TestRedisServer): Promise<ReadonlyMap<string, string>> {
  return infoFields(await server.ask('INFO', 'replication'));
}

/** No write of the former primary reaches the successor any more. */
async function promote(): Promise<void> {
  await successor.ask('REPLICAOF', 'NO', 'ONE');
}

async function demote(): Promise<void> {
  await former.ask('REPLICAOF', '127.0.0.1', `${successor.port}`);
}

/** The fence of the first use is over. */
async function openStore(): Promise<ReplayStore> {
  const store = await stores.openServing(url, { recheckIntervalMs: 200 });
  const lua =
    "local moment, rest = string.match(redis.call('GET', KEYS[1]), '^(%d+)( .*)$') " +
    "return redis.call('SET', KEYS[1], string.format('%d%s', moment - 900, rest))";
  const { epoch } = replayKeys(ONLY_TAG);
  await former.ask('EVAL', lua, '1', epoch);
  const momentOf = async (server: TestRedisServer) => String(await server.ask('GET', epoch)).split(' ')[0];
  await waitUntil(async () => (await momentOf(successor)) === (await momentOf(former)));
  return store;
}

/** Issued now, as callers do. */
function ordinary() {
  const now = nowSeconds();
  return claimAt(now, { issuedAtSeconds: now, expiresAtSeconds: now + 60 });
}

describe('redis: one name, after a failover', () => {
  it('connects by name when the old primary became a replica, and denies what only that knew', async () => {
    const store = await openStore();
    await promote();
    const known = ordinary();
    expect(await store.consume(known)).toEqual(CONSUMED);
    await demote();
    expect(await store.consume(ordinary())).toEqual(UNAVAILABLE.store);
    leadsTo = successor;
    await waitUntil(() => store.health().fence?.why === 'primary_changed');
    expect(await untilAnswered(() => store.consume(known))).toEqual(UNAVAILABLE.fenced);
    expect(store.health().fence?.secondsLeft).toBeGreaterThan(LONGER_THAN_FENCE_OF_ONE_SERVER);
    expect(await store.consume(claimAt(nowSeconds()))).toEqual(CONSUMED);
  });

  it('leaves an old primary that still accepts writes, once the name leads elsewhere', async () => {
    const store = await openStore();
    await promote();
    const known = ordinary();
    expect(await store.consume(known)).toEqual(CONSUMED);
    leadsTo = successor;
    await waitUntil(() => store.health().fence?.why === 'primary_changed');
    expect(await untilAnswered(() => store.consume(known))).toEqual(UNAVAILABLE.fenced);
  });

  it('stays where it is while the name leads to nothing, or to a replica', async () => {
    const store = await openStore();
    leadsTo = successor;
    await seesLooks(successor);
    expect(await store.consume(ordinary())).toEqual(CONSUMED);
    await successor.kill();
    expect(await store.consume(ordinary())).toEqual(CONSUMED);
    expect(store.health()).toMatchObject({ ready: true, links: { serving: 1 } });
  });

  it('waits while the primary is down, and takes what the name leads to then', async () => {
    const store = await openStore();
    await former.kill();
    await waitUntil(() => servingLinks(store) === 0);
    await promote();
    leadsTo = successor;
    expect(await untilAnswered(() => store.consume(ordinary()))).toEqual(UNAVAILABLE.fenced);
  });
});

/** Resolves when two more connections were made through the name to this server. */
async function seesLooks(server: TestRedisServer): Promise<void> {
  const connections = async () =>
    Number(infoFields(await server.ask('INFO', 'stats')).get('total_connections_received'));
  // Each question is a connection of its own.
  let asked = 1;
  const before = await connections();
  await waitUntil(async () => (await connections()) - before - asked++ >= 2);
}
