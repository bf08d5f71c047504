/** Tests the parts of a primary and its workers that need no processes. */
import cluster from 'node:cluster';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import {
  mergeChecks,
  mergeMetrics,
  relayLines,
} from '../../../../src/enforcement/programs/verifier/workers/merged-reports.ts';
import {
  parsePrimaryMessage,
  parseWorkerMessage,
} from '../../../../src/enforcement/programs/verifier/workers/worker-messages.ts';
import { WorkerPool } from '../../../../src/enforcement/programs/verifier/workers/worker-pool.ts';
import { createLogger } from '../../../../src/process/telemetry/logger.ts';
import { FileMark, MARK_FILE } from '../../../../src/verifier/loading/state/high-water-mark.ts';
import { PrimaryMark } from '../../../../src/verifier/loading/state/primary-mark.ts';
import { createVerifierMetrics } from '../../../../src/verifier/verifier-metrics.ts';
import { waitUntil } from '../../../support/wait.ts';

it.each([
  ['the system refuses the process, as without memory or process IDs', '/nonexistent'],
  ['the attempt throws', 'a\0'],
])('a worker that cannot be started counts as ended, and is tried again: %s', async (_, cwd) => {
  const told: string[] = [];
  cluster.setupPrimary({ cwd });
  const pool = new WorkerPool({
    size: 1,
    logger: createLogger('silent'),
    stdout: undefined,
    onRestart: () => told.push('restart'),
    onReport: undefined,
    positions: {
      started: () => told.push('started'),
      loaded: () => undefined,
      ended: () => told.push('ended'),
    },
  });
  void pool.start();
  await waitUntil(() => told.length >= 5);
  await pool.stop(0);
  expect(told.slice(0, 5)).toEqual(['started', 'ended', 'restart', 'started', 'ended']);
  expect(pool.check().problem).toMatch(/^1 of 1 workers do not run/);
});

