/** Events and status of the bundle loader. */

import type { FreshnessIgnored, FreshnessStatement } from '../../bundle/compile/freshness-statement.ts';
import type { Snapshot } from '../../bundle/compile/snapshot.ts';
import type { BundleError } from '../../bundle/format/bundle-error.ts';
import type { StepKind } from '../../bundle/format/file-names.ts';
import type { BundleSource } from './found-chain.ts';
import type { BundleProblem } from './problem-record.ts';

/** Each is called once for each change, not at every poll. Must not throw. */
export interface BundleListener {
  loaded?(snapshot: Snapshot, load: BundleLoad): void;
  /** Deltas and links were applied. */
  advanced?(snapshot: Snapshot, steps: readonly StepKind[], durationMs: number): void;
  freshened?(snapshot: Snapshot): void;
  /** A document was rejected; the loaded bundle stays. */
  refused?(error: BundleError, source: BundleSource): void;
  freshnessRefused?(error: BundleError): void;
  freshnessIgnored?(why: FreshnessIgnored, statement: FreshnessStatement): void;
}

export interface BundleLoad {
  readonly source: BundleSource;
  /** From the first byte of the file to the swap. */
  readonly durationMs: number;
  /** Thumbprints of the pinned keys that signed. */
  readonly signers: readonly string[];
}

export interface BundleStatus {
  readonly snapshot: Snapshot | undefined;
  readonly loadedAtSeconds: number | undefined;
  /** Why the newest documents found are not loaded; undefined when they are. */
  readonly problem: BundleProblem | undefined;
  readonly freshnessProblem: BundleProblem | undefined;
  /** Why the validly signed freshness statement does not apply. */
  readonly freshnessIgnored: FreshnessIgnored | undefined;
}
