/**
 * The high-water mark as a worker has it: only the primary raises it, and a worker takes nothing that the primary has
 * not taken. So a worker that is killed and started again finds the mark at or above all that it ever decided by.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { bundleError } from '../../../bundle/format/bundle-error.ts';
import type { ChainPosition } from '../../../bundle/format/chain.ts';
import {
  FileMark,
  type FileMarkOptions,
  type HighWaterMark,
  MARK_FILE,
} from '../../../verifier/loading/high-water-mark.ts';

const LOOK_INTERVAL_MS = 10;
/** The primary compiles a large bundle at about the same time. */
const DEFAULT_WAIT_MS = 30_000;

export class PrimaryMark implements HighWaterMark {
  readonly #file: FileMarkOptions;
  readonly #waitMs: number;
  #known: ChainPosition | undefined;

  constructor(file: FileMarkOptions, waitMs = DEFAULT_WAIT_MS) {
    this.#file = file;
    this.#waitMs = waitMs;
  }

  /** Read anew each time: it is the primary that writes it. @throws BundleError */
  async position(): Promise<ChainPosition | undefined> {
    this.#known = await new FileMark(this.#file).position();
    return this.#known;
  }

  /** Returns when the primary has raised it so far. @throws BundleError `mark_unavailable` when it does not in time */
  async raise(position: ChainPosition): Promise<void> {
    const deadline = performance.now() + this.#waitMs;
    while (!reaches(this.#known, position) && !reaches(await this.position(), position)) {
      if (performance.now() > deadline) {
        const text = `the primary has not accepted revision ${position.revision}`;
        throw bundleError('mark_unavailable', MARK_FILE, '', text);
      }
      await sleep(LOOK_INTERVAL_MS);
    }
  }
}

/** Another content of the same revision is not what was accepted. */
function reaches(mark: ChainPosition | undefined, { head, revision }: ChainPosition): boolean {
  if (mark === undefined || mark.revision < revision) return false;
  return mark.revision > revision || mark.head === head;
}
