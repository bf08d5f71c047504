/** Measures the machine and other processes through the Linux kernel, and places processes on cores. */
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { cpus } from 'node:os';

/** proc(5) counts in ticks of 10 ms. */
const US_PER_TICK = 10_000;
const US_PER_MS = 1_000;
const NS_PER_US = 1_000;
/** All cores of the machine, even those on which this process may not run. */
const CORES = cpus().length;

/**
 * CPU time of a process, microseconds: of the threads that it has now, by the scheduler's own clock (nanoseconds, the
 * first number of `schedstat`; the ticks of proc(5) are too coarse for slices of half a second).
 */
export function cpuUsOf(pid: number): number {
  const tasks = `/proc/${pid}/task`;
  const ofThreads = readdirSync(tasks).map((tid) => readFileSync(`${tasks}/${tid}/schedstat`, 'latin1'));
  return ofThreads.reduce((sumUs, text) => sumUs + Number(text.split(' ', 1)[0]) / NS_PER_US, 0);
}

/** proc(5), `VmRSS`, in KiB. */
export function residentMib(pid: number): number {
  const status = readFileSync(`/proc/${pid}/status`, 'latin1');
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]) / 1024;
}

/**
 * Watches how much of the machine's time its host gives to other machines (`steal` in `/proc/stat`).
 * @returns what tells which share of all cores it was since, 0 to 1
 */
export function watchStolenTime(): () => number {
  const [startMs, startUs] = [performance.now(), stolenUs()];
  return () => {
    const passedUs = (performance.now() - startMs) * US_PER_MS * CORES;
    return (stolenUs() - startUs) / passedUs;
  };
}

function stolenUs(): number {
  const allCores = readFileSync('/proc/stat', 'latin1').split('\n', 1)[0] ?? '';
  return Number(allCores.trim().split(/\s+/)[8]) * US_PER_TICK;
}

/**
 * The measured process has a core of its own. The sender, which does not exist beside a real gateway, shares the other cores
 * with everything else.
 */
export const MEASURED_CORE = 0;
export const OTHERS_CORE = 1;

/** Keeps a process and all its threads, also those to come, on one core; on a machine with a single one they stay. */
export function keepOnCore(pid: number, core: number): void {
  allowCores(pid, String(core % CORES));
}

/** Pins this process to a core until `stop()`. Processes started later may run on every core again. */
export function keepThisOnCore(core: number): { stop(): Promise<void> } {
  const all = `0-${CORES - 1}`;
  keepOnCore(process.pid, core);
  return { stop: async () => allowCores(process.pid, all) };
}

function allowCores(pid: number, cores: string): void {
  execFileSync('taskset', ['-acp', cores, String(pid)], { stdio: 'ignore' });
}
