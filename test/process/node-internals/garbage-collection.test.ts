/**
 * Tests that Node still has the garbage collection flags that we set: they are internal to V8, and only this test, not slower
 * checks, should reveal that one is gone.
 */
import { execFileSync } from 'node:child_process';
import { expect, it } from '@jest/globals';
import {
  COLLECTOR_FLAGS,
  releaseStartMemory,
} from '../../../src/process/node-internals/garbage-collection.ts';

it.each(COLLECTOR_FLAGS)('Node knows %s', (flag) => {
  expect(execFileSync(process.execPath, [flag, '-p', '1'], { encoding: 'utf8' })).toBe('1\n');
});

it('Node refuses a flag that it does not know', () => {
  expect(() =>
    execFileSync(process.execPath, ['--no-such-collector', '-p', '1'], { stdio: 'ignore' }),
  ).toThrow();
});

/** Node 20 cannot, and is left alone. */
const fromNode22 = Number.parseInt(process.versions.node, 10) < 22 ? it.skip : it;

fromNode22('what was needed for starting alone is given back (from Node 22 on)', () => {
  const kept: { garbage: readonly object[] } = { garbage: [] };
  kept.garbage = Array.from({ length: 500_000 }, (_, index) => ({ index }));
  const before = process.memoryUsage().heapUsed;
  kept.garbage = [];
  releaseStartMemory();
  expect(before - process.memoryUsage().heapUsed).toBeGreaterThan(500_000 * 8);
});
