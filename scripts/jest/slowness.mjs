/** Measures how much slower this machine is now than one core of an idle two-core machine. */
import { createHash } from 'node:crypto';

const ROUNDS = 2_000;
const QUIET_MS = 7;
const BLOCK = Buffer.alloc(4_096);

/**
 * Does a fixed piece of work.
 *
 * @returns {{ waited: number, worked: number }} how many times longer it took, 1 or more: by the clock, and of a processor's time
 */
export function slowness() {
  const startMs = performance.now();
  const start = process.cpuUsage();
  for (let round = 0; round < ROUNDS; round += 1) createHash('sha256').update(BLOCK).digest();
  const { system, user } = process.cpuUsage(start);
  const times = (ms) => Math.max(1, ms / QUIET_MS);
  return { waited: times(performance.now() - startMs), worked: times((system + user) / 1000) };
}
