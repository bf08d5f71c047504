/** Tests the verifier's log lines about readiness: one for each change. */
import { afterEach, beforeEach, expect, it, jest } from '@jest/globals';
import type { ReadinessCheck } from '../../../src/process/admin/admin-server.ts';
import { reportReadiness } from '../../../src/process/admin/readiness-report.ts';
import { createLogger } from '../../../src/process/telemetry/logger.ts';

let checks: readonly ReadinessCheck[];
let isServing: boolean | undefined;
let lines: string[];
let stop: () => void;
let leaving: AbortController;

beforeEach(() => {
  jest.useFakeTimers();
  lines = [];
  checks = [];
});
afterEach(() => {
  stop();
  jest.useRealTimers();
});

function start(first: readonly ReadinessCheck[] = []): void {
  checks = first;
  const logger = createLogger('info', { write: (line) => void lines.push(line) });
  const setServing = (serving: boolean) => {
    isServing = serving;
  };
  leaving = new AbortController();
  stop = reportReadiness({ readiness: () => checks, setServing, logger, leaving: leaving.signal });
}

/** Log lines after the next few checks. */
function after(problem: string | undefined, warning?: string): readonly (readonly string[])[] {
  checks = [{ name: 'replay_store', problem, warning }];
  lines = [];
  jest.advanceTimersByTime(1000);
  return logged();
}

function logged(): readonly (readonly string[])[] {
  return lines.map((line) => {
    const { check, level, msg } = JSON.parse(line);
    return [level, check, msg];
  });
}

it('has a warning when it begins, when it becomes another, and when it is over', () => {
  start();
  expect(after(undefined, 'a fence: 12 s')).toEqual([
    ['warn', 'replay_store', 'ready, with a warning: a fence: 12 s'],
  ]);
  expect(after(undefined, 'a fence: 3 s')).toEqual([]);
  expect(after(undefined, 'a part is away')).toEqual([
    ['warn', 'replay_store', 'ready, with a warning: a part is away'],
  ]);
  expect(after(undefined)).toEqual([['info', 'replay_store', 'in order']]);
  expect(after(undefined)).toEqual([]);
  expect(isServing).toBe(true);
});

it('has a problem at once, and what becomes of it', () => {
  start([{ name: 'bundle', problem: 'none' }]);
  expect([isServing, logged()]).toEqual([false, [['warn', 'bundle', 'not ready: none']]]);
  expect(after('Redis is away')).toEqual([['warn', 'replay_store', 'not ready: Redis is away']]);
  expect(after(undefined, 'Redis is away')).toEqual([
    ['warn', 'replay_store', 'ready, with a warning: Redis is away'],
  ]);
  expect(after('Redis is away')).toEqual([['warn', 'replay_store', 'not ready: Redis is away']]);
  expect(isServing).toBe(false);
  expect(after(undefined)).toEqual([['info', 'replay_store', 'in order']]);
});

it('leaves out a warning that is over by the next look', () => {
  start();
  const warned = [{ name: 'freshness', problem: undefined, warning: 'other_revision' }];
  for (let times = 0; times < 5; times += 1) {
    checks = warned;
    jest.advanceTimersByTime(200);
    checks = [{ name: 'freshness', problem: undefined }];
    jest.advanceTimersByTime(200);
  }
  expect(logged()).toEqual([]);
  checks = warned;
  jest.advanceTimersByTime(400);
  expect(logged()).toEqual([['warn', 'freshness', 'ready, with a warning: other_revision']]);
});

it('says no at once when the verifier leaves, and goes on to say what becomes of the rest', () => {
  start();
  expect(isServing).toBe(true);
  leaving.abort();
  expect(isServing).toBe(false);
  expect(after('Redis is away')).toEqual([['warn', 'replay_store', 'not ready: Redis is away']]);
  expect(after(undefined)).toEqual([['info', 'replay_store', 'in order']]);
  expect(isServing).toBe(false);
});

it('has never said yes where the verifier leaves before the first look', () => {
  const served: boolean[] = [];
  const setServing = (serving: boolean) => void served.push(serving);
  stop = reportReadiness({
    readiness: () => [],
    setServing,
    logger: createLogger('silent'),
    leaving: AbortSignal.abort(),
  });
  jest.advanceTimersByTime(1000);
  expect(new Set(served)).toEqual(new Set([false]));
});
