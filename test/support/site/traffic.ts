/** Callers that keep sending freshly signed requests while something happens to the verifier. */
import { waitFor } from '../wait.ts';

export interface Traffic {
  /** Statuses so far, in the order of the answers. */
  readonly statuses: readonly number[];
  /** Resolves when that many more answers have come. */
  more(count: number): Promise<void>;
  /** Resolves when no request is in flight; rejects when a request got no answer. */
  stop(): Promise<void>;
}

const callers = 8;

export function startTraffic(send: () => Promise<number>): Traffic {
  const statuses: number[] = [];
  let isStopped = false;
  const keepSending = async () => {
    while (!isStopped) statuses.push(await send());
  };
  const sending = Promise.all(Array.from({ length: callers }, keepSending));
  // `stop()` reports the error.
  sending.catch(() => undefined);
  return {
    statuses,
    more: async (count) => {
      const wanted = statuses.length + count;
      await waitFor(`${count} more answers`, () => (statuses.length >= wanted ? true : undefined));
    },
    stop: async () => {
      isStopped = true;
      await sending;
    },
  };
}
