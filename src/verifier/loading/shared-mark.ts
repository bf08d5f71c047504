/**
 * The port of the mark that verifiers of a site share: a copy of the high-water mark outside of any one verifier's
 * state directory, so that a newcomer, or one that lost its own, cannot be fed an old bundle.
 * Adapter: `src/verifier/redis/redis-shared-mark.ts`. Who reads and raises it: `mirrored-mark.ts`.
 * Source: docs/bundle.md "Revision and head".
 */
import type { ChainPosition } from '../../bundle/format/chain.ts';

/** The highest revision that any verifier of a site ever accepted, with its head. */
export type Mark = ChainPosition;

/**
 * What every adapter holds to: one shared mark for each Auth Site, kept for ever (it never expires), changed by
 * compare-and-maximum in one atomic step. No command is repeated by the adapter; whoever calls asks again. All
 * rejections are {@link SharedMarkError}.
 */
export interface SharedMark {
  /**
   * Waits for a connection that is being made, but settles within `timeoutMs` in any case.
   * @returns undefined only when the store said that it holds none for the site
   */
  read(authSite: string, timeoutMs: number): Promise<Mark | undefined>;
  /**
   * Keeps the mark when its revision is higher than the one kept; otherwise changes nothing, whatever the heads.
   * Settles within `timeoutMs`.
   * @returns the mark that is kept after it: one of the same revision with another head says that two verifiers of the
   *   site accepted different bundles
   */
  raise(authSite: string, mark: Mark, timeoutMs: number): Promise<Mark>;
  /**
   * Forgets the site's mark, also one that cannot be read as a mark. Settles within `timeoutMs`.
   * @returns what was kept, `unreadable` for what was no mark, undefined when there was nothing
   */
  reset(authSite: string, timeoutMs: number): Promise<Mark | 'unreadable' | undefined>;
  /** Ends what is under way. Never rejects. */
  close(): Promise<void>;
}

/**
 * `unavailable`: the store cannot be asked now, or did not answer in time. `corrupt`: what it keeps is no mark (by
 * `raise` too: it must not be written over, since it may have been a high one).
 */
export type SharedMarkFault = 'unavailable' | 'corrupt';

/** The message is one line without secrets. */
export class SharedMarkError extends Error {
  override readonly name = 'SharedMarkError';
  readonly fault: SharedMarkFault;

  constructor(fault: SharedMarkFault, message: string) {
    super(message);
    this.fault = fault;
  }
}
