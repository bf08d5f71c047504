/**
 * A worker's read-only view of the high-water mark. Only the primary raises the mark, and a worker accepts a revision only
 * after the primary has. A restarted worker therefore finds the mark at or above every revision that it ever used.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { bundleError } from '../../../bundle/format/bundle-error.ts';
import type { ChainPosition } from '../../../bundle/format/chain.ts';
import { FileMark, type FileMarkOptions, type HighWaterMark, MARK_FILE } from './high-water-mark.ts';

const LOOK_INTERVAL_MS = 10;
/** Long, because the primary compiles the same large bundle at about the same time. */
const DEFAULT_WAIT_MS = 30_000;

export class PrimaryMark implements HighWaterMark {
  readonly #file: FileMarkOptions;
  readonly #waitMs: number;
  #known: ChainPosition | undefined;
  #hasLooked = false;

  constructor(file: FileMarkOptions, waitMs = DEFAULT_WAIT_MS) {
    this.#file = file;
    this.#waitMs = waitMs;
  }

  /** Reads the file each time, because the primary writes it. @throws BundleError */
  async position(): Promise<ChainPosition | undefined> {
    this.#known = await new FileMark(this.#file).position();
    this.#hasLooked = true;
    return this.#known;
  }

  /**
   * Waits until the primary has raised the mark to this position. Rejects a position that the worker found before there was a mark,
   * if the primary is newer by now: `CommonPosition` assumes that such a worker uses nothing older than the primary's first bundle.
   * @throws BundleError `mark_unavailable` for a rejected position, and after the timeout
   */
  async raise(position: ChainPosition): Promise<void> {
    const hadNone = this.#hasLooked && this.#known === undefined;
    const deadline = performance.now() + this.#waitMs;
    while (!reaches(this.#known, position) && !reaches(await this.position(), position)) {
      if (performance.now() > deadline) {
        const text = `the primary has not accepted revision ${position.revision}`;
        throw bundleError('mark_unavailable', MARK_FILE, '', text);
      }
      await sleep(LOOK_INTERVAL_MS);
    }
    const isPassed = this.#known !== undefined && this.#known.revision > position.revision;
    if (hadNone && isPassed) throw bundleError('mark_unavailable', MARK_FILE, '', 'the primary is further');
  }
}

/** The same revision with another head is different content, which the primary did not accept. */
function reaches(mark: ChainPosition | undefined, { head, revision }: ChainPosition): boolean {
  if (mark === undefined || mark.revision < revision) return false;
  return mark.revision > revision || mark.head === head;
}
