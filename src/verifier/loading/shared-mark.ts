/**
 * The port of the mark that a site's verifiers share: a copy of the high-water mark outside any verifier's state
 * directory. With it, a new verifier, or one that lost its state, rejects old bundles.
 * Adapter: `src/verifier/redis/redis-shared-mark.ts`. Its user: `mirrored-mark.ts`.
 * Source: docs/bundle.md "Revision and head".
 */
import type { ChainPosition } from '../../bundle/format/chain.ts';

/** The highest revision that any verifier of a site ever accepted, with its head. */
export type Mark = ChainPosition;

/**
 * Contract of every adapter: one shared mark for each Auth Site, which never expires, changed by an atomic
 * compare-and-maximum. The adapter does not retry; the caller does. All rejections are {@link SharedMarkError}.
 */
export interface SharedMark {
  /**
   * Waits for a pending connection, but always settles within `timeoutMs`.
   * @returns undefined only when the store answered that it has no mark for the site
   */
  read(authSite: string, timeoutMs: number): Promise<Mark | undefined>;
  /**
   * Stores the mark when its revision is higher than the stored one; otherwise changes nothing, whatever the heads.
   * Settles within `timeoutMs`.
   * @returns the stored mark after the call. The same revision with another head means that two verifiers of the site
   *   accepted different bundles.
   */
  raise(authSite: string, mark: Mark, timeoutMs: number): Promise<Mark>;
  /**
   * Deletes the site's mark, even if it is unreadable. Settles within `timeoutMs`.
   * @returns the deleted mark, `unreadable` for an invalid one, undefined when there was none
   */
  reset(authSite: string, timeoutMs: number): Promise<Mark | 'unreadable' | undefined>;
  /** Ends pending operations. Never rejects. */
  close(): Promise<void>;
}

/**
 * `unavailable`: the store is unreachable, or did not answer in time. `corrupt`: the stored value is not a mark.
 * `raise` must not overwrite it either, because it may have been a high one.
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
