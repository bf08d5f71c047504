/**
 * Enrolls a key: from the state file to a derived key that Control issues. After any interruption the next run with the same
 * key, Control and policy resumes where the last one ended.
 * Source: specification "Command-line tool"; docs/operate/cli.md "Enrolling".
 */

import type { Verdict } from '../service/service-verdict.ts';
import type { Enrollment } from './control-answers.ts';
import { EnrollError } from './enroll-error.ts';
import type { EnrollPorts, EnrollRequest, EnrollResult } from './enroll-run.ts';
import { EnrollRun } from './enroll-run.ts';
import {
  type EnrolledKeyRecord,
  type EnrollmentState,
  isCurrent,
  isSameKey,
  isSameTarget,
} from './enrollment-state.ts';
import { denied, describeFault, expiredEnrollment, gaveUp, refusal, stillPending } from './explanations.ts';
import { Pacing } from './pacing.ts';
import { submitEnrollment } from './submit.ts';

/** @throws EnrollError, or the error of reading the token or writing the state */
export async function enroll(request: EnrollRequest, ports: EnrollPorts): Promise<EnrollResult> {
  const state = await openState(request, ports);
  const { enrolled } = state;
  if (!request.forcesReenrollment && enrolled !== undefined && isUsable(enrolled, request, ports)) {
    const record = await withCurrentStatus(new EnrollRun(request, ports, state), enrolled);
    if (record.key.status === 'revoked') {
      await ports.states.save({ ...state, enrolled: record });
      throw unusableKeyError(record);
    }
    if (record.key.status === 'active') {
      if (!isSameKey(record.key, enrolled.key)) await ports.states.save({ ...state, enrolled: record });
      return { kind: 'cached', record };
    }
  }
  // Saved before any request to Control, so that a directory that is not writable does not waste an enrollment.
  await ports.states.save(state);
  const run = new EnrollRun(request, ports, state);
  if (run.attempt !== undefined) ports.report({ kind: 'resumed', attempt: run.attempt.kind });
  const resumed = await resume(run);
  const record = resumed !== undefined && isUsable(resumed, request, ports) ? resumed : await enrollAnew(run);
  if (record.key.status !== 'active') throw unusableKeyError(record);
  return { kind: 'enrolled', record };
}

/** The state of this key, with an attempt only if it is for this target. */
async function openState({ key, target }: EnrollRequest, { states }: EnrollPorts): Promise<EnrollmentState> {
  const keyThumbprint = key.publicKey.thumbprint;
  const saved = await states.load();
  if (saved?.keyThumbprint !== keyThumbprint) {
    return { keyThumbprint, target, enrolled: undefined, attempt: undefined };
  }
  if (saved.attempt === undefined || isSameTarget(saved.target, target)) return { ...saved, target };
  return { ...saved, target, attempt: undefined, mayBeIssued: true };
}

function isUsable(record: EnrolledKeyRecord, request: EnrollRequest, { nowMs }: EnrollPorts): boolean {
  return isSameTarget(record.target, request.target) && isCurrent(record, request.refreshSkewMs, nowMs());
}

/**
 * Asks Control once, because the state file does not show a revocation or changed grants. A key whose enrollment
 * Control lost, for example after a restore, counts as expired. Without an answer the state file decides. @throws
 * EnrollError `interrupted`
 */
async function withCurrentStatus(run: EnrollRun, record: EnrolledKeyRecord): Promise<EnrolledKeyRecord> {
  const { control, report } = run.ports;
  const verdict = await control.poll(record.enrollmentId, run.call);
  if (run.isStopped) throw gaveUp({ kind: 'unclear', cause: 'stopped' });
  if (verdict.kind === 'done') {
    const { value } = verdict;
    if (value.state === 'issued' && value.key.keyId === record.key.keyId) {
      return { ...record, key: value.key };
    }
    report({ kind: 'unconfirmed', fault: describeFault({ kind: 'unclear', cause: 'answer_invalid' }) });
    return record;
  }
  if (verdict.kind === 'refused' && verdict.code === 'enrollment_unknown') {
    return { ...record, key: { ...record.key, status: 'expired' } };
  }
  report({ kind: 'unconfirmed', fault: describeFault(verdict) });
  return record;
}

