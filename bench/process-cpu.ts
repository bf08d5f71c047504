/** CPU that another process has used so far, as the kernel counts it. */
import { readFileSync } from 'node:fs';

/** Linux counts in ticks of 10 ms (proc(5), fields 14 and 15). */
const US_PER_TICK = 10_000;

/** User and system time of a process and all its threads, microseconds. */
export function cpuUsOf(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11]) + Number(fields[12])) * US_PER_TICK;
}
