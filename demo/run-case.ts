/** Runs one case: sends its requests in order and compares the answers with the expected ones. */
import type { Answer } from './answer.ts';
import type { Case, Expectation, Step } from './cases.ts';
import type { DemoEnvironment } from './environment.ts';
import { messageOf } from './parts.ts';

export interface StepResult {
  readonly expected: Expectation;
  readonly cameBack: string;
  /** The difference from the expectation; undefined when there is none. */
  readonly fault: string | undefined;
  /** Names the sidecar's decision, when it refused. */
  readonly decisionId: string | undefined;
  readonly remark: string | undefined;
}

export async function runCase(demo: DemoEnvironment, { steps }: Case): Promise<readonly StepResult[]> {
  const results: StepResult[] = [];
  for (const step of steps) results.push(await runStep(demo, step, steps.length === 1));
  return results;
}

async function runStep(
  demo: DemoEnvironment,
  { expected, send }: Step,
  isOnly: boolean,
): Promise<StepResult> {
  try {
    const answer = await send(demo);
    return {
      expected,
      cameBack: describeAnswer(answer, isOnly),
      fault: faultOf(answer, expected),
      decisionId: answer.decisionId,
      remark: answer.remark,
    };
  } catch (error) {
    const nothing = { decisionId: undefined, remark: undefined };
    return { expected, cameBack: 'no answer', fault: messageOf(error), ...nothing };
  }
}

function describeAnswer({ status, reason, detail, subject }: Answer, withSubject: boolean): string {
  if (status === 0) return `${reason}`;
  if (reason !== undefined) return `${status} ${reason}${detail === undefined ? '' : `/${detail}`}`;
  return withSubject && subject !== undefined ? `${status}, upstream saw ${subject}` : `${status}`;
}

type Wanted = readonly (readonly [what: string, wanted: unknown, found: unknown])[];

function wantedOf(answer: Answer, expected: Expectation): Wanted {
  const { status, reason, detail, subject, reachedUpstream } = answer;
  const stopped = ['reached the upstream', false, reachedUpstream] as const;
  switch (expected.kind) {
    case 'allowed':
      return [
        ['status', 200, status],
        ['X-Proofgate-Subject at the upstream', expected.subject, subject],
      ];
    case 'denied':
      return [
        ['status', expected.status, status],
        ['reason', expected.reason, reason],
        ['detail', expected.detail, detail],
        stopped,
      ];
    case 'not_sent':
      return [['error', expected.code, status === 0 ? reason : undefined], stopped];
  }
}

function faultOf(answer: Answer, expected: Expectation): string | undefined {
  const wanted = wantedOf(answer, expected);
  const faults = wanted
    .filter(([, value, found]) => value !== found)
    .map(([what, value, found]) => `${what}: ${value ?? 'none'} expected, ${found ?? 'none'} found`);
  return faults.length === 0 ? undefined : faults.join('; ');
}
