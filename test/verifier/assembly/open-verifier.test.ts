/** Opens a verifier from typed options, as a program without a command line does. */
import { mkdir, readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from '@jest/globals';
import { isDirectoryLocked } from '../../../src/process/files/directory-lock.ts';
import { renderMetrics } from '../../../src/process/telemetry/instruments.ts';
import { createLogger } from '../../../src/process/telemetry/logger.ts';
import { formatTime } from '../../../src/protocol/rfc3339.ts';
import { AuditFileError } from '../../../src/verifier/assembly/open-audit.ts';
import { openVerifier, type VerifierSetup } from '../../../src/verifier/assembly/open-verifier.ts';
import { newDirectory, putBundle } from '../../support/bundle/bundle-directory.ts';
import { AUTH_SITE, bundleContent, newTestKeys } from '../../support/fixtures/bundle-content.ts';
import { wallClockSeconds } from '../../support/fixtures/enrolled-site.ts';
import { signRequest } from '../../support/fixtures/signed-request.ts';
import { newSiteKeys } from '../../support/fixtures/snapshot.ts';
import { waitUntil } from '../../support/wait.ts';

const keys = newTestKeys();
const signers = { keys: [keys.bundle.publicKey], threshold: 1 };

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
  const open = () =>
    openVerifier({ setup, logger: createLogger('silent'), onInternalError: () => undefined });
  const put = (revision: number, singleVerifier: boolean) =>
    putBundle(
      directory,
      {
        ...bundleContent(keys),
        revision,
        single_verifier: singleVerifier,
        issued_at: formatTime(wallClockSeconds()),
        expires_at: formatTime(wallClockSeconds() + 3600),
      },
      keys.bundle,
    );
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

it('opens nothing when its audit file cannot be opened', async () => {
  const { open, put, setup } = await newSetup();
  await put(1, true);
  await rm(join(setup.stateDirectory, 'trail'), { recursive: true, force: true });
  await expect(open()).rejects.toThrow(AuditFileError);
  expect(await isDirectoryLocked(setup.stateDirectory)).toBe(false);
});
