/**
 * Types shared by the bundle's sources, its persistence and the active bundle.
 * Source: docs/bundle.md "Life in the verifier".
 */

import type { LiveSnapshot } from '../../bundle/compile/compile.ts';
import type { BundleError } from '../../bundle/format/bundle-error.ts';
import type { ChainPosition } from '../../bundle/format/chain.ts';
import type { StepKind } from '../../bundle/format/file-names.ts';
import type { ResolvedDirectory } from '../../bundle/format/local-directory.ts';
import type { OpenedBundle } from '../../bundle/format/open-bundle.ts';
import type { StepDocument } from '../../bundle/format/open-step.ts';

/** Where a bundle came from. */
export type BundleSource = 'directory' | 'state' | 'control';

/** Documents that were found together. */
export interface FoundChain {
  readonly source: BundleSource;
  readonly files: ResolvedDirectory;
  /** The steps after a revision, in order, if the source can tell; may be read more than once. */
  readonly steps: (afterRevision: number) => AsyncIterable<StepDocument> | Iterable<StepDocument>;
  /** Called after verification and compilation, before the bundle is used. An error rejects the chain. */
  readonly keep?: ((chain: AcceptedChain) => Promise<void>) | undefined;
}

export interface AcceptedChain {
  readonly opened: OpenedBundle;
  /** Bytes of the bundle's document. */
  readonly bytes: Buffer;
  /** Positions of the steps that were applied, in order. */
  readonly positions: readonly ChainPosition[];
}

export interface StepRecord {
  /** Returns when all of them are stored. @throws BundleError when none is */
  append(steps: readonly { readonly document: Buffer; readonly position: ChainPosition }[]): Promise<void>;
  /** Removes the steps that were appended last. */
  dropLast(count: number): Promise<void>;
}

export type BundleChange =
  | {
      readonly kind: 'loaded';
      readonly snapshot: LiveSnapshot;
      readonly source: BundleSource;
      readonly durationMs: number;
      /** Thumbprints of the pinned keys that signed the whole bundle. */
      readonly signers: readonly string[];
    }
  | {
      readonly kind: 'advanced';
      readonly snapshot: LiveSnapshot;
      readonly source: BundleSource;
      readonly durationMs: number;
      readonly steps: readonly StepKind[];
    };

export interface LoadOutcome {
  /** `superseded`: valid, but older than what another source delivered. */
  readonly kind: 'loaded' | 'advanced' | 'nothing_to_do' | 'superseded';
  /** Why the steps after the last applied one were rejected. */
  readonly refused: BundleError | undefined;
}
