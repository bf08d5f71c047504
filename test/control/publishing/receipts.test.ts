/** Tests what a revocation receipt says of one revocation, and what it does not believe. */
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { verifyReceipt } from '../../../src/bundle/format/revocation-receipt.ts';
import { Distribution } from '../../../src/control/publishing/distribution.ts';
import { issueReceipt } from '../../../src/control/publishing/revocation-receipts.ts';
import { noteStatement } from '../../../src/control/publishing/signed-bounds.ts';
import { SitePublisher } from '../../../src/control/publishing/site-publisher.ts';
import { Instance } from '../../../src/verifier/loading/refresh/instance.ts';
import { addTarget, detach, type TestTarget } from './control-server.ts';
import { ControlWorld, ORDERS_READ, SITE } from './publishing-fixture.ts';

const never = new AbortController().signal;
const DAY_SECONDS = 86_400;
/** Of the site. */
const SKEW_SECONDS = 5;
const STALENESS_SECONDS = ORDERS_READ.max_staleness_seconds ?? 0;

let world: ControlWorld;
let target: TestTarget;
let keyId: string;
beforeEach(async () => {
  world = await ControlWorld.open();
  target = await addTarget(world);
  await world.putClient('billing', { orders: 'read' });
  await world.putRoute(ORDERS_READ);
  keyId = await world.addKey('billing', 100 * DAY_SECONDS);
  await publish();
});
afterEach(() => world.close());

async function publish(): Promise<void> {
  const { clock, signingKeys, store } = world;
  const publisher = new SitePublisher(SITE, { store, signingKeys, nowMs: clock.nowMs });
  for (;;) {
    const outcome = await publisher.publishChanges();
    if (outcome === 'done') return;
    if (outcome === 'whole_needed') await publisher.publishWhole();
  }
}

/** A verifier polls and, unless it is an old one, signs its acknowledgement. */
async function follow(hasBreakGlass: boolean | 'old'): Promise<void> {
  const distribution = new Distribution({ store: world.store, nowMs: world.clock.nowMs });
  const verifier = new Instance({
    ...{ version: '0.4.0', authSite: SITE, realtimeStalenessSeconds: 10, readStoreId: undefined },
    hasBreakGlass: hasBreakGlass === true,
  });
  const { head, revision } = await world.site();
  const acknowledgement = { revision, head: head ?? '', outcome: 'accepted' as const };
  const signature = verifier.sign(acknowledgement, target.token);
  const headers = hasBreakGlass === 'old' ? {} : { instance: verifier.text(), signature };
  const reporting = await distribution.authenticate(`Bearer ${target.token}`, headers);
  await distribution.poll(reporting, {}, undefined, never);
  await distribution.acknowledge(reporting, acknowledgement);
  await distribution.close();
}

async function receipt() {
  const { clock, signingKeys: keyring, store } = world;
  const view = await issueReceipt(keyId, { store, keyring, nowMs: clock.nowMs });
  const signers = await world.read((tx) => keyring.signers(tx, SITE, 'receipt', clock.ms));
  const verified = verifyReceipt(
    view.receipt,
    signers.map(({ publicKey }) => publicKey),
  );
  if (verified.kind === 'invalid') throw new Error(verified.fault);
  expect(verified.receipt.state).toBe(view.state);
  return verified.receipt;
}

/** From the revocation to the end of use, seconds; and that it becomes effective then and no second earlier. */
async function secondsToEnd(): Promise<number> {
  const { no_use_from: end = Number.NaN } = await receipt();
  const from = world.clock.seconds;
  world.clock.ms = end * 1000 - 1;
  expect((await receipt()).state).toBe('pending');
  world.clock.ms = end * 1000;
  expect((await receipt()).state).toBe('effective');
  return end - from;
}

it('is pending until the last possible freshness ended, although every target has the revocation', async () => {
  await follow(false);
  await world.revokeKey(keyId);
  await publish();
  expect(await receipt()).toMatchObject({ state: 'pending', targets: [{ has_revision: false }] });
  expect((await receipt()).waiting_for).toHaveLength(1);
  await follow(false);
  expect(await secondsToEnd()).toBe(STALENESS_SECONDS + SKEW_SECONDS + 1);
});

it.each([
  ['has a break-glass key', true],
  ['says nothing of itself', 'old'],
] as const)('counts expires_at alone when a verifier %s', async (_, kind) => {
  await follow(kind);
  await world.revokeKey(keyId);
  await publish();
  expect(await secondsToEnd()).toBe(30 * DAY_SECONDS + 2 * SKEW_SECONDS + 1);
});

it('counts a detached target', async () => {
  await follow('old');
  await world.revokeKey(keyId);
  await publish();
  await detach(world, target.id);
  expect(await receipt()).toMatchObject({ state: 'pending', targets: [{ state: 'detached' }] });
  expect(await secondsToEnd()).toBe(30 * DAY_SECONDS + 2 * SKEW_SECONDS + 1);
});

it('knows only the end of the key before the revocation is published', async () => {
  await world.revokeKey(keyId);
  const pending = await receipt();
  expect(pending).toMatchObject({ state: 'pending' });
  expect([pending.no_use_from, pending.revision, pending.bound]).toEqual([undefined, undefined, undefined]);
  world.clock.ms = (pending.key_expires_at + 61) * 1000;
  expect((await receipt()).state).toBe('effective');
});

it('believes that another version of Control signed bundles of a year', async () => {
  await world.change((tx) => tx.signedBounds.put({ ...BEFORE, siteId: SITE }));
  await world.revokeKey(keyId);
  await publish();
  const { bound, key_expires_at, no_use_from } = await receipt();
  expect((bound?.expires_until ?? 0) - world.clock.seconds).toBeGreaterThanOrEqual(366 * DAY_SECONDS);
  expect(no_use_from).toBe(key_expires_at + 61);
});

it('comes with a key of its own, which a site of before gets with its first one', async () => {
  const { clock, signingKeys } = world;
  await world.change(async (tx) => {
    const rows = await tx.signingKeys.ofSite(SITE);
    for (const { id, purpose } of rows) {
      if (purpose === 'receipt') await tx.signingKeys.change(id, { state: 'retired', sealedPrivateKey: '' });
    }
  });
  await world.revokeKey(keyId);
  await receipt();
  await receipt();
  const keys = await world.read((tx) => signingKeys.ofSite(tx, SITE));
  expect(keys.filter(({ purpose, state }) => purpose === 'receipt' && state === 'active')).toHaveLength(1);
  expect(clock.ms).toBeGreaterThan(0);
});

it('is refused for a key that is not revoked', async () => {
  await expect(receipt()).rejects.toMatchObject({ code: 'key_not_revoked' });
});

it('is not undermined by a statement for a head that was replaced meanwhile', async () => {
  const { revision } = await world.site();
  await world.revokeKey(keyId);
  await publish();
  const asOfSeconds = world.clock.seconds + 100;
  const note = (at: number) => world.change((tx) => noteStatement(tx, SITE, { revision: at, asOfSeconds }));
  expect([await note(revision), await note(revision + 1)]).toEqual([false, true]);
});

/** The row of a site before anything was recorded. */
const BEFORE = {
  ...{ revision: 0, lifetimeSeconds: 0, boundedSeconds: 0, realtimeSeconds: 0, freshSeconds: 0 },
  ...{ expiresEndSeconds: 0, boundedEndSeconds: 0, realtimeEndSeconds: 0, skewSeconds: 0 },
  ...{ longestRealtimeSeconds: 0, unlimitedSeenSeconds: 0 },
};
