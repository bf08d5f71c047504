/**
 * Polls a submitted enrollment until Control decides. A failed poll never causes a new submission, because Control already
 * has the enrollment.
 */
import type { Enrollment } from './control-answers.ts';
import type { Verdict } from './control-client.ts';
import type { EnrollError } from './enroll-error.ts';
import type { EnrolledKeyRecord } from './enrollment-state.ts';
import { denied, describeFault, expiredEnrollment, refusal, stillPending } from './explanations.ts';
import { Pacing } from './pacing.ts';
import type { EnrollRun } from './enroll-run.ts';

/** @throws EnrollError */
export async function awaitDecision(run: EnrollRun, enrollmentId: string): Promise<EnrolledKeyRecord> {
  const pacing = new Pacing(run.request.pollIntervalMs, run.ports.random);
  for (;;) {
    const verdict = await run.ports.control.poll(enrollmentId, run.call);
    if (verdict.kind === 'refused') throw await refusedPoll(run, verdict.code);
    const record = verdict.kind === 'done' ? await settle(run, verdict.value) : undefined;
    if (record !== undefined) return record;
    await pause(run, enrollmentId, pacing, verdict);
  }
}

/**
 * Saves the outcome of an enrollment; undefined while it is pending.
 * @throws EnrollError `enrollment_denied`, `enrollment_expired`
 */
export async function settle(run: EnrollRun, enrollment: Enrollment): Promise<EnrolledKeyRecord | undefined> {
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

/** Control lost the enrollment, as after a restore from a backup: the next run enrolls anew. Other rejections leave it pending. */
async function refusedPoll(run: EnrollRun, code: string): Promise<EnrollError> {
  if (code === 'enrollment_unknown') await run.giveUpAttempt();
  return refusal(code);
}

/** @throws EnrollError `enrollment_pending` after the timeout, without waiting, or when stopped */
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
  const retryAfterMs = verdict.kind === 'later' ? (verdict.retryAfterMs ?? 0) : 0;
  if (run.remainingMs <= 0 || retryAfterMs >= run.remainingMs) {
    throw stillPending(enrollmentId, `time is up; ${state}`, retryAfterMs);
  }
  run.ports.tell({ kind: 'waiting', enrollmentId, elapsedMs: run.elapsedMs, fault });
  await run.sleep(Math.min(pacing.next(retryAfterMs), run.remainingMs));
  if (run.isStopped) throw stillPending(enrollmentId, 'stopped');
}
