/**
 * What passes between those who find documents, those who keep them and the bundle that is loaded.
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
  /** Those after a revision, in order, where the source can tell; read more than once. */
  readonly steps: (afterRevision: number) => AsyncIterable<StepDocument> | Iterable<StepDocument>;
  /** Called when all is verified and compiled, before it is used: what it throws refuses the chain. */
  readonly keep?: ((chain: AcceptedChain) => Promise<void>) | undefined;
}

export interface AcceptedChain {
  readonly opened: OpenedBundle;
  /** The bundle's own document. */
  readonly bytes: Buffer;
  /** Of the steps that were taken, from the first. */
  readonly positions: readonly ChainPosition[];
}

export interface StepRecord {
  /** Returns when all of them are kept. @throws BundleError when none is */
  append(steps: readonly { readonly document: Buffer; readonly position: ChainPosition }[]): Promise<void>;
  /** Forgets the last ones that were appended. */
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
  /** `superseded`: sound, and older than what another source brought. */
  readonly kind: 'loaded' | 'advanced' | 'nothing_to_do' | 'superseded';
  /** Why the steps after the last one that was taken were not. */
  readonly refused: BundleError | undefined;
}
