/**
 * Control's publishing and distribution as a child process of the benchmark, on SQLite with every commit synced. Keys are
 * put in as an accepted enrollment puts them in: one transaction each, with the change recorded. What an enrollment costs
 * before that is not measured here.
 */

import { generateKeyPairSync } from 'node:crypto';
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { signingKeyOf } from '../../src/protocol/signing.ts';
import { addTargets, ControlServer } from '../../test/control/publishing/control-server.ts';
import { ControlWorld, ORDERS_READ, SITE, TestClock } from '../../test/control/publishing/world.ts';

/** What the benchmark asks for. */
export type Ask =
  | { readonly kind: 'targets'; readonly count: number }
  | { readonly kind: 'keys'; readonly count: number }
  | { readonly kind: 'enroll'; readonly perSecond: number; readonly seconds: number }
  | { readonly kind: 'acknowledged' }
  | { readonly kind: 'revoke' }
  | { readonly kind: 'policy' }
  | { readonly kind: 'stop' };

export interface Answers {
  readonly url: string;
  readonly tokens: readonly string[];
  /** Of the time that the enrollments took, and what it took to have them all acknowledged. */
  readonly enrolled: {
    readonly cpuSeconds: number;
    readonly wallSeconds: number;
    readonly acknowledgedMs: readonly number[];
  };
  /** From the revocation's commit until every target had acknowledged it. */
  readonly revokedMs: number;
  /** From a changed route until its whole bundle is published, and from a revocation meanwhile until that is. */
  readonly policy: { readonly wholeMs: number; readonly revokedMs: number };
  readonly faults: number;
}

const clock = new TestClock();
Object.defineProperty(clock, 'ms', { get: () => Date.now() });
const world = await ControlWorld.open(clock);
await world.putClient('billing', { orders: 'read' });
await world.putRoute(ORDERS_READ);
const control = await ControlServer.start(world);
const { publicKey } = signingKeyOf(generateKeyPairSync('ed25519').privateKey);
const LIFETIME_SECONDS = 3600;

function tell(answer: Partial<Answers>): void {
  process.send?.(answer);
}

/** Until every target has everything. */
async function everywhere(): Promise<void> {
  for (;;) {
    const { revision } = await world.site();
    const isPublished = (await world.read((tx) => tx.changes.pending(SITE, 1))).length === 0;
    const held = await world.read((tx) => tx.propagation.heldByAll(SITE));
    if (isPublished && held.revision >= revision) return;
    await delay(20);
  }
}

async function putKeys(count: number): Promise<void> {
  const CHUNK = 1000;
  for (let done = 0; done < count; done += CHUNK) {
    const rows = Array.from({ length: Math.min(CHUNK, count - done) }, () => ({
      ...world.keyRow('billing', publicKey, LIFETIME_SECONDS),
      listedRevision: 1,
    }));
    await world.store.housekeep(undefined, async (tx) => {
      for (const row of rows) await tx.keys.add(row);
    });
  }
  const { baseRevision } = await world.site();
  await world.putRoute(ORDERS_READ);
  while ((await world.site()).baseRevision === baseRevision) await delay(50);
}

async function enroll(perSecond: number, seconds: number): Promise<Answers['enrolled']> {
  const keyIds: string[] = [];
  const startedMs = performance.now();
  const cpu = process.cpuUsage();
  for (let index = 0; index < perSecond * seconds; index++) {
    keyIds.push(await world.addKey('billing', LIFETIME_SECONDS));
    await delay(Math.max(0, startedMs + ((index + 1) * 1000) / perSecond - performance.now()));
  }
  const used = process.cpuUsage(cpu);
  const wallSeconds = (performance.now() - startedMs) / 1000;
  await everywhere();
  const rows = await world.read((tx) => tx.keys.many(keyIds));
  const acknowledgedMs = rows.map((row) => (row.listedEverywhereAtMs ?? Number.NaN) - row.createdAtMs);
  return { cpuSeconds: (used.user + used.system) / 1e6, wallSeconds, acknowledgedMs };
}

async function revoke(): Promise<number> {
  const keyId = await world.addKey('billing', LIFETIME_SECONDS);
  await everywhere();
  await world.revokeKey(keyId);
  const committedMs = Date.now();
  await everywhere();
  const row = await world.read((tx) => tx.keys.key(keyId));
  return (row?.revokedEverywhereAtMs ?? Number.NaN) - committedMs;
}

async function policy(): Promise<Answers['policy']> {
  const keyId = await world.addKey('billing', LIFETIME_SECONDS);
  await everywhere();
  const { baseRevision } = await world.site();
  const startedMs = performance.now();
  await world.putRoute(ORDERS_READ);
  await delay(300);
  await world.revokeKey(keyId);
  const revokedAtMs = performance.now();
  while ((await world.read((tx) => tx.keys.key(keyId)))?.revokedRevision === null) await delay(5);
  const revokedMs = performance.now() - revokedAtMs;
  while ((await world.site()).baseRevision === baseRevision) await delay(5);
  return { wholeMs: performance.now() - startedMs, revokedMs };
}

async function answer(ask: Ask): Promise<boolean> {
  switch (ask.kind) {
    case 'targets':
      tell({ url: control.url, tokens: (await addTargets(world, ask.count)).map(({ token }) => token) });
      return true;
    case 'keys':
      await putKeys(ask.count);
      break;
    case 'enroll':
      tell({ enrolled: await enroll(ask.perSecond, ask.seconds), faults: control.faults.length });
      return true;
    case 'revoke':
      tell({ revokedMs: await revoke() });
      return true;
    case 'policy':
      tell({ policy: await policy() });
      return true;
    case 'acknowledged':
      await everywhere();
      break;
    case 'stop':
      return false;
  }
  tell({});
  return true;
}

tell({});
for (let goesOn = true; goesOn; ) {
  const [ask] = (await once(process, 'message')) as [Ask];
  goesOn = await answer(ask);
}
await control.close();
await world.close();
process.disconnect();
