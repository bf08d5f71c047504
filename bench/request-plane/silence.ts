/** A watchdog that ends a stalled run. */

/** So long without any answer, and the run is void: an answer must have been lost. */
const SILENCE_MS = 30_000;

export interface SilenceWatch {
  /** Rejects when there was no answer for too long; never resolves. */
  readonly failed: Promise<never>;
  end(): void;
}

/** @param answers how many there were so far */
export function watchForSilence(answers: () => number): SilenceWatch {
  let timer: NodeJS.Timeout | undefined;
  const failed = new Promise<never>((_, reject) => {
    let seen = answers();
    timer = setInterval(() => {
      if (seen === answers()) reject(new Error(`void run: no answer for ${SILENCE_MS / 1000} s`));
      seen = answers();
    }, SILENCE_MS);
  });
  return { failed, end: () => clearInterval(timer) };
}
