/** Opens a verifier from typed options, as a program without a command line does. */
import { mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from '@jest/globals';
import { isDirectoryLocked } from '../../../src/process/files/directory-lock.ts';
import { renderMetrics } from '../../../src/process/telemetry/instruments.ts';
import { createLogger } from '../../../src/process/telemetry/logger.ts';
import { formatTime } from '../../../src/protocol/rfc3339.ts';
import { AuditFileError } from '../../../src/verifier/assembly/open-audit.ts';
import type { PrimaryLink } from '../../../src/verifier/assembly/open-bundle.ts';
import { openVerifier, type VerifierSetup } from '../../../src/verifier/assembly/open-verifier.ts';
import { LATCH_FILE } from '../../../src/verifier/observation/latch-file.ts';
import { newDirectory, putBundle } from '../../support/bundle/bundle-directory.ts';
import { startFakeControl } from '../../support/fakes/control-distribution.ts';
import { AUTH_SITE, bundleContent, newTestKeys } from '../../support/fixtures/bundle-content.ts';
import { wallClockSeconds } from '../../support/fixtures/enrolled-site.ts';
import { signRequest } from '../../support/fixtures/signed-request.ts';
import { newSiteKeys } from '../../support/fixtures/snapshot.ts';
import { waitUntil } from '../../support/wait.ts';

const keys = newTestKeys();
const signers = { keys: [keys.bundle.publicKey], threshold: 1 };

const currentContent = (singleVerifier: boolean) => ({
  ...bundleContent(keys),
  single_verifier: singleVerifier,
  issued_at: formatTime(wallClockSeconds()),
  expires_at: formatTime(wallClockSeconds() + 3600),
});

async function newSetup() {
  const [directory, stateDirectory] = [await newDirectory(), await newDirectory()];
  const setup: VerifierSetup = {
    authSite: AUTH_SITE,
    stateDirectory,
    isWorker: false,
    directory,
    control: undefined,
    bundleSigners: signers,
    freshnessSigners: signers,
    breakGlass: undefined,
    replay: { kind: 'memory' },
    audit: {
      mode: 'required',
      file: join(stateDirectory, 'trail', 'audit.jsonl'),
      collector: undefined,
      maxQueueBytes: 65_536,
    },
    holderQuotaPerMinute: 1000,
    subjectQuotaPerMinute: 1000,
    realtimeStalenessSeconds: 10,
    externalOrigin: undefined,
    capture: undefined,
    maxInFlight: 10,
    allowedObservations: { routes: new Map(), unmatchedUntil: undefined },
  };
  const open = (more: Partial<VerifierSetup> = {}, primary?: PrimaryLink) =>
    openVerifier({
      ...{ setup: { ...setup, ...more }, primary },
      ...{ logger: createLogger('silent'), onInternalError: () => undefined },
    });
  const put = (revision: number, singleVerifier: boolean) =>
    putBundle(directory, { ...currentContent(singleVerifier), revision }, keys.bundle);
  return { setup, open, put };
}

it('with a replay store in memory loads only bundles for a single verifier, at start and later', async () => {
  const { open, put, setup } = await newSetup();
  await mkdir(join(setup.stateDirectory, 'trail'));
  await put(1, false);
  const { close, metrics, status, verifier } = await open();
  const refusal = () => status().bundle.problem?.error.code;
  const revision = () => status().bundle.snapshot?.revision;
  const { facts } = signRequest(newSiteKeys(), { caller: 'billing', route: 'orders-read' });
  expect([refusal(), revision()]).toEqual(['refused_by_policy', undefined]);
  expect(verifier.check(facts)).toMatchObject({ denial: { reason: 'bundle_policy_missing' } });
  await put(2, true);
  await waitUntil(() => revision() === 2);
  expect([refusal(), status().audit.recorder]).toEqual([undefined, undefined]);
  expect(verifier.check(facts)).toMatchObject({ kind: 'denied' });
  await put(3, false);
  await waitUntil(() => refusal() === 'refused_by_policy');
  expect(await renderMetrics(metrics.registry)).toMatch(/^proofgate_bundle_revision 2$/m);
  await close();
  const events = (await readFile(setup.audit.file ?? '', 'utf8')).split('\n').filter(Boolean);
  expect(events.map((line) => JSON.parse(line).outcome)).toEqual(['denied', 'denied']);
});

it('captures denied requests, and writes what is queued when it closes', async () => {
  const { put, setup } = await newSetup();
  const directory = await newDirectory();
  await mkdir(join(setup.stateDirectory, 'trail'));
  await put(1, true);
  const { close, metrics, verifier } = await openVerifier({
    setup: { ...setup, capture: { directory, keepsCredentials: false } },
    logger: createLogger('silent'),
    onInternalError: () => undefined,
  });
  const { facts } = signRequest(newSiteKeys(), { caller: 'billing', route: 'orders-read' });
  const decision = await verifier.check(facts);
  await close();
  expect(await readdir(directory)).toEqual([`${decision.decisionId}.json`]);
  const text = await renderMetrics(metrics.registry);
  expect(text).toMatch(/^proofgate_denied_captures_total\{outcome="written"\} 1$/m);
});

it('a second one on the state directory fails before it writes anything, and leaves the first alone', async () => {
  const { open, put, setup } = await newSetup();
  await mkdir(join(setup.stateDirectory, 'trail'));
  await put(1, true);
  const until = wallClockSeconds() + 3600;
  const latch = { name: 'unmatched', allowed_until: until, until, closed: false };
  const latches = JSON.stringify({
    format: 'proofgate.observations/v1',
    auth_site: AUTH_SITE,
    latches: [latch],
  });
  const first = await openVerifier({
    setup: { ...setup, allowedObservations: { routes: new Map(), unmatchedUntil: until } },
    logger: createLogger('silent'),
    onInternalError: () => undefined,
  });
  await writeFile(join(setup.stateDirectory, LATCH_FILE), latches);
  await expect(open()).rejects.toMatchObject({ code: 'state_dir_in_use' });
  expect(await readFile(join(setup.stateDirectory, LATCH_FILE), 'utf8')).toBe(latches);
  expect(await isDirectoryLocked(setup.stateDirectory)).toBe(true);
  await first.close();
  const second = await open();
  await second.close();
});

it('holds its state directory until it is closed, and then serves the next one', async () => {
  const { open, put, setup } = await newSetup();
  await mkdir(join(setup.stateDirectory, 'trail'));
  await put(1, true);
  for (let times = 0; times < 2; times++) {
    const { close, status } = await open();
    expect([await isDirectoryLocked(setup.stateDirectory), status().bundle.snapshot?.revision]).toEqual([
      true,
      1,
    ]);
    await close();
    expect(await isDirectoryLocked(setup.stateDirectory)).toBe(false);
  }
});

it('writes to a new audit file after a rotation and `reopenAudit`', async () => {
  const { open, put, setup } = await newSetup();
  const file = setup.audit.file ?? '';
  await mkdir(join(setup.stateDirectory, 'trail'));
  await put(1, true);
  const { close, reopenAudit, verifier } = await open();
  const { facts } = signRequest(newSiteKeys(), { caller: 'billing', route: 'orders-read' });
  await rename(file, `${file}.1`);
  reopenAudit();
  await verifier.check(facts);
  await close();
  expect([await readFile(`${file}.1`, 'utf8'), (await readFile(file, 'utf8')).split('\n').length]).toEqual([
    '',
    2,
  ]);
});

it('follows Control, whose bundles a worker takes from the state directory, and reports what both counted', async () => {
  const control = await startFakeControl({
    authSite: AUTH_SITE,
    signer: keys.bundle,
    nowSeconds: wallClockSeconds,
  });
  const { open, setup } = await newSetup();
  await mkdir(join(setup.stateDirectory, 'trail'));
  const { revision: _, ...content } = currentContent(true);
  control.publishWhole(content);
  const options = {
    directory: undefined,
    control: { url: new URL(control.url), readToken: async () => 'target-token' },
  };
  const primary = await open(options);
  await waitUntil(() => control.acknowledgements.some(({ outcome }) => outcome === 'accepted'));
  expect(primary.status().refresh).toMatchObject({ problem: undefined, late: undefined });
  const [handed, loaded]: [string[], number[]] = [[], []];
  const worker = await open(
    { ...options, isWorker: true },
    {
      handOver: (report) => handed.push(report.kind),
      loaded: (position) => loaded.push(position.revision),
    },
  );
  expect(worker.status()).toMatchObject({ bundle: { snapshot: { revision: 1 } }, refresh: undefined });
  control.publishDelta({ issued_at: formatTime(wallClockSeconds()) });
  await waitUntil(() => worker.status().bundle.snapshot?.revision === 2);
  const { facts } = signRequest(newSiteKeys(), { caller: 'billing', route: 'orders-read' });
  await worker.verifier.check(facts);
  await worker.close();
  expect({ handed, loaded }).toEqual({ handed: ['counted'], loaded: [1, 2] });
  // The primary's own position, and at the end that it decides no more.
  const before = control.acknowledgements.length;
  await primary.close();
  expect(control.acknowledgements).toHaveLength(before + 1);
  expect(await isDirectoryLocked(setup.stateDirectory)).toBe(false);
  await control.close();
});

it('opens nothing when the URL of Redis is invalid, and releases what it had', async () => {
  const { open, put, setup } = await newSetup();
  await mkdir(join(setup.stateDirectory, 'trail'));
  await put(1, true);
  const replay = { kind: 'redis', url: 'ftp://x' } as const;
  await expect(open({ replay })).rejects.toThrow();
  expect(await isDirectoryLocked(setup.stateDirectory)).toBe(false);
});

it('opens nothing when its audit file cannot be opened', async () => {
  const { open, put, setup } = await newSetup();
  await put(1, true);
  await rm(join(setup.stateDirectory, 'trail'), { recursive: true, force: true });
  await expect(open()).rejects.toThrow(AuditFileError);
  expect(await isDirectoryLocked(setup.stateDirectory)).toBe(false);
});

it('loads a bundle with dpop_nonce only with a shared key, or where it is alone', async () => {
  const { open, setup } = await newSetup();
  await mkdir(join(setup.stateDirectory, 'trail'));
  const [first, ...others] = currentContent(true).routes;
  const dpop = { accepted_proofs: ['dpop'], unbound: ['route', 'site'], dpop_nonce: 'required' } as const;
  const routes = first === undefined ? [] : [{ ...first, ...dpop }, ...others];
  await putBundle(setup.directory ?? '', { ...currentContent(true), routes, revision: 1 }, keys.bundle);
  const refusals = [];
  for (const dpopNonces of ['none', 'any', undefined] as const) {
    const { close, status } = await open(dpopNonces === undefined ? {} : { dpopNonces });
    refusals.push(status().bundle.problem?.error.code);
    await close();
  }
  expect(refusals).toEqual(['refused_by_policy', undefined, undefined]);
});
