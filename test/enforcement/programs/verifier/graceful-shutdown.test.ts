/** Tests when a verifier opens and closes its ext_authz server, depending on its events. Runs inside the test process. */
import { EventEmitter } from 'node:events';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { constants, type PerformanceEntry, PerformanceObserver, performance } from 'node:perf_hooks';
import { afterAll, beforeAll, beforeEach, expect, it } from '@jest/globals';
import type { ProcessRole } from '../../../../src/enforcement/programs/enforcement-process.ts';
import { runVerifier } from '../../../../src/enforcement/programs/verifier/verifier-process.ts';
import {
  VERIFIER_SETTINGS,
  type VerifierSettings,
} from '../../../../src/enforcement/programs/verifier/verifier-settings.ts';
import { WorkerChannel } from '../../../../src/enforcement/programs/verifier/workers/worker-process.ts';
import { openAdminListener } from '../../../../src/process/admin/admin-server.ts';
import { type Shutdown, shutdownBySignal } from '../../../../src/process/program/graceful-shutdown.ts';
import { Output } from '../../../../src/process/program/output.ts';
import { collectTexts, settingValues } from '../../../../src/process/settings/setting-sources.ts';
import { runInProcess } from '../../../support/cli/in-process.ts';
import { AUTH_SITE } from '../../../support/fixtures/bundle-content.ts';

const HOUR_MS = 3_600_000;
/** Node 20 gives nothing back, and is left alone. */
const givesBack = Number.parseInt(process.versions.node, 10) >= 22;
const context = { env: {}, output: new Output(process.stdout, process.stderr, {}), version: '0.0.0' };

let folder = '';
let settings: VerifierSettings;
/** Events in order. */
let events: string[];
let openedMs = 0;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'proofgate-shutdown-'));
  const at = (name: string) => join(folder, name);
  await mkdir(at('state'));
  await runInProcess(['keygen', '--out', at('key.pem'), '--public-out', at('key.jwk.json')]);
  const flags = new Map([
    ['auth-site', [AUTH_SITE]],
    ['bundle', [at('nothing-yet')]],
    ['bundle-key', [at('key.jwk.json')]],
    ['state-dir', [at('state')]],
    ['replay', ['memory']],
    ['audit-file', [at('audit.jsonl')]],
    ['listen', [`unix:${at('socket')}`]],
    ['admin-listen', ['127.0.0.1:0']],
    ['log-level', ['silent']],
  ]);
  const texts = await collectTexts(Object.values(VERIFIER_SETTINGS), { flags, env: {} });
  settings = settingValues(VERIFIER_SETTINGS, texts);
});
afterAll(() => rm(folder, { recursive: true, force: true }));

beforeEach(() => {
  events = [];
});

/** Times of the full garbage collections, in milliseconds. */
async function collectionsWithin(run: () => Promise<void>): Promise<readonly number[]> {
  const entries: PerformanceEntry[] = [];
  const observer = new PerformanceObserver((list) => void entries.push(...list.getEntries()));
  observer.observe({ entryTypes: ['gc'] });
  await run();
  entries.push(...observer.takeRecords());
  observer.disconnect();
  return entries.filter(isWhole).map(({ startTime }) => startTime);
}

/** Node 20 says which ones were asked for. Of the kind that gives memory back Node 22 says nothing, and of its own ones why they were due. */
function isWhole(entry: PerformanceEntry): boolean {
  const { detail } = entry as { detail?: { flags: number; kind: number } };
  const flags = givesBack
    ? constants.NODE_PERFORMANCE_GC_FLAGS_NO
    : constants.NODE_PERFORMANCE_GC_FLAGS_FORCED;
  return detail?.kind === constants.NODE_PERFORMANCE_GC_MAJOR && detail.flags === flags;
}

interface Moments {
  readonly atStart?: () => void;
  readonly onceOpen?: () => void;
}

/** A real verifier whose shutdown the test controls. */
function roleWith(shutdown: Shutdown, { atStart, onceOpen }: Moments): ProcessRole {
  return {
    worker: undefined,
    runUntilShutdown: async (_, run) => {
      const ended = run(shutdown);
      // The verifier is opening its parts.
      atStart?.();
      await ended;
    },
    openAdmin: async (options) => {
      openedMs = performance.now();
      events.push('listeners opened');
      return openAdminListener(options);
    },
    logStart: () => {
      events.push('logged');
      onceOpen?.();
    },
  };
}

/** A worker's end of the channel, and the messages at the other end. */
function openChannel() {
  const end = Object.assign(new EventEmitter(), { connected: true, send: () => true });
  const send = (kind: 'leave' | 'close') => void end.emit('message', { kind });
  return { shutdown: new WorkerChannel(end).shutdown, send };
}

it('asked to end while it starts, it opens nothing, and does not wait', async () => {
  const stop = new AbortController();
  const shutdown = shutdownBySignal(stop.signal, HOUR_MS);
  await runVerifier(settings, context, roleWith(shutdown, { atStart: () => stop.abort() }));
  expect(events).toEqual([]);
});

it('collects for the start alone, before anybody can ask, where that gives memory back', async () => {
  const stop = new AbortController();
  const role = roleWith(shutdownBySignal(stop.signal, 0), { onceOpen: () => stop.abort() });
  const collections = await collectionsWithin(() => runVerifier(settings, context, role));
  expect(events).toEqual(['listeners opened', 'logged']);
  expect(collections.length > 0).toBe(givesBack);
  expect(collections.filter((atMs) => atMs >= openedMs)).toEqual([]);
});

it('a worker that is asked to close does so without a delay, whatever the settings say', async () => {
  const patient = { ...settings, drainDelayMs: HOUR_MS };
  const { shutdown, send } = openChannel();
  await runVerifier(patient, context, roleWith(shutdown, { onceOpen: () => send('close') }));
  expect(events).toEqual(['listeners opened', 'logged']);
});

it('a worker that is asked to close while it starts opens nothing', async () => {
  const { shutdown, send } = openChannel();
  await runVerifier(settings, context, roleWith(shutdown, { atStart: () => send('close') }));
  expect(events).toEqual([]);
});

it('a worker that is asked to leave while it starts stands in for another until it is asked to close', async () => {
  const { shutdown, send } = openChannel();
  const moments = { atStart: () => send('leave'), onceOpen: () => send('close') };
  await runVerifier(settings, context, roleWith(shutdown, moments));
  expect(events).toEqual(['listeners opened', 'logged']);
});

it('handles SIGHUP from the start until the process ends', async () => {
  const before = process.listenerCount('SIGHUP');
  const counts: number[] = [];
  const count = () => counts.push(process.listenerCount('SIGHUP') - before);
  const stop = new AbortController();
  const shutdown = shutdownBySignal(stop.signal, 0);
  await runVerifier(settings, context, roleWith(shutdown, { atStart: count, onceOpen: () => stop.abort() }));
  count();
  expect(counts).toEqual([1, 1]);
});
