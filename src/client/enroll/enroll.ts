/**
 * Enrolls a key: from what the state file says to a derived key that Control has issued. Whenever and however a run ends,
 * the next one with the same key, Control and policy goes on from where it ended.
 * Source: specification "Command-line tool"; docs/cli.md "Enrolling".
 */
import { awaitDecision, settle } from './await-decision.ts';
import { EnrollError } from './enroll-error.ts';
import type { EnrollPorts, EnrollRequest, EnrollResult } from './enroll-ports.ts';
import { type EnrolledKeyRecord, type EnrollmentState, isCurrent, isSameTarget } from './enrollment-state.ts';
import { refusal } from './explanations.ts';
import { EnrollRun } from './run.ts';
import { submitEnrollment } from './submit.ts';

/** @throws EnrollError, or whatever reading the token or writing the state fails with */
export async function enroll(request: EnrollRequest, ports: EnrollPorts): Promise<EnrollResult> {
  const state = await openState(request, ports);
  const { enrolled } = state;
  if (!request.forcesReenrollment && enrolled !== undefined && isUsable(enrolled, request, ports)) {
    return { kind: 'cached', record: enrolled };
  }
  // Before Control hears of anything: a folder that cannot be written to must not cost an enrollment.
  await ports.states.save(state);
  const run = new EnrollRun(request, ports, state);
  if (run.attempt !== undefined) ports.tell({ kind: 'resumed', attempt: run.attempt.kind });
  const resumed = await resume(run);
  const record = resumed !== undefined && isUsable(resumed, request, ports) ? resumed : await enrollAnew(run);
  if (record.key.status !== 'active') throw deadKey(record);
  return { kind: 'enrolled', record };
}

/** What is known of this key, with an attempt only if it is under this target. */
async function openState({ key, target }: EnrollRequest, { states }: EnrollPorts): Promise<EnrollmentState> {
  const keyThumbprint = key.publicKey.thumbprint;
  const kept = await states.load();
  if (kept?.keyThumbprint !== keyThumbprint) {
    return { keyThumbprint, target, enrolled: undefined, attempt: undefined };
  }
  return { ...kept, target, attempt: isSameTarget(kept.target, target) ? kept.attempt : undefined };
}

function isUsable(record: EnrolledKeyRecord, request: EnrollRequest, { nowMs }: EnrollPorts): boolean {
  return isSameTarget(record.target, request.target) && isCurrent(record, request.refreshSkewMs, nowMs());
}

/** Undefined when no enrollment is under way that Control surely has. */
async function resume(run: EnrollRun): Promise<EnrolledKeyRecord | undefined> {
  return run.attempt?.kind === 'submitted' ? awaitDecision(run, run.attempt.enrollmentId) : undefined;
}

async function enrollAnew(run: EnrollRun): Promise<EnrolledKeyRecord> {
  const enrollment = await submitEnrollment(run);
  return (await settle(run, enrollment)) ?? awaitDecision(run, enrollment.enrollmentId);
}

function deadKey({ key }: EnrolledKeyRecord): EnrollError {
  return key.status === 'revoked'
    ? refusal('key_revoked')
    : new EnrollError('refused', 'key_expired', 'the key has expired already: run again with a newer token');
}
