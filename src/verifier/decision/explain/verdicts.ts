/** Runs every check of {@link STEPS}, also after a denial, so that later faults are visible while the first is fixed. */
import type { Denial } from '../../../protocol/reasons.ts';
import type { Evaluation } from '../evaluation.ts';
import { type Check, type CheckName, STEPS, type Step } from '../steps.ts';

/**
 * `would_pass`, `would_fail`: the check comes after the one that decided. `not_reached`: a check that this one needs
 * failed. `not_checked`: checking would consume the proof.
 */
export type Verdict = 'passed' | 'failed' | 'would_pass' | 'would_fail' | 'not_reached' | 'not_checked';

export interface CheckVerdict {
  readonly check: CheckName;
  readonly verdict: Verdict;
  readonly denial: Denial | undefined;
}

export type StepNumber = Step['number'] | 6 | 7;

export interface StepVerdict {
  readonly step: StepNumber;
  readonly verdict: Verdict;
  /** The first denial within the step. */
  readonly denial: Denial | undefined;
  /** Empty for steps 6 and 7, which are not explained. */
  readonly checks: readonly CheckVerdict[];
}

/** @param evaluation filled in as the checks pass */
export function explainSteps(evaluation: Evaluation): readonly StepVerdict[] {
  const passed = new Set<CheckName>();
  let isDecided = false;

  function explainCheck({ name, needs, run }: Check): CheckVerdict {
    if (!needs.every((needed) => passed.has(needed))) {
      return { check: name, verdict: 'not_reached', denial: undefined };
    }
    const denial = run(evaluation);
    if (denial === undefined) {
      passed.add(name);
      return { check: name, verdict: isDecided ? 'would_pass' : 'passed', denial };
    }
    const verdict = isDecided ? 'would_fail' : 'failed';
    isDecided = true;
    return { check: name, verdict, denial };
  }

  const steps = STEPS.map(({ number, checks }) => verdictOfStep(number, checks.map(explainCheck)));
  return [
    ...steps,
    { step: 6, verdict: isDecided ? 'not_reached' : 'not_checked', denial: undefined, checks: [] },
    { step: 7, verdict: isDecided ? 'not_reached' : 'would_pass', denial: undefined, checks: [] },
  ];
}

/** The verdict of the first check that did not pass; otherwise all checks have the same verdict. */
function verdictOfStep(step: Step['number'], checks: readonly CheckVerdict[]): StepVerdict {
  const first = checks.find(({ verdict }) => verdict !== 'passed' && verdict !== 'would_pass') ?? checks[0];
  return { step, verdict: first?.verdict ?? 'not_reached', denial: first?.denial, checks };
}
