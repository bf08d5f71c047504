/**
 * Requests a challenge and submits the enrollment. After a lost response, this run or the next one repeats the submission
 * byte for byte, and Control answers it with the same enrollment. The client requests another challenge only after Control
 * reports that this one was not and cannot be used.
 * Source: docs/design/enrollment.md "Enrollment".
 */

import { createCipheriv, createDecipheriv, hkdfSync, type KeyObject, randomBytes } from 'node:crypto';
import { decodeBase64url } from '../../protocol/base64url.ts';
import { Redacted } from '../../protocol/redacted.ts';
import type { Fault, Verdict } from '../service/service-verdict.ts';
import type { Enrollment } from './control-answers.ts';
import type { Submission } from './control-client.ts';
import { EnrollError } from './enroll-error.ts';
import type { EnrollRun } from './enroll-run.ts';
import type { Attempt } from './enrollment-state.ts';
import { describeFault, gaveUp, refusal, unconfirmed } from './explanations.ts';
import { Pacing } from './pacing.ts';

interface BegunSubmission {
  readonly submission: Submission;
  readonly authSite: string;
  /** Whether an earlier run may have sent this submission. */
  readonly mayHaveArrived: boolean;
}

/** @throws EnrollError */
export async function submitEnrollment(run: EnrollRun): Promise<Enrollment> {
  const retries = new Retries(run);
  for (;;) {
    const begun = await beginSubmission(run);
    const { verdict, mayHaveArrived } = await retryUntilAnswered(
      run,
      { what: 'submission', retries, mayHaveArrived: begun.mayHaveArrived },
      () => run.ports.control.submit(begun.submission, run.call),
    );
    if (verdict.kind === 'done') return saveAccepted(run, verdict.value, begun.authSite);
    if (verdict.kind !== 'refused') throw await handleNoAnswer(run, verdict, mayHaveArrived);
    if (!isDeadChallenge(verdict.code) || !retries.takeOne())
      throw await handleRefusal(run, verdict.code, mayHaveArrived);
    // No submission of this challenge can succeed any more.
    await run.saveAttempt(undefined);
  }
}

/** Whether Control reports that the challenge was never answered and cannot be any more. */
function isDeadChallenge(code: string): boolean {
  return code === 'challenge_expired' || code === 'challenge_unknown';
}

async function saveAccepted(run: EnrollRun, enrollment: Enrollment, authSite: string): Promise<Enrollment> {
  if (enrollment.authSite !== authSite) {
    throw new EnrollError(
      'unreachable',
      'control_answer_invalid',
      'Control names another Auth Site than before',
    );
  }
  const { enrollmentId, createdAtMs } = enrollment;
  await run.saveAttempt({ kind: 'submitted', enrollmentId, authSite, createdAtMs });
  return enrollment;
}

async function handleNoAnswer(
  run: EnrollRun,
  fault: Exclude<Fault, { readonly kind: 'refused' }>,
  mayHaveArrived: boolean,
): Promise<EnrollError> {
  if (mayHaveArrived) return unconfirmed(fault);
  await run.saveAttempt(undefined);
  return gaveUp(fault);
}

/** Keeps the attempt if an earlier submission may have arrived: a copy of it may still be in transit. */
async function handleRefusal(run: EnrollRun, code: string, mayHaveArrived: boolean): Promise<EnrollError> {
  if (code === 'challenge_consumed') await run.giveUpAttempt();
  else if (!mayHaveArrived || isDeadChallenge(code)) await run.saveAttempt(undefined);
  return refusal(code);
}

async function beginSubmission(run: EnrollRun): Promise<BegunSubmission> {
  const workloadToken = await run.ports.readToken();
  const { attempt } = run;
  if (attempt?.kind === 'submitting') {
    const { challengeId, authSite } = attempt;
    const submission = { challengeId, challenge: reopenChallenge(run, attempt), workloadToken };
    return { submission, authSite, mayHaveArrived: true };
  }
  const { verdict } = await retryUntilAnswered(
    run,
    { what: 'challenge', retries: new Retries(run), mayHaveArrived: false },
    () => run.ports.control.challenge(run.request.provider, run.call),
  );
  if (verdict.kind === 'refused') throw refusal(verdict.code);
  if (verdict.kind !== 'done') throw gaveUp(verdict);
  const { challengeId, challenge, authSite } = verdict.value;
  const sealedChallenge = sealChallenge(challenge, run.request.key.privateKey, bindingOf(run, challengeId));
  // Saved before the submission is sent, because from then on it may have arrived.
  await run.saveAttempt({ kind: 'submitting', challengeId, authSite, sealedChallenge });
  return { submission: { challengeId, challenge, workloadToken }, authSite, mayHaveArrived: false };
}

