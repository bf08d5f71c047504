/** Tests the publishing job: which changes share a revision, what it retries, and what a hundred waiting targets receive. */
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { Agent, request } from 'undici';
import { ACK_PATH, POLL_PATH } from '../../../src/bundle/format/bundle-limits.ts';
import { isJsonObject } from '../../../src/protocol/strict-json.ts';
import { waitUntil } from '../../support/wait.ts';
import {
  addTargets,
  type ControlServer,
  requestOf,
  startControl,
  type TestTarget,
} from './control-server.ts';
import { Follower } from './follower.ts';
import { ControlWorld, ORDERS_READ, SITE } from './publishing-fixture.ts';

let world: ControlWorld;
let control: ControlServer;
beforeEach(async () => {
  world = await ControlWorld.open();
  await world.putClient('billing', { orders: 'read' });
  control = await startControl(world);
  await waitUntil(async () => (await world.site()).revision === 1);
});
afterEach(async () => {
  await control.close();
  await world.close();
});

const steps = (after = 0) => world.read((tx) => tx.distribution.stepsAfter(SITE, after, 1000));
const isSettled = async () => (await world.read((tx) => tx.changes.pending(SITE, 1))).length === 0;

it('the first change goes out by itself, and those that come soon after share a revision', async () => {
  const first = await world.addKey('billing');
  await waitUntil(isSettled);
  const keys = [first];
  const startMs = performance.now();
  for (let count = 0; count < 20; count++) keys.push(await world.addKey('billing'));
  await waitUntil(isSettled);
  const coalescingSpans = (performance.now() - startMs) / 250;
  const follower = new Follower(world);
  const snapshot = await follower.follow();
  for (const key of keys) expect(snapshot.keys.get(key)).toBeDefined();
  expect((await world.read((tx) => tx.keys.find(first)))?.listedRevision).toBe(2);
  // Revisions are at least a quarter of a second apart, and on a busy machine the changes take a few of those.
  expect((await steps(2)).length).toBeLessThanOrEqual(1 + coalescingSpans);
});

it('finds a change without a notification', async () => {
  const { clock } = world;
  await world.store.writeUnaudited({ kind: 'site', siteId: SITE }, (tx) =>
    tx.changes.record(SITE, { kind: 'policy' }, clock.ms),
  );
  await waitUntil(isSettled);
  expect((await steps(1)).map(({ kind }) => kind)).toEqual(['bundle']);
});

it('a fault is reported and retried, and what was published stays one chain', async () => {
  const housekeep = world.store.writeUnaudited.bind(world.store);
  // The first locked transaction is the change itself; the next two are publications.
  let transactions = 0;
  world.store.writeUnaudited = (lock, work) =>
    housekeep(lock, async (tx) => {
      const done = await work(tx);
      if (lock !== undefined) transactions++;
      if (lock !== undefined && (transactions === 2 || transactions === 3))
        throw new Error('the disk is full');
      return done;
    });
  const added = await world.addKey('billing');
  await waitUntil(isSettled);
  expect(control.faults.map(String)).toEqual(['Error: the disk is full', 'Error: the disk is full']);
  expect((await steps(1)).map(({ kind }) => kind)).toEqual(['delta']);
  expect((await new Follower(world).follow()).keys.get(added)).toBeDefined();
});

it('a publisher that ends in the middle of a whole bundle leaves nothing half done', async () => {
  await world.addManyKeys('billing', 3000);
  await world.putRoute(ORDERS_READ);
  const before = await world.site();
  await control.close();
  const after = await world.site();
  if (after.revision === before.revision) expect(after).toEqual(before);
  control = await startControl(world, control.port);
  await waitUntil(isSettled);
  await waitUntil(async () => (await new Follower(world).follow()).routes.size === 1);
});

it('rotation of both keys: verifiers that know either go on', async () => {
  const old = await world.read((tx) => world.signingKeys.signers(tx, SITE, 'bundle', world.clock.ms));
  await world.change((tx) => world.signingKeys.rotate(tx, SITE, 'bundle', { nowMs: world.clock.ms }));
  await world.change((tx) => world.signingKeys.rotate(tx, SITE, 'freshness', { nowMs: world.clock.ms }));
  await waitUntil(async () => (await world.site()).baseRevision > 1);
  const { baseRevision } = await world.site();
  const bundle = await control.distribution.file(requestOf((await target()).id), baseRevision, 'bundle.jws');
  expect(kids(bundle.toString())).toHaveLength(2);
  expect(kids(bundle.toString())).toContain(old[0]?.publicKey.thumbprint);
  await waitUntil(async () => {
    const statement = await world.read((tx) => tx.distribution.freshness(SITE));
    return kids(statement?.document ?? '{"signatures":[]}').length === 2;
  });
  world.clock.ms += 24 * 3600 * 1000;
  await waitUntil(async () => {
    const rows = await world.read((tx) => tx.signingKeys.ofSite(SITE));
    return rows.filter(({ state }) => state === 'retired').length === 2;
  });
});

