/**
 * How V8 collects garbage in a process that answers thousands of small requests a second, each of which leaves some 40 KiB behind
 * and nothing that stays. Source: docs/performance.md "How long a check takes".
 */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

export const COLLECTOR_FLAGS: readonly string[] = [
  // What V8 saw outlive its youth while the program started, it would from then on put among the old straight away; there it
  // keeps all that it refers to alive until the next full collection, and young collections take several times as long.
  '--no-allocation-site-pretenuring',
  // So little survives a young collection that to wake other threads for it, and to wait until they have run, takes longer.
  '--no-parallel-scavenge',
];

/** Both are looked at by every collection, so that they may be set while the program runs. */
export function tuneGarbageCollection(): void {
  for (const flag of COLLECTOR_FLAGS) setFlagsFromString(flag);
}

/**
 * Gives back what was needed for starting alone: a third of the memory, which V8 would keep for as long as nobody asks anything.
 * Takes a tenth of a second, so it comes before the first request. Node 20 knows no such collection: its usual kind gives the
 * system nothing back, and would only cost.
 * Source: docs/performance.md "What idle programs take".
 */
export function releaseStartMemory(): void {
  if (Number.parseInt(process.versions.node, 10) < 22) return;
  setFlagsFromString('--expose-gc');
  const collect: unknown = runInNewContext('gc');
  if (typeof collect === 'function') collect({ type: 'major', execution: 'sync', flavor: 'last-resort' });
}
