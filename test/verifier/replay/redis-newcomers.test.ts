/** Who connects to a Redis: verifiers that come back together, and a server that is too old for them. */
import { connect } from 'node:net';
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { CONSUMED, UNAVAILABLE } from '../../../src/verifier/replay/store.ts';
import { RedisGate } from '../../support/harness/redis-gate.ts';
import { startImpostor, TestRedisServer } from '../../support/harness/redis-server.ts';
import { waitUntil } from '../../support/wait.ts';
import { claimAt } from './claims.ts';
import { nowSeconds, problemOf, servingLinks, TestRedisStores } from './redis-stores.ts';

const EPOCH_KEY = 'proofgate:{0}:epoch';

let server: TestRedisServer;
const stores = new TestRedisStores();
const closing: (() => Promise<void>)[] = [];

beforeEach(async () => {
  server = await TestRedisServer.start();
});
afterEach(async () => {
  await stores.closeAll();
  for (const close of closing.splice(0)) await close();
  await server.stop();
});

async function epochMoment(): Promise<number> {
  return Number.parseInt(String(await server.ask('GET', EPOCH_KEY)), 10);
}

it('several that come back after everything was lost move the epoch once, and each tells of it once', async () => {
  const gate = await RedisGate.start(() => server.port);
  closing.push(() => gate.close());
  const gateUrl = `redis://127.0.0.1:${gate.port}`;
  const soon = [await stores.openServing(server.url), await stores.openServing(server.url)];
  const late = [await stores.openServing(gateUrl), await stores.openServing(gateUrl)];
  const all = [...soon, ...late];
  // Moments count in seconds: one that is set within the same second is no other.
  const first = await epochMoment();
  await waitUntil(() => nowSeconds() > first);
  await server.kill();
  await waitUntil(() => all.every((store) => servingLinks(store) === 0));
  stores.raised = [];
  gate.hold(() => true);
  await server.startAgain();
  await waitUntil(() => soon.every((store) => servingLinks(store) === 1));
  const moment = await epochMoment();
  expect(moment).toBeGreaterThan(first);
  await waitUntil(() => nowSeconds() > moment + 1);
  gate.release();
  await waitUntil(() => late.every((store) => servingLinks(store) === 1));
  expect(await epochMoment()).toBe(moment);
  expect(stores.raised).toEqual(all.map(() => 'epoch_missing'));
  for (const store of all) {
    expect(await store.consume(claimAt(nowSeconds(), { issuedAtSeconds: moment }))).toEqual(
      UNAVAILABLE.fenced,
    );
    expect(await store.consume(claimAt(nowSeconds()))).toEqual(CONSUMED);
  }
  expect(await epochMoment()).toBe(moment);
});

/** The same server, but for the version that it tells. */
async function startAsVersion6() {
  return startImpostor((client) => {
    const upstream = connect(server.port, '127.0.0.1');
    upstream.on('error', () => undefined);
    client.on('close', () => upstream.destroy());
    upstream.on('close', () => client.destroy());
    client.pipe(upstream);
    // Keeps the number of bytes: the answer's length was already sent.
    upstream.on('data', (chunk: Buffer) => {
      client.write(chunk.toString('latin1').replace(/(redis_version:)\d/, '$16'), 'latin1');
    });
  });
}

it('a server older than 7 is not used, though it could do all that is asked of it', async () => {
  const old = await startAsVersion6();
  closing.push(old.stop);
  const store = stores.open(old.url);
  await waitUntil(() => / is older than version 7$/.test(problemOf(store)));
  expect(await store.consume(claimAt(nowSeconds()))).toEqual(UNAVAILABLE.store);
  expect(await server.ask('EXISTS', EPOCH_KEY)).toBe(0);
  // The same without the lie.
  const fit = await stores.openServing(server.url);
  expect(await fit.consume(claimAt(nowSeconds()))).toEqual(CONSUMED);
});
