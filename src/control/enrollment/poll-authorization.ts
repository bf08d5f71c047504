/**
 * The `Authorization` header of a workload's poll: a timestamp and a signature over it by the enrolling key.
 * Source: docs/control.md "Enrollment".
 */
import { decodeBase64url } from '../../protocol/base64url.ts';
import { POLL_SCHEME, POLL_WINDOW_SECONDS, pollText } from '../../protocol/enrollment.ts';
import { parsePositiveInteger } from '../../protocol/identifiers.ts';
import type { PublicKey } from '../../protocol/public-key.ts';
import { verifySignature } from '../../protocol/signature.ts';

/** The scheme is case-insensitive (RFC 9110 section 11.1); the rest has one spelling. */
const AUTHORIZATION = /^([A-Za-z0-9-]{1,64}) ([0-9]{1,16})\.([A-Za-z0-9_-]{1,128})$/;

export interface PollWord {
  readonly timeSeconds: number;
  readonly signature: Uint8Array;
}

/** Undefined for a header of another scheme or form. @param authorization the header's value */
export function readPollWord(authorization: string | undefined): PollWord | undefined {
  const [, scheme = '', time = '', text = ''] = AUTHORIZATION.exec(authorization ?? '') ?? [];
  if (scheme.toLowerCase() !== POLL_SCHEME.toLowerCase()) return undefined;
  const timeSeconds = parsePositiveInteger(time);
  const signature = decodeBase64url(text);
  return timeSeconds === undefined || signature === undefined ? undefined : { timeSeconds, signature };
}

/** Whether the signature is by the enrollment's key and the timestamp is current. */
export function pollWordHolds(
  { timeSeconds, signature }: PollWord,
  enrollmentId: string,
  key: PublicKey,
  nowMs: number,
): boolean {
  if (Math.abs(Math.floor(nowMs / 1000) - timeSeconds) > POLL_WINDOW_SECONDS) return false;
  return verifySignature(key, pollText(enrollmentId, timeSeconds), signature);
}
