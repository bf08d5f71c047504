/** Verdicts of the seven steps, put together from what their functions said. */
import type { Denial } from '../../protocol/reasons.ts';
import { STAGES, type Stage, type Walk } from './walk.ts';

/**
 * `would_pass`, `would_fail`: after the fault that decided. `not_reached`: nothing to ask about. `not_checked`: what
 * nobody can tell without consuming something.
 */
export type Verdict = 'passed' | 'failed' | 'would_pass' | 'would_fail' | 'not_reached' | 'not_checked';

export type StepNumber = 1 | 2 | 3 | 4 | 5 | 6 | 7;

export interface StepVerdict {
  readonly step: StepNumber;
  readonly verdict: Verdict;
  /** The first fault within the step. */
  readonly denial: Denial | undefined;
}

const STAGES_OF_STEP: readonly (readonly [step: StepNumber, stages: readonly Stage[]])[] = [
  [1, ['bundle', 'route', 'credentials']],
  [2, ['source']],
  [3, ['freshness']],
  [4, ['attributes']],
  [5, ['proof', 'binding']],
];

/** @param decidedAt the stage whose fault decided; undefined when there is none */
export function explainSteps(walk: Walk, decidedAt: Stage | undefined): readonly StepVerdict[] {
  const steps = STAGES_OF_STEP.map(([step, stages]) => explainStep(walk, decidedAt, step, stages));
  const end = decidedAt === undefined;
  return [
    ...steps,
    { step: 6, verdict: end ? 'not_checked' : 'not_reached', denial: undefined },
    { step: 7, verdict: end ? 'would_pass' : 'not_reached', denial: undefined },
  ];
}

function explainStep(
  walk: Walk,
  decidedAt: Stage | undefined,
  step: StepNumber,
  stages: readonly Stage[],
): StepVerdict {
  for (const stage of stages) {
    const finding = walk[stage];
    if (finding.kind === 'failed') {
      return { step, verdict: isAfter(stage, decidedAt) ? 'would_fail' : 'failed', denial: finding.denial };
    }
    if (finding.kind === 'skipped') return { step, verdict: 'not_reached', denial: undefined };
  }
  const verdict = stages.some((stage) => isAfter(stage, decidedAt)) ? 'would_pass' : 'passed';
  return { step, verdict, denial: undefined };
}

/** Whether the pipeline had ended before the stage. */
export function isAfter(stage: Stage, decidedAt: Stage | undefined): boolean {
  return decidedAt !== undefined && STAGES.indexOf(stage) > STAGES.indexOf(decidedAt);
}
