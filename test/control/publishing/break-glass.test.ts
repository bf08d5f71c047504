/**
 * Control and its database away for an hour of the verifier's clock: every route closes, with a break-glass statement verified requests
 * pass, and after Control's return a revocation takes effect as always.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import type { RouteContent } from '../../../src/bundle/format/schema.ts';
import { openSqliteStore } from '../../../src/control/store/sqlite.ts';
import { readPublicKeyFile } from '../../../src/process/files/public-key-file.ts';
import { BreakGlassFile } from '../../../src/verifier/loading/break-glass-file.ts';
import { runInProcess } from '../../support/cli/in-process.ts';
import { signRequest } from '../../support/fixtures/signed-request.ts';
import { KEY_ID, newSiteKeys } from '../../support/fixtures/snapshot.ts';
import { checkNow, createTestVerifier, outcomeOf } from '../../support/fixtures/test-verifier.ts';
import { waitUntil } from '../../support/wait.ts';
import { addTarget, type ControlServer, startControl } from './control-server.ts';
import { ControlWorld, ORDERS_READ, ORIGIN, SITE } from './publishing-fixture.ts';
import { startRealTarget } from './real-target.ts';

const STALE = 'stale_bundle_fail_closed/stale 503';
const HOUR_SECONDS = 3600;
/** Its requests are those of the fixture's site. */
const PRICES: RouteContent = {
  route_id: 'prices',
  method: 'GET',
  path_template: '/v1/prices',
  audience: ORIGIN,
  freshness_class: 'realtime',
  resource: 'catalog',
};

let world: ControlWorld;
let control: ControlServer;
const closing: (() => Promise<unknown> | unknown)[] = [];
beforeEach(async () => {
  world = await ControlWorld.open();
  // The command signs by the clock of this machine.
  world.clock.ms = Date.now();
  control = await startControl(world);
});
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
  await control.close();
  await world.close();
});

const siteKeys = newSiteKeys();

/** A client with a key that signs requests for a realtime and a bounded route. */
async function declareSite(): Promise<void> {
  await world.putClient('billing', { catalog: 'read', orders: 'read' });
  await world.putRoute(PRICES);
  await world.putRoute(ORDERS_READ);
  const row = { ...world.keyRow('billing', siteKeys.billing.publicKey, 86_400), keyId: KEY_ID.billing };
  await world.change(async (tx) => {
    await tx.keys.add(row);
    await tx.changes.record(SITE, { kind: 'key', keyId: row.keyId }, world.clock.ms);
  });
}

async function startVerifier() {
  const target = await startRealTarget({ world, control, target: await addTarget(world) });
  closing.push(target.remove);
  const { clock } = world;
  const tested = createTestVerifier({
    currentSnapshot: () => target.loader.snapshot,
    nowSeconds: clock.seconds,
    nowMs: clock.nowMs,
  });
  const answer = (route: 'prices' | 'orders-read') => {
    const plan = { caller: 'billing', route, nowSeconds: clock.seconds } as const;
    // A derived key's provenance and context come from Control.
    const claims = (draft: { provenance?: unknown; context?: unknown }) => {
      delete draft.provenance;
      delete draft.context;
    };
    return outcomeOf(checkNow(tested.verifier, signRequest(siteKeys, plan, { claims }).facts));
  };
  const both = () => [answer('prices'), answer('orders-read')];
  return { ...target, ...tested, answer, both };
}

it('an hour without Control and its database', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'proofgate-break-glass-'));
  closing.push(() => rm(folder, { recursive: true }));
  const at = (name: string) => join(folder, name);
  await runInProcess(['keygen', '--out', at('offline.pem'), '--public-out', at('offline.jwk.json')]);
  await declareSite();
  const [verifier, without] = [await startVerifier(), await startVerifier()];
  const listener = { accepted: () => undefined, refused: () => undefined, removed: () => undefined };
  const keys = [await readPublicKeyFile(at('offline.jwk.json'))];
  const options = { authSite: SITE, file: at('break-glass.jws'), signers: { keys, threshold: 1 } };
  const breakGlass = new BreakGlassFile(options, verifier.loader, listener);
  closing.push(() => breakGlass.close());
  const allOpen = ({ both }: typeof verifier) => both().every((outcome) => outcome === 'allowed');
  await waitUntil(() => allOpen(verifier) && allOpen(without));

  const awaySinceMs = world.clock.ms;
  await control.close();
  await world.store.close();
  world.clock.ms += 1200_000;
  expect([verifier.both(), without.both()]).toEqual([
    [STALE, STALE],
    [STALE, STALE],
  ]);
  const signed = await runInProcess([
    ...['bundle', 'break-glass', '--auth-site', SITE, '--key', at('offline.pem'), '--for', '3h'],
    ...['--state-dir', verifier.directory, '--state-dir', without.directory, '--out', at('break-glass.jws')],
  ]);
  expect(signed).toMatchObject({ exitCode: 0, stderr: '' });
  await waitUntil(() => breakGlass.status().statement !== undefined);
  for (; world.clock.ms - awaySinceMs <= HOUR_SECONDS * 1000; world.clock.ms += 300_000) {
    expect([verifier.both(), without.both()]).toEqual([
      ['allowed', 'allowed'],
      [STALE, STALE],
    ]);
  }
  expect(verifier.events.at(-1)?.break_glass).toBe(true);

  world.store = await openSqliteStore({ dataDirectory: world.directory, nowMs: world.clock.nowMs });
  control = await startControl(world, control.port);
  await waitUntil(() => allOpen(verifier) && allOpen(without));
  verifier.answer('prices');
  await waitUntil(
    () => verifier.answer('prices') === 'allowed' && verifier.events.at(-1)?.break_glass === undefined,
  );
  await world.revokeKey(KEY_ID.billing);
  const revoked = 'invalid_request_proof/key_revoked 401';
  await waitUntil(() => verifier.answer('prices') === revoked && without.answer('prices') === revoked);
  // The statement is still there, and of an earlier revision.
  expect(breakGlass.status().statement).toBeDefined();
  world.clock.ms += 60_000;
  expect(breakGlass.status().statement?.untilSeconds).toBeGreaterThan(world.clock.seconds);
  await control.close();
  control = await startControl(world, control.port);
  expect([...verifier.internalErrors, ...without.internalErrors]).toEqual([]);
});