function reopenChallenge(run: EnrollRun, attempt: Extract<Attempt, { readonly kind: 'submitting' }>) {
  const { challengeId, sealedChallenge } = attempt;
  const opened = openChallenge(sealedChallenge, run.request.key.privateKey, bindingOf(run, challengeId));
  if (opened !== undefined) return opened;
  throw new EnrollError(
    'usage',
    'enrollment_state_invalid',
    'the challenge in the state file was not sealed by this key: delete the file to enroll anew',
  );
}

function bindingOf({ request: { target } }: EnrollRun, challengeId: string): string {
  return `${target.controlUrl}\n${target.policy}\n${challengeId}\n`;
}

/** Counts the remaining retries. */
class Retries {
  readonly pacing: Pacing;
  #left: number;

  constructor({ request, ports }: EnrollRun) {
    this.pacing = new Pacing(request.pollIntervalMs, ports.random);
    this.#left = request.submitRetries;
  }

  takeOne(): boolean {
    this.#left -= 1;
    return this.#left >= 0;
  }
}

interface RetriedRequest {
  readonly what: 'challenge' | 'submission';
  readonly retries: Retries;
  readonly mayHaveArrived: boolean;
}

/** Repeats a request until Control accepts or rejects it, or until retries, the timeout or a stop end it. */
async function retryUntilAnswered<T>(
  run: EnrollRun,
  { what, retries, mayHaveArrived }: RetriedRequest,
  ask: () => Promise<Verdict<T>>,
): Promise<{ readonly verdict: Verdict<T>; readonly mayHaveArrived: boolean }> {
  let arrived = mayHaveArrived;
  for (;;) {
    const verdict = await ask();
    arrived ||= verdict.kind === 'unclear' || (verdict.kind === 'later' && !verdict.isFromService);
    if (verdict.kind === 'done' || verdict.kind === 'refused') return { verdict, mayHaveArrived: arrived };
    if (run.isStopped || !retries.takeOne()) return { verdict, mayHaveArrived: arrived };
    const waitMs = retries.pacing.next(run.retryAfterMs(verdict));
    if (waitMs >= run.remainingMs) return { verdict, mayHaveArrived: arrived };
    run.ports.report({ kind: 'retrying', what, fault: describeFault(verdict), waitMs });
    await run.sleep(waitMs);
    if (run.isStopped) return { verdict: { kind: 'unclear', cause: 'stopped' }, mayHaveArrived: arrived };
  }
}

/**
 * Encrypts a challenge for storage on disk while the outcome of its submission is unknown. With it the client can repeat the
 * same submission after a crash, so that a lost response does not cause a second enrollment. The cipher is AES-256-GCM, the
 * key is derived from the private key (HKDF, RFC 5869): a program that can decrypt the challenge could answer it anyway.
 */

const CIPHER = 'aes-256-gcm';
const KEY_BYTES = 32;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/** @param boundTo associated data; the same value is required to open it */
export function sealChallenge(challenge: Redacted<string>, privateKey: KeyObject, boundTo: string): string {
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv(CIPHER, sealingKey(privateKey), nonce).setAAD(Buffer.from(boundTo));
  const sealed = [nonce, cipher.update(challenge.reveal(), 'latin1'), cipher.final(), cipher.getAuthTag()];
  return Buffer.concat(sealed).toString('base64url');
}

/** Undefined when it was sealed with another key or for another `boundTo`. */
export function openChallenge(
  sealed: string,
  privateKey: KeyObject,
  boundTo: string,
): Redacted<string> | undefined {
  const bytes = decodeBase64url(sealed);
  if (bytes === undefined || bytes.length <= NONCE_BYTES + TAG_BYTES) return undefined;
  const nonce = bytes.subarray(0, NONCE_BYTES);
  const decipher = createDecipheriv(CIPHER, sealingKey(privateKey), nonce, { authTagLength: TAG_BYTES });
  decipher.setAAD(Buffer.from(boundTo)).setAuthTag(bytes.subarray(-TAG_BYTES));
  try {
    const opened = [decipher.update(bytes.subarray(NONCE_BYTES, -TAG_BYTES)), decipher.final()];
    return new Redacted(Buffer.concat(opened).toString('latin1'));
  } catch {
    return undefined;
  }
}

function sealingKey(privateKey: KeyObject): Uint8Array {
  const der = privateKey.export({ type: 'pkcs8', format: 'der' });
  try {
    return new Uint8Array(hkdfSync('sha256', der, '', 'proofgate-sealed-challenge-v1', KEY_BYTES));
  } finally {
    der.fill(0);
  }
}