describe('metrics of several processes', () => {
  it('stand together by name, each with its label', () => {
    const first =
      '# HELP a About a\n# TYPE a counter\na{worker="1"} 1\n# HELP b About b\n# TYPE b gauge\nb{worker="1"} 7\n';
    const second =
      '# HELP b About b\n# TYPE b gauge\nb{worker="2"} 8\n# HELP a About a\n# TYPE a counter\na{worker="2"} 2\n';
    expect(mergeMetrics([first, '', second])).toBe(
      '# HELP a About a\n# TYPE a counter\na{worker="1"} 1\na{worker="2"} 2\n' +
        '# HELP b About b\n# TYPE b gauge\nb{worker="1"} 7\nb{worker="2"} 8\n',
    );
    expect(mergeMetrics(['', ''])).toBe('');
  });

  it('lose no line of what a verifier has, histograms included', async () => {
    const texts = await Promise.all(
      ['1', '2'].map(async (worker) => {
        const metrics = createVerifierMetrics(() => ({
          revision: 4,
          ageSeconds: 1,
          isBreakGlass: false,
          staleRoutes: { bounded: 0, realtime: 0 },
        }));
        metrics.registry.setDefaultLabels({ worker });
        metrics.decided('allowed', '', '', 'orders');
        metrics.stepTook('pipeline', 0.0002);
        return metrics.registry.metrics();
      }),
    );
    const samples = (text: string) => text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
    const merged = mergeMetrics(texts);
    expect(samples(merged).toSorted()).toEqual(texts.flatMap(samples).toSorted());
    expect(merged).toContain('proofgate_step_duration_seconds_count{step="pipeline",worker="2"} 1');
    const types = [...merged.matchAll(/^# TYPE (\S+) /gm)].map(([, name]) => name);
    expect(new Set(types).size).toBe(types.length);
  });
});

it('lines of several never mix, and one without an end is ended', async () => {
  const [first, second, out] = [new PassThrough(), new PassThrough(), new PassThrough()];
  relayLines(first, out);
  relayLines(second, out);
  first.write('{"a":');
  second.write('{"b":1}\n{"b":');
  first.write('1}\n');
  second.end('2}');
  first.end();
  await nextTurn();
  await nextTurn();
  expect(String(out.read()).split('\n').filter(Boolean).toSorted()).toEqual([
    '{"a":1}',
    '{"b":1}',
    '{"b":2}',
  ]);
});

it('while no one reads, workers are not read either', async () => {
  const from = new PassThrough({ highWaterMark: 1 });
  const out = new PassThrough({ highWaterMark: 1 });
  relayLines(from, out);
  from.write('{"a":1}\n');
  await nextTurn();
  expect(from.isPaused()).toBe(true);
  out.read();
  await nextTurn();
  await nextTurn();
  expect(from.isPaused()).toBe(false);
});

describe('the mark of a worker', () => {
  const head = (letter: string) => letter.repeat(42).concat('A');
  const authSite = 'shop-eu-1';
  let stateDirectory = '';
  beforeEach(async () => {
    stateDirectory = await mkdtemp(join(tmpdir(), 'pg-mark-'));
  });
  afterEach(() => rm(stateDirectory, { recursive: true, force: true }));

  it('is what the primary wrote last', async () => {
    const worker = new PrimaryMark({ stateDirectory, authSite });
    expect(await worker.position()).toBeUndefined();
    const primary = new FileMark({ stateDirectory, authSite });
    await primary.raise({ revision: 3, head: head('a') });
    expect(await worker.position()).toEqual({ revision: 3, head: head('a') });
    await primary.raise({ revision: 4, head: head('b') });
    expect(await worker.position()).toEqual({ revision: 4, head: head('b') });
  });

  it('waits until the primary has raised it, and never writes', async () => {
    const worker = new PrimaryMark({ stateDirectory, authSite });
    let isRaised = false;
    const raised = worker.raise({ revision: 5, head: head('c') }).then(() => {
      isRaised = true;
    });
    await nextTurn();
    expect(isRaised).toBe(false);
    expect(await new FileMark({ stateDirectory, authSite }).position()).toBeUndefined();
    await new FileMark({ stateDirectory, authSite }).raise({ revision: 5, head: head('c') });
    await raised;
  });

  it('takes no content that the primary has not, nor another of the same revision', async () => {
    await new FileMark({ stateDirectory, authSite }).raise({ revision: 5, head: head('c') });
    const worker = new PrimaryMark({ stateDirectory, authSite }, 50);
    await expect(worker.raise({ revision: 6, head: head('d') })).rejects.toMatchObject({
      code: 'mark_unavailable',
    });
    await expect(worker.raise({ revision: 5, head: head('e') })).rejects.toMatchObject({
      code: 'mark_unavailable',
    });
    await worker.raise({ revision: 4, head: head('f') });
  });

  it('that cannot be read refuses', async () => {
    await writeFile(join(stateDirectory, MARK_FILE), '{');
    const worker = new PrimaryMark({ stateDirectory, authSite }, 50);
    await expect(worker.position()).rejects.toMatchObject({ code: 'mark_corrupt' });
    await expect(worker.raise({ revision: 6, head: head('d') })).rejects.toMatchObject({
      code: 'mark_corrupt',
    });
  });
});

it('checks of several processes come to one list, and name whose problem it is', () => {
  const bundle = (revision: number) => ({ authSite: 'shop', revision, head: `h${revision}` });
  const merged = mergeChecks([
    {
      process: 'primary',
      checks: [{ name: 'bundle', problem: undefined, warning: 'refused', bundle: bundle(7) }],
    },
    {
      process: 'worker 1',
      checks: [
        { name: 'bundle', problem: undefined, bundle: bundle(8) },
        { name: 'audit', problem: undefined },
      ],
    },
    { process: 'worker 2', checks: undefined },
    {
      process: 'worker 3',
      checks: [
        { name: 'bundle', problem: 'none' },
        { name: 'audit', problem: 'full' },
        { name: 'freshness', problem: undefined, warning: 'stale', routes: ['prices'] },
      ],
    },
  ]);
  expect(merged).toEqual([
    { name: 'bundle', problem: 'worker 3: none', warning: 'primary: refused', bundle: bundle(8) },
    { name: 'audit', problem: 'worker 3: full', warning: undefined },
    { name: 'freshness', problem: undefined, warning: 'worker 3: stale', routes: ['prices'] },
  ]);
});

it('what is no message is not listened to', () => {
  const state = { kind: 'state', address: 'a', checks: [{ name: 'bundle', routes: ['prices'] }] };
  expect(parseWorkerMessage(state)).toEqual(state);
  const loaded = { name: 'bundle', bundle: { authSite: 'shop', revision: 7, head: 'h' } };
  expect(parseWorkerMessage({ ...state, checks: [loaded] })).toBeDefined();
  expect(parseWorkerMessage({ kind: 'metrics', id: 1, text: '' })).toEqual({
    kind: 'metrics',
    id: 1,
    text: '',
  });
  for (const value of [
    null,
    'x',
    { kind: 'state' },
    { ...state, checks: [{}] },
    { ...state, checks: [{ name: 'bundle', routes: [1] }] },
    { ...state, checks: [{ name: 'bundle', bundle: { ...loaded.bundle, revision: '7' } }] },
    { kind: 'metrics', id: '1', text: '' },
    { kind: 'loaded' },
    { kind: 'loaded', position: { revision: '7', head: 'h' } },
    { kind: 'loaded', position: { revision: 7 } },
  ]) {
    expect(parseWorkerMessage(value)).toBeUndefined();
  }
  const position = { revision: 7, head: 'h' };
  expect(parseWorkerMessage({ kind: 'loaded', position })).toEqual({ kind: 'loaded', position });
  expect(parseWorkerMessage({ kind: 'hearing' })).toEqual({ kind: 'hearing' });
  for (const message of [{ kind: 'scrape', id: 2 }, { kind: 'leave' }, { kind: 'close' }]) {
    expect(parsePrimaryMessage(message)).toEqual(message);
  }
  for (const value of [null, { kind: 'scrape' }, { kind: 'stop' }]) {
    expect(parsePrimaryMessage(value)).toBeUndefined();
  }
});