/** Undefined unless Control has confirmed a submission in progress. */
async function resume(run: EnrollRun): Promise<EnrolledKeyRecord | undefined> {
  return run.attempt?.kind === 'submitted' ? awaitDecision(run, run.attempt.enrollmentId) : undefined;
}

async function enrollAnew(run: EnrollRun): Promise<EnrolledKeyRecord> {
  const enrollment = await submitEnrollment(run);
  return (await saveOutcome(run, enrollment)) ?? awaitDecision(run, enrollment.enrollmentId);
}

function unusableKeyError({ key }: EnrolledKeyRecord): EnrollError {
  return key.status === 'revoked'
    ? refusal('key_revoked')
    : new EnrollError('refused', 'key_expired', 'the key has expired already: run again with a newer token');
}

/**
 * Polls a submitted enrollment until Control decides. A failed poll never causes a new submission, because Control already
 * has the enrollment.
 */

/** @throws EnrollError */
async function awaitDecision(run: EnrollRun, enrollmentId: string): Promise<EnrolledKeyRecord> {
  const pacing = new Pacing(run.request.pollIntervalMs, run.ports.random);
  for (;;) {
    const verdict = await run.ports.control.poll(enrollmentId, run.call);
    if (verdict.kind === 'refused') throw await handleRefusedPoll(run, verdict.code);
    const record = verdict.kind === 'done' ? await saveOutcome(run, verdict.value) : undefined;
    if (record !== undefined) return record;
    await pause(run, enrollmentId, pacing, verdict);
  }
}

/**
 * Saves the outcome of an enrollment; undefined while it is pending.
 * @throws EnrollError `enrollment_denied`, `policy_rebound`, `policy_not_active`, `source_not_active`, `enrollment_expired`
 */
async function saveOutcome(run: EnrollRun, enrollment: Enrollment): Promise<EnrolledKeyRecord | undefined> {
  switch (enrollment.state) {
    case 'pending_approval':
      return undefined;
    case 'denied':
      await run.saveAttempt(undefined);
      throw denied(enrollment.denialCode);
    case 'expired':
      await run.saveAttempt(undefined);
      throw expiredEnrollment();
    case 'issued': {
      const { enrollmentId, createdAtMs, key } = enrollment;
      const record = { target: run.request.target, enrollmentId, createdAtMs, key };
      await run.saveKey(record);
      return record;
    }
  }
}

/**
 * Handles that Control lost the enrollment, for example after a restore: the next run enrolls anew. After other
 * rejections the enrollment stays pending.
 */
async function handleRefusedPoll(run: EnrollRun, code: string): Promise<EnrollError> {
  if (code === 'enrollment_unknown') await run.giveUpAttempt();
  return refusal(code);
}

/** @throws EnrollError `enrollment_pending` after the timeout, when stopped, or when the run must not wait */
async function pause(
  run: EnrollRun,
  enrollmentId: string,
  pacing: Pacing,
  verdict: Exclude<Verdict<Enrollment>, { readonly kind: 'refused' }>,
): Promise<void> {
  const fault = verdict.kind === 'done' ? undefined : describeFault(verdict);
  const state = fault ?? 'it awaits approval';
  if (run.isStopped) throw stillPending(enrollmentId, 'stopped');
  if (!run.request.waitsForActivation) throw stillPending(enrollmentId, state);
  if (run.remainingMs <= 0) {
    const retryAfterMs = verdict.kind === 'later' ? verdict.retryAfterMs : undefined;
    throw stillPending(enrollmentId, `time is up; ${state}`, retryAfterMs);
  }
  run.ports.report({ kind: 'waiting', enrollmentId, elapsedMs: run.elapsedMs, fault });
  await run.sleep(Math.min(pacing.next(run.retryAfterMs(verdict)), run.remainingMs));
  if (run.isStopped) throw stillPending(enrollmentId, 'stopped');
}
