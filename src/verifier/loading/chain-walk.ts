/**
 * Follows a chain of documents to its end: opens each step and checks it against the one before. Applies nothing.
 * Source: docs/bundle.md "Revision and head".
 */

import { asBundleError, type BundleError } from '../../bundle/format/bundle-error.ts';
import { type ChainPosition, judgeStep } from '../../bundle/format/chain.ts';
import type { Signers } from '../../bundle/format/documents.ts';
import { BUNDLE_FILE } from '../../bundle/format/file-names.ts';
import { type OpenedStep, openStep, type StepDocument } from '../../bundle/format/open-step.ts';
import { TimeSlice } from '../../bundle/format/time-slice.ts';
import type { FoundChain } from './found-chain.ts';

/** The signers and the site whose steps are accepted. */
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

/** The same chain, limited to its first steps. */
export function cutWalk({ positions: [base, ...steps], refused }: Walk, stepCount: number): Walk {
  return { positions: [base, ...steps.slice(0, stepCount)], refused };
}
