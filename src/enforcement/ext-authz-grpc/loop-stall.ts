/** Measures event loop stalls. What is read right after a stall may have waited in the system's buffers for as long. */

/** Milliseconds; shorter stalls go unnoticed. */
const LOOK_EVERY_MS = 20;

export interface LoopStall {
  /** Duration of the stall just before what is being read now, milliseconds; 0 when there was none. */
  lastMs(): number;
  close(): void;
}

/** The timer does not keep the process alive. */
export function watchLoopStalls(): LoopStall {
  let lastMs = 0;
  let lookedMs = performance.now();
  const timer = setInterval(() => {
    const nowMs = performance.now();
    const heldUpMs = nowMs - lookedMs - LOOK_EVERY_MS;
    lookedMs = nowMs;
    if (heldUpMs < LOOK_EVERY_MS) return;
    lastMs = heldUpMs;
    // A turn of the event loop runs timers first, then I/O callbacks, then this.
    setImmediate(() => {
      lastMs = 0;
    });
  }, LOOK_EVERY_MS).unref();
  return { lastMs: () => lastMs, close: () => clearInterval(timer) };
}
