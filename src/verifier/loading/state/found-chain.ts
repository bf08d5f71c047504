/**
 * A chain of documents that a source found: follows it to its end and checks each step against the previous one, and
 * decides which steps are expired. Applies nothing.
 * Source: docs/design/bundle.md "Life in the verifier" and "Revision and head".
 */
import type { Snapshot } from '../../../bundle/compile/snapshot.ts';
import { asBundleError, type BundleError, bundleError } from '../../../bundle/format/bundle-error.ts';
import { type ChainPosition, judgeStep } from '../../../bundle/format/chain.ts';
import type { Signers } from '../../../bundle/format/documents.ts';
import { BUNDLE_FILE } from '../../../bundle/format/file-names.ts';
import type { ResolvedDirectory } from '../../../bundle/format/local-directory.ts';
import {
  type OpenedBundle,
  type OpenedStep,
  openStep,
  type StepDocument,
} from '../../../bundle/format/open-document.ts';
import { TimeSlice } from '../../../bundle/format/time-slice.ts';
import { hasEnded } from '../../../protocol/validity.ts';

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

/** The signers and the site whose documents are accepted. */
export interface ChainTrust {
  readonly authSite: string;
  readonly bundleSigners: Signers;
}

export interface Walk {
  readonly positions: readonly [ChainPosition, ...ChainPosition[]];
  /** Why the chain stops here; undefined when there are no more steps. */
  readonly refused: BundleError | undefined;
}

export async function walkChain(base: ChainPosition, found: FoundChain, trust: ChainTrust): Promise<Walk> {
  const positions: [ChainPosition, ...ChainPosition[]] = [base];
  const slice = new TimeSlice();
  let from = base;
  try {
    for await (const document of found.steps(base.revision)) {
      from = openNext(from, document, trust).position;
      positions.push(from);
      if (slice.isUsedUp) await slice.next();
    }
    return { positions, refused: undefined };
  } catch (error) {
    return { positions, refused: asBundleError(error, BUNDLE_FILE) };
  }
}

/** @throws BundleError when the step does not continue the position, or lacks the required signatures */
export function openNext(
  from: ChainPosition,
  { kind, file, bytes }: StepDocument,
  { authSite, bundleSigners: signers }: ChainTrust,
): OpenedStep {
  const step = openStep(kind, bytes, { file, signers, authSite });
  const error = judgeStep(from, step, file);
  if (error !== undefined) throw error;
  return step;
}

type Lifetime = Pick<Snapshot, 'expiresAtSeconds' | 'skewSeconds'>;

function hasExpired({ expiresAtSeconds, skewSeconds }: Lifetime, nowSeconds: number): boolean {
  return hasEnded(expiresAtSeconds, nowSeconds, skewSeconds);
}

/**
 * An expired bundle does not replace a valid one. Publishing one by mistake, or delaying a good one until it has expired,
 * must not end the service of the loaded bundle. When nothing is loaded, or the loaded bundle has expired itself, the expired
 * one is accepted, and requests are denied for that reason.
 * @param next a whole bundle with its steps applied
 * @returns the error that rejects it; undefined when it may be loaded
 */
export function judgeExpiry(
  loaded: Snapshot | undefined,
  next: Snapshot,
  nowSeconds: number,
): BundleError | undefined {
  const mayBeLoaded = loaded === undefined || hasExpired(loaded, nowSeconds) || !hasExpired(next, nowSeconds);
  return mayBeLoaded ? undefined : expired(BUNDLE_FILE);
}

/**
 * Drops the steps from the first expired link on, unless a later link is still valid, because it renews all earlier steps.
 * @returns the steps to apply, and why the rest is rejected
 */
export function beforeExpiry<T extends { readonly step: OpenedStep }>(
  loaded: Snapshot,
  steps: readonly T[],
  nowSeconds: number,
): { readonly steps: readonly T[]; readonly refused: BundleError | undefined } {
  const { skewSeconds } = loaded;
  const isExpiredLink = ({ step }: T) =>
    step.kind === 'link' && hasExpired({ expiresAtSeconds: step.expiresAtSeconds, skewSeconds }, nowSeconds);
  const renewed = steps.findLastIndex((entry) => entry.step.kind === 'link' && !isExpiredLink(entry));
  const at = steps.findIndex((entry, index) => index > renewed && isExpiredLink(entry));
  const first = steps[at];
  if (first === undefined || hasExpired(loaded, nowSeconds)) return { steps, refused: undefined };
  return { steps: steps.slice(0, at), refused: expired(first.step.file) };
}

function expired(file: string): BundleError {
  return bundleError('expired', file, '/expires_at', 'has expired, and what is loaded has not');
}
