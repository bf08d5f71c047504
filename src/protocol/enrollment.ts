/**
 * What a workload signs while it enrolls: proof that it holds the new key, bound to one Control, policy, challenge
 * and workload token; and the short-lived word with which it asks how its enrollment stands.
 * Bytes in, bytes out. Source: docs/control.md "Enrollment".
 */
import { hash } from 'node:crypto';

/** Scheme of the `Authorization` header with which a workload polls its own enrollment. */
export const POLL_SCHEME = 'Proofgate-Key';
/** How far the poll's time may be from the server's clock, both ways. */
export const POLL_WINDOW_SECONDS = 60;

export interface EnrollmentStatement {
  /** Base URL of Control exactly as the client was given it, without a trailing slash. */
  readonly controlUrl: string;
  /** The opaque policy reference. */
  readonly policyReference: string;
  readonly challengeId: string;
  /** base64url, 256 bits. */
  readonly challenge: string;
  /** RFC 7638 thumbprint of the new key. */
  readonly keyThumbprint: string;
  /** The projected service-account token, a compact JWS. Only its SHA-256 is in the text. */
  readonly workloadToken: string;
}

/** The bytes that the new key signs to submit an enrollment. */
export function enrollmentText(statement: EnrollmentStatement): Buffer {
  return lines([
    'proofgate-enroll-v1',
    `control-url=${statement.controlUrl}`,
    `policy=${statement.policyReference}`,
    `challenge-id=${statement.challengeId}`,
    `challenge=${statement.challenge}`,
    `key-thumbprint=${statement.keyThumbprint}`,
    `token-sha256=${hash('sha256', statement.workloadToken, 'base64url')}`,
  ]);
}

/** The bytes that the key signs to ask for its enrollment's state. @param timeSeconds whole seconds since the epoch */
export function pollText(enrollmentId: string, timeSeconds: number): Buffer {
  return lines(['proofgate-poll-v1', `enrollment-id=${enrollmentId}`, `time=${timeSeconds}`]);
}

/** Each line ended by one LF. A value cannot hold one: all are URLs, identifiers or base64url. */
function lines(texts: readonly string[]): Buffer {
  return Buffer.from(texts.map((text) => `${text}\n`).join(''), 'utf8');
}
