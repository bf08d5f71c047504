/**
 * Takes what targets report of the last uses of derived keys. Nothing is decided by it: the holder of a stolen token can say that
 * keys of the target's site were used, until now at most, and in the name of that target alone.
 */
import { type KeyUse, LastUses, minuteOf } from '../../bundle/format/key-use.ts';
import { ApiProblem } from '../domain/api-problem.ts';
import type { ControlStore } from '../store/port.ts';
import { PostAllowance } from './post-allowance.ts';

/** Posts of a target that wait for the database. */
const MAX_WAITING = 8;
const RETRY_AFTER_SECONDS = 60;

export interface ReportedKeyUsesOptions {
  readonly store: Pick<ControlStore, 'writeUnaudited'>;
  readonly nowMs: () => number;
}

export class ReportedKeyUses {
  readonly #options: ReportedKeyUsesOptions;
  readonly #allowance = new PostAllowance();
  readonly #waiting = new Map<string, number>();
  /** Ends when the last post that was accepted is written; never rejects. */
  #writing: Promise<unknown> = Promise.resolve();

  constructor(options: ReportedKeyUsesOptions) {
    this.#options = options;
  }

  /**
   * Writes the page of an instance. A time in the future counts as now, and a key of another site as nothing.
   * @throws ApiProblem `rate_limited`
   */
  async report(targetId: string, uses: readonly KeyUse[]): Promise<void> {
    const { nowMs } = this.#options;
    this.#allowance.spend(targetId, nowMs());
    const waiting = this.#waiting.get(targetId) ?? 0;
    if (waiting >= MAX_WAITING) {
      throw new ApiProblem('rate_limited', undefined, { retryAfterSeconds: RETRY_AFTER_SECONDS });
    }
    const latestSeconds = minuteOf(nowMs() / 1000);
    const last = new LastUses();
    for (const { keyId, usedAtSeconds } of uses) {
      last.add({ keyId, usedAtSeconds: Math.min(usedAtSeconds, latestSeconds) });
    }
    this.#waiting.set(targetId, waiting + 1);
    try {
      await this.#inTurn(() => this.#write(targetId, last.all()));
    } finally {
      const left = (this.#waiting.get(targetId) ?? 1) - 1;
      if (left > 0) this.#waiting.set(targetId, left);
      else this.#waiting.delete(targetId);
    }
  }

  /** One after another, so that posts never use more than one of the database's connections. */
  #inTurn(write: () => Promise<void>): Promise<void> {
    const written = this.#writing.then(write);
    this.#writing = written.catch(() => undefined);
    return written;
  }

  /** Without the site's lock: no enrollment and no change of the site waits for it. */
  #write(targetId: string, uses: readonly KeyUse[]): Promise<void> {
    return this.#options.store.writeUnaudited(undefined, (tx) => tx.keyUses.put(targetId, uses));
  }
}
