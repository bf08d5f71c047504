/** Updates the state of an enrolled key from Control, such as its signing profiles. The key stays the same. */
import { stat } from 'node:fs/promises';
import { readCaFile } from '../../process/files/input-files.ts';
import { usageError } from '../../process/program/errors.ts';
import { ServiceHttp } from '../service/service-http.ts';
import { ControlClient } from './control-client.ts';
import { parseControlUrl } from './control-url.ts';
import type { ReadinessQuestion } from './enroll-with-files.ts';
import { isSameKey } from './enrollment-state.ts';
import { EnrollmentStateFile, readEnrolledKeyFile, settledKeyFile, statePathOf } from './state-file.ts';
import { formatEnrollmentState } from './state-format.ts';

/**
 * Changes nothing when Control does not answer, when the key is not active, or during an enrollment.
 * @returns whether the state file changed
 * @throws EnrollError, ClientError, CliError for the files
 */
export async function refreshEnrolledKey(
  givenKeyFile: string,
  question: ReadinessQuestion,
  nowMs: () => number = Date.now,
): Promise<boolean> {
  const keyFile = await settledKeyFile(givenKeyFile);
  const { key, state } = await readEnrolledKeyFile(keyFile);
  const { enrolled } = state;
  if (enrolled === undefined || state.attempt !== undefined) return false;
  const { target } = enrolled;
  const url = parseControlUrl(question.controlUrl ?? target.controlUrl);
  const http = new ServiceHttp({ url, caPem: await readCaFile(question.controlCaFile) });
  const client = new ControlClient({ http, target, key, nowMs });
  const verdict = await client.poll(enrolled.enrollmentId, question).finally(() => http.close());
  if (verdict.kind !== 'done' || verdict.value.state !== 'issued') return false;
  const found = verdict.value.key;
  if (found.keyId !== enrolled.key.keyId || found.status !== 'active') return false;
  if (isSameKey(found, enrolled.key)) return false;
  const file = new EnrollmentStateFile(keyFile);
  const now = await file.load();
  // Another program has written newer state meanwhile.
  if (now === undefined || formatEnrollmentState(now) !== formatEnrollmentState(state)) return false;
  await refuseUnlessOwn(statePathOf(keyFile));
  await file.save({ ...state, enrolled: { ...enrolled, key: found } });
  return true;
}

/**
 * Replacing a file makes the caller its owner, so the former owner could no longer read it.
 * @throws CliError `file_not_written`
 */
async function refuseUnlessOwn(path: string): Promise<void> {
  const { uid } = await stat(path);
  if (uid === process.getuid?.()) return;
  throw usageError('file_not_written', `${path} belongs to another user: only that user renews it`);
}
