/** Waits for a condition, never for a fixed time; every wait has a deadline. */
import { get } from 'node:http';

const probeIntervalMs = 20;

/**
 * Asks until there is an answer.
 *
 * @param what names the condition in the error
 * @throws when `probe` has given nothing but `undefined` or `false` (or errors) for `timeoutMs`
 */
export async function waitFor<T>(
  what: string,
  timeoutMs: number,
  probe: () => Promise<T | undefined> | T | undefined,
): Promise<T> {
  const deadlineMs = performance.now() + timeoutMs;
  let lastError = '';
  while (performance.now() < deadlineMs) {
    try {
      const found = await probe();
      if (found !== undefined && found !== false) return found;
    } catch (error) {
      lastError = ` (last error: ${error instanceof Error ? error.message : String(error)})`;
    }
    await new Promise((resolve) => setTimeout(resolve, probeIntervalMs));
  }
  throw new Error(`${what}: not within ${timeoutMs} ms${lastError}`);
}

export interface ProbeAnswer {
  readonly status: number;
  readonly text: string;
}

/** One GET on a connection of its own, so that no idle socket outlives the probe, without the snapshot that `/metrics` serves for 1 s. */
export function httpGet(url: string, timeoutMs = 2_000): Promise<ProbeAnswer> {
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
