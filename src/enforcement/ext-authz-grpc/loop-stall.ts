/**
 * How long requests may have lain in the system's buffers before anybody could see them: when the event loop was held up,
 * whatever is read next may have been waiting for as long.
 */

/** Milliseconds; shorter stalls are not noticed. */
const LOOK_EVERY_MS = 20;

export interface LoopStall {
  /** Milliseconds that the loop was held up just before what is being read now; 0 when it was not. */
  lastMs(): number;
  close(): void;
}

/** Keeps no process alive. */
export function watchLoopStalls(): LoopStall {
  let lastMs = 0;
  let lookedMs = performance.now();
  const timer = setInterval(() => {
    const nowMs = performance.now();
    const heldUpMs = nowMs - lookedMs - LOOK_EVERY_MS;
    lookedMs = nowMs;
    if (heldUpMs < LOOK_EVERY_MS) return;
    lastMs = heldUpMs;
    // Timers come first in a turn of the loop, then what was read, then this.
    setImmediate(() => {
      lastMs = 0;
    });
  }, LOOK_EVERY_MS).unref();
  return { lastMs: () => lastMs, close: () => clearInterval(timer) };
}
