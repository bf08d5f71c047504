/** Waits for a condition, never for a fixed time. A wait ends with the deadline of its test, since only that knows how long a busy machine may take. */
import { get } from 'node:http';

const LEAST_PAUSE_MS = 10;
const MOST_PAUSE_MS = 500;
/** Of the time waited so far. */
const PAUSED_SHARE = 1 / 20;
/** For programs that are not a test, such as benchmarks. */
const programLimitMs = 600_000;

/** The deadline of the test has come. Its name tells scripts/jest/reporter.mjs that a test failed by waiting alone. */
class WaitTimedOut extends Error {
  static {
    WaitTimedOut.prototype.name = 'WaitTimedOut';
  }
}

type Probe<T> = () => Promise<T | false | undefined> | T | false | undefined;

/**
 * Repeats `probe` until it returns something other than `undefined` or `false`. It may throw meanwhile.
 *
 * @param what names the condition in the error
 * @param mostMs only if the condition may legitimately stay false, or if the time itself is tested
 * @throws shortly before the deadline of the test or hook, with the last result of `probe`
 */
export async function waitFor<T>(
  what: string,
  probe: Probe<T>,
  mostMs = Number.POSITIVE_INFINITY,
): Promise<T> {
  const startMs = performance.now();
  const endMs = startMs + Math.min(remainingMs(programLimitMs), mostMs);
  let last = '';
  do {
    const probeStartMs = performance.now();
    try {
      const found = await answerBy(endMs, probe());
      if (found !== undefined && found !== false) return found;
      last = String(found);
    } catch (error) {
      last = error instanceof Error ? error.message : String(error);
    }
    const nowMs = performance.now();
    await new Promise((resolve) => setTimeout(resolve, pauseMs(nowMs - startMs, nowMs - probeStartMs)));
  } while (performance.now() < endMs);
  const message = `${what}: not within ${Math.round(performance.now() - startMs)} ms (last: ${last})`;
  throw mostMs === Number.POSITIVE_INFINITY ? new WaitTimedOut(message) : new Error(message);
}

/** Probes take the processor from what they wait for: at most half of the time, and less in a long wait. */
function pauseMs(waitedMs: number, probedMs: number): number {
  return Math.min(MOST_PAUSE_MS, Math.max(LEAST_PAUSE_MS, probedMs, waitedMs * PAUSED_SHARE));
}

/** Waits until a condition is true. An error of the condition ends the wait. */
export async function waitUntil(holds: () => Promise<boolean> | boolean): Promise<void> {
  const outcome = await waitFor(`${holds}`, async () => {
    try {
      return await holds();
    } catch (error) {
      return { error };
    }
  });
  if (outcome !== true) throw outcome.error;
}

/** How long the running test or hook may still wait; `elsewhereMs` in a program that is not a test. */
export function remainingMs(elsewhereMs: number): number {
  // Set by scripts/jest/environment.mjs and scripts/mutation/test-files.mjs.
  const { waitsEndAtMs } = globalThis as { readonly waitsEndAtMs?: number };
  return waitsEndAtMs === undefined ? elsewhereMs : Math.max(0, Math.ceil(waitsEndAtMs - performance.now()));
}

/** For a lifetime that programs of a test must not outlive: how many times slower than quiet the machine was at the start of the file. */
export function machineSlowness(): number {
  const measured = globalThis as { readonly machineSlowness?: number };
  return measured.machineSlowness ?? 1;
}

/** A probe that hangs does not outlast the wait. */
async function answerBy<T>(endMs: number, answer: Promise<T> | T): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const end = new Promise<never>((_, reject) => {
    const leftMs = Math.max(0, endMs - performance.now());
    timer = setTimeout(() => reject(new Error('the probe did not answer')), leftMs);
  });
  return await Promise.race([answer, end]).finally(() => clearTimeout(timer));
}

export interface ProbeAnswer {
  readonly status: number;
  readonly text: string;
}

/** One GET on a connection of its own, so that no idle socket outlives the probe, without the snapshot that `/metrics` serves for 1 s. */
export function httpGet(url: string, timeoutMs = 30_000): Promise<ProbeAnswer> {
  return new Promise((resolve, reject) => {
    const request = get(
      url,
      { agent: false, timeout: timeoutMs, headers: { 'cache-control': 'no-cache' } },
      (response) => {
        const chunks: Buffer[] = [];
        response.on('data', (chunk: Buffer) => chunks.push(chunk));
        response.on('error', reject);
        response.on('end', () =>
          resolve({ status: response.statusCode ?? 0, text: Buffer.concat(chunks).toString('utf8') }),
        );
      },
    );
    request.on('timeout', () => request.destroy(new Error(`GET ${url}: no answer in ${timeoutMs} ms`)));
    request.on('error', reject);
  });
}
