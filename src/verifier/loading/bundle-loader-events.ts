/** What a bundle's holder tells: changes as they come, and its standing when it is asked. */

import type { FreshnessIgnored, FreshnessStatement } from '../../bundle/compile/freshness-statement.ts';
import type { Snapshot } from '../../bundle/compile/snapshot.ts';
import type { BundleError } from '../../bundle/format/bundle-error.ts';
import type { StepKind } from '../../bundle/format/file-names.ts';
import type { BundleSource } from './found-chain.ts';
import type { BundleProblem } from './problem-record.ts';

/** Told once about each change, not at every poll. Must not throw. */
export interface BundleListener {
  loaded?(snapshot: Snapshot, load: BundleLoad): void;
  /** Deltas and links were applied. */
  advanced?(snapshot: Snapshot, steps: readonly StepKind[], durationMs: number): void;
  freshened?(snapshot: Snapshot): void;
  /** A document was not taken; what was loaded before stays. */
  refused?(error: BundleError, source: BundleSource): void;
  freshnessRefused?(error: BundleError): void;
  freshnessIgnored?(why: FreshnessIgnored, statement: FreshnessStatement): void;
}

export interface BundleLoad {
  readonly source: BundleSource;
  /** From the file's first byte to the swap. */
  readonly durationMs: number;
  /** Thumbprints of the pinned keys that signed. */
  readonly signers: readonly string[];
}

export interface BundleStatus {
  readonly snapshot: Snapshot | undefined;
  readonly loadedAtSeconds: number | undefined;
  /** Why the newest documents that were found are not what is loaded; undefined when they are. */
  readonly problem: BundleProblem | undefined;
  readonly freshnessProblem: BundleProblem | undefined;
  /** Why the statement at hand, well signed as it is, is not applied. */
  readonly freshnessIgnored: FreshnessIgnored | undefined;
}
