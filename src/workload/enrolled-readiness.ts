/** Asks Control whether an enrolled key is ready. A missing answer is the result `unknown`, not an error. */
import type { Readiness } from '../client/enroll/control-answers.ts';
import { ControlClient } from '../client/enroll/control-client.ts';
import { UndiciControlHttp } from '../client/enroll/control-http.ts';
import { parseControlUrl } from '../client/enroll/control-url.ts';
import type { EnrollmentState } from '../client/enroll/enrollment-state.ts';
import { describeFault } from '../client/enroll/explanations.ts';
import { readCaFile } from '../program/input-files.ts';
import type { SigningKey } from '../protocol/signing.ts';

export interface ReadinessQuestion {
  readonly controlUrl: string | undefined;
  readonly controlCaFile: string | undefined;
  readonly timeoutMs: number;
  /** Cancels the request. */
  readonly stop: AbortSignal;
}

export type ReadinessAnswer =
  | { readonly kind: 'known'; readonly readiness: Readiness }
  | { readonly kind: 'unknown'; readonly text: string };

/** @throws EnrollError, ClientError, CliError for invalid inputs, never for an answer of Control */
export async function askReadiness(
  state: EnrollmentState,
  key: SigningKey,
  question: ReadinessQuestion,
): Promise<ReadinessAnswer> {
  const enrollmentId = enrollmentIdOf(state);
  if (enrollmentId === undefined) return unknown('Control has not confirmed the submission');
  const target = state.enrolled?.target ?? state.target;
  const url = parseControlUrl(question.controlUrl ?? target.controlUrl);
  const http = new UndiciControlHttp({ url, caPem: await readCaFile(question.controlCaFile) });
  try {
    const client = new ControlClient({ http, target, key, nowMs: () => Date.now() });
    const verdict = await client.readiness(enrollmentId, question);
    return verdict.kind === 'done'
      ? { kind: 'known', readiness: verdict.value }
      : unknown(describeFault(verdict));
  } finally {
    await http.close();
  }
}

function unknown(why: string): ReadinessAnswer {
  return { kind: 'unknown', text: `readiness is not known: ${why}` };
}

/** Prefers the enrolled key to an enrollment in progress. */
function enrollmentIdOf({ enrolled, attempt }: EnrollmentState): string | undefined {
  return enrolled?.enrollmentId ?? (attempt?.kind === 'submitted' ? attempt.enrollmentId : undefined);
}
