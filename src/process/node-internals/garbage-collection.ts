/**
 * V8 flags for a process that answers thousands of small requests a second. Each request leaves about 40 KiB of garbage and
 * nothing that stays. Measured in docs/operate/performance.md, "A check": `make bench PARTS="latency envoy"`.
 * test/process/node-internals/garbage-collection.test.ts fails when a version of Node does not know a flag.
 */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

export const COLLECTOR_FLAGS: readonly string[] = [
  // V8 allocates objects of a site in the old generation when earlier ones of that site survived, such as during start-up.
  // There they keep everything that they refer to alive until the next full collection.
  '--no-allocation-site-pretenuring',
  // So little survives a young collection that waking helper threads costs more than they save.
  '--no-parallel-scavenge',
];

/** V8 reads both flags at every collection, so they may be set while the program runs. */
export function tuneGarbageCollection(): void {
  for (const flag of COLLECTOR_FLAGS) setFlagsFromString(flag);
}

/**
 * Returns the memory that only the start needed, about a third, to the system. V8 would keep it until the first load. It takes about
 * 0.1 s, so call it before the first request. Node 20 has no such collection, so nothing happens there.
 * Source: docs/operate/performance.md "What idle programs take".
 */
export function releaseStartMemory(): void {
  if (Number.parseInt(process.versions.node, 10) < 22) return;
  setFlagsFromString('--expose-gc');
  const collect: unknown = runInNewContext('gc');
  if (typeof collect === 'function') collect({ type: 'major', execution: 'sync', flavor: 'last-resort' });
}
