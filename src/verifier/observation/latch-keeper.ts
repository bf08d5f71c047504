/** Keeps which observations have begun and ended: in the process that owns the state directory, or in one that reads it. */

/** What a bundle says. */
export interface Wishes {
  /** End of each observation that the bundle wants, by name, in seconds since the epoch. */
  readonly until: ReadonlyMap<string, number>;
  /** Names of all routes of the bundle. */
  readonly routes: ReadonlySet<string>;
}

export interface LatchKeeper {
  /** Whether bundles change the latch here. */
  readonly isOwner: boolean;
  follow(wishes: Wishes, nowSeconds: number): void;
  /** Whether the observation has begun and not ended. What has ended stays closed, also when the clock goes back. */
  isOpen(name: string, nowSeconds: number): boolean;
  /** Whether it has ended under its flag. */
  isClosed(name: string): boolean;
  /** Closes what has ended, and tries again what failed. */
  tick(nowSeconds: number): void;
  /** Resolves when the latch is written, or could not be. */
  settled(): Promise<void>;
  /**
   * Resolves when all that has been followed is on disk, or has been read from there.
   * @throws BundleError `file_not_written` when an observation that has ended is still open on disk
   */
  ready(): Promise<void>;
}

/** By name: the flags' times, in seconds since the epoch. */
export type AllowedByName = ReadonlyMap<string, number>;

export const UNMATCHED = 'unmatched';
