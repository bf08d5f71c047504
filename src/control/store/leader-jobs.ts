/** Background jobs in rounds, on the leading instance. */
import { setTimeout as pause } from 'node:timers/promises';
import type { ControlStore } from './port.ts';

export interface Rounds {
  readonly pauseMs: number;
  /** @param round counts from 0 while this instance leads */
  readonly run: (round: number) => Promise<void>;
  /** Receives the error of a failed round; the next one tries again. */
  readonly report: (error: unknown) => void;
}

/** @returns a function that ends the rounds; it resolves when the current one is finished */
export function leadRounds(
  store: ControlStore,
  job: string,
  { pauseMs, run, report }: Rounds,
): () => Promise<void> {
  return store.lead(job, async (signal) => {
    for (let round = 0; !signal.aborted; round++) {
      await run(round).catch(report);
      await pause(pauseMs, undefined, { signal, ref: false }).catch(() => {});
    }
  });
}