it.each(['bundle', 'freshness'] as const)('a %s key that is ended signs nothing more', async (purpose) => {
  const { signingKeys, clock } = world;
  const { id: targetId } = await target();
  const [old] = await world.read((tx) => signingKeys.signers(tx, SITE, purpose, clock.ms));
  const kid = old?.publicKey.thumbprint;
  await world.change((tx) => signingKeys.rotate(tx, SITE, purpose, { nowMs: clock.ms }));
  const published = async () => {
    const { baseRevision } = await world.site();
    const bundle = await control.distribution.file(requestOf(targetId), baseRevision, 'bundle.jws');
    const statement = await world.read((tx) => tx.distribution.freshness(SITE));
    return {
      baseRevision,
      kids: kids(purpose === 'bundle' ? bundle.toString() : (statement?.document ?? '')),
    };
  };
  const isSignedBy = async (signers: number, aboveRevision: number) => {
    const found = await published();
    return found.baseRevision > aboveRevision && found.kids.length === signers;
  };
  await waitUntil(() => isSignedBy(2, 1));
  const before = await published();
  expect(before.kids).toContain(kid);

  const views = await world.read((tx) => signingKeys.ofSite(tx, SITE));
  const id = views.find(({ thumbprint }) => thumbprint === kid)?.id ?? '';
  await world.change((tx) => signingKeys.retire(tx, SITE, id, { nowMs: clock.ms, retiringMs: 0 }));
  await waitUntil(() => isSignedBy(1, before.baseRevision));
  expect((await published()).kids).not.toContain(kid);
});

/** Key IDs of the signatures on a document. */
function kids(document: string): readonly string[] {
  const { signatures } = JSON.parse(document) as { signatures: { protected: string }[] };
  return signatures.map((signature) => {
    const header = JSON.parse(Buffer.from(signature.protected, 'base64url').toString()) as { kid: string };
    return header.kid;
  });
}

async function target(): Promise<TestTarget> {
  const [found] = await addTargets(world, 1);
  if (found === undefined) throw new Error('no target');
  return found;
}

interface Position {
  readonly revision: number;
  readonly head: string;
}

async function pollOnce(
  agent: Agent,
  { token }: TestTarget,
  at: Position | undefined,
  etag: string | undefined,
): Promise<{ readonly answer: Position | undefined; readonly etag: string | undefined }> {
  const query =
    at === undefined ? '' : `?revision=${at.revision}&head=${at.head}&base_revision=1&wait_seconds=30`;
  const { statusCode, headers, body } = await request(`${control.url}${POLL_PATH}${query}`, {
    dispatcher: agent,
    headers: { authorization: `Bearer ${token}`, ...(etag === undefined ? {} : { 'if-none-match': etag }) },
  });
  const given = typeof headers.etag === 'string' ? headers.etag : undefined;
  if (statusCode === 304) {
    await body.dump();
    return { answer: undefined, etag };
  }
  const json: unknown = await body.json();
  if (statusCode !== 200 || !isJsonObject(json)) throw new Error(`answered ${statusCode}`);
  return { answer: { revision: Number(json.revision), head: String(json.head) }, etag: given };
}

async function acknowledge(agent: Agent, { token }: TestTarget, at: Position): Promise<void> {
  const { statusCode, body } = await request(`${control.url}${ACK_PATH}`, {
    method: 'POST',
    dispatcher: agent,
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ ...at, outcome: 'accepted' }),
  });
  await body.dump();
  expect(statusCode).toBe(204);
}

const LOST_CONNECTION: readonly unknown[] = [
  'ECONNRESET',
  'EPIPE',
  'UND_ERR_CONNECT_TIMEOUT',
  'UND_ERR_SOCKET',
];

/** Connects again, as a verifier does: the kernel queues fewer connections than come here at once, and resets the others. */
async function connected<T>(send: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await send();
    } catch (error) {
      if (!LOST_CONNECTION.includes((error as NodeJS.ErrnoException).code)) throw error;
      await delay(200 + 1_000 * Math.random());
    }
  }
}

it('a hundred targets that wait all get a change, and all of them are counted', async () => {
  const targets = await addTargets(world, 100);
  const agent = new Agent({ connections: 120 });
  let revision = Number.POSITIVE_INFINITY;
  let attached = 0;
  const follow = async (one: TestTarget) => {
    let at: Position | undefined;
    let etag: string | undefined;
    while ((at?.revision ?? 0) < revision) {
      const result = await connected(() => pollOnce(agent, one, at, etag));
      const { answer } = result;
      if (answer !== undefined && answer.revision !== at?.revision) {
        if (at === undefined) attached++;
        at = answer;
        await connected(() => acknowledge(agent, one, answer));
      }
      etag = result.etag;
    }
    return at?.revision;
  };
  const followed: Promise<number | undefined>[] = [];
  // Few connect at once, so that a busy machine answers them before they time out.
  for (const [index, one] of targets.entries()) {
    followed.push(follow(one));
    if (index % 50 === 49) await Promise.race([waitUntil(() => attached > index), Promise.all(followed)]);
  }
  const all = Promise.all(followed);
  const areAttached = async () =>
    (await world.read((tx) => tx.propagation.heldByAll(SITE, 0))).revision === 1;
  await Promise.race([waitUntil(areAttached), all]);
  const key = await world.addKey('billing');
  revision = 2;
  const ends = await all;
  expect(ends.every((end) => end === 2)).toBe(true);
  const held = await world.read((tx) => tx.propagation.heldByAll(SITE, 0));
  expect(held).toEqual({ attached: 100, revision: 2, least: 2 });
  expect((await world.read((tx) => tx.keys.find(key)))?.listedEverywhereAtMs).not.toBeNull();
  expect(control.faults).toEqual([]);
  await agent.destroy();
});
