/** Runs an enrollment with this machine's files, clocks, timers and network. */
import { setTimeout as delay } from 'node:timers/promises';
import { readCaFile, readInputBytes } from '../../process/files/input-files.ts';
import { CliError, usageError } from '../../process/program/errors.ts';
import { Redacted } from '../../protocol/redacted.ts';
import type { SigningKey } from '../../protocol/signing.ts';
import { type ServiceConnection, ServiceHttp } from '../service/service-http.ts';
import type { Readiness } from './control-answers.ts';
import { ControlClient } from './control-client.ts';
import { parseControlUrl } from './control-url.ts';
import { enroll } from './enroll.ts';
import type { EnrollEvent, EnrollResult } from './enroll-run.ts';
import type { EnrollPlan } from './enroll-settings.ts';
import { openEnrollmentKey } from './enrollment-key.ts';
import type { EnrollmentState } from './enrollment-state.ts';
import { describeFault } from './explanations.ts';
import { EnrollmentStateFile } from './state-file.ts';

export interface EnrollSurroundings {
  readonly connection: ServiceConnection;
  readonly stop: AbortSignal;
  readonly report: (event: EnrollEvent) => void;
}

/**
 * @param plan whose Control URL is normalized to the form that is signed
 * @throws EnrollError, ClientError `ca_invalid`, CliError for files
 */
export async function enrollWithFiles(
  plan: EnrollPlan,
  { connection, stop, report }: EnrollSurroundings,
): Promise<EnrollResult> {
  const http = new ServiceHttp(connection);
  try {
    const { keyChoice, tokenFile, target, ...how } = plan;
    const key = await openEnrollmentKey(keyChoice, target);
    const nowMs = () => Date.now();
    return await enroll(
      { ...how, target, key },
      {
        control: new ControlClient({ http, target, key, nowMs }),
        states: new EnrollmentStateFile(keyChoice.file),
        readToken: () => readWorkloadToken(tokenFile),
        nowMs,
        monotonicMs: () => performance.now(),
        sleep,
        random: Math.random,
        stop,
        report,
      },
    );
  } finally {
    await http.close();
  }
}

async function sleep(waitMs: number, stop: AbortSignal): Promise<void> {
  await delay(waitMs, undefined, { signal: stop }).catch(() => undefined);
}

/** Maximum length that Control accepts. */
const MAX_TOKEN_CHARACTERS = 16_384;
const MAX_LINE_END_BYTES = 2;
/** Compact JWS (RFC 7515 section 3.1). Control verifies its content. */
const COMPACT_JWS = /^[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+$/;

/**
 * Follows symbolic links, which projected volumes use; the opened file must be regular. The mode is not checked, because
 * the orchestrator sets it and often allows others to read.
 * @throws CliError `workload_token_malformed`, or as `readInputBytes`
 */
export async function readWorkloadToken(path: string): Promise<Redacted<string>> {
  const bytes = await readInputBytes(path, {
    maxBytes: MAX_TOKEN_CHARACTERS + MAX_LINE_END_BYTES,
    secret: false,
  }).catch((error: unknown) => {
    if (!(error instanceof CliError) || error.code !== 'file_not_found') throw error;
    const text = `${path} does not exist: name the workload's projected token with --proof-file`;
    throw usageError('file_not_found', text);
  });
  const text = bytes.toString('latin1').replace(/\r?\n$/, '');
  bytes.fill(0);
  if (text.length > MAX_TOKEN_CHARACTERS || !COMPACT_JWS.test(text)) {
    throw usageError('workload_token_malformed', `${path} holds no token: it must be one compact JWS`);
  }
  return new Redacted(text);
}

/** Asks Control whether an enrolled key is ready. A missing answer is the result `unknown`, not an error. */
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
  const http = new ServiceHttp({ url, caPem: await readCaFile(question.controlCaFile) });
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
