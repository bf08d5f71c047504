/**
 * The texts that a workload signs during enrollment. The first proves possession of the new key, bound to one Control,
 * policy, challenge and workload token. The second authenticates polls of the enrollment's status.
 * Source: docs/design/enrollment.md "Enrollment".
 */
import { hash } from 'node:crypto';

/** Scheme of the `Authorization` header with which a workload polls its own enrollment. */
export const POLL_SCHEME = 'Proofgate-Key';
/** Maximum difference between the poll's time and the server's clock, in both directions. */
export const POLL_WINDOW_SECONDS = 60;

export interface EnrollmentStatement {
  /** Base URL of Control exactly as configured at the client, without a trailing slash. */
  readonly controlUrl: string;
  /** The opaque policy reference. */
  readonly policyReference: string;
  readonly challengeId: string;
  /** base64url, 256 bits. */
  readonly challenge: string;
  /** RFC 7638 thumbprint of the new key. */
  readonly keyThumbprint: string;
  /** The projected service account token, a compact JWS. The text contains only its SHA-256. */
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

/** The bytes that the key signs to poll its enrollment. @param timeSeconds whole seconds since the epoch */
export function pollText(enrollmentId: string, timeSeconds: number): Buffer {
  return lines(['proofgate-poll-v1', `enrollment-id=${enrollmentId}`, `time=${timeSeconds}`]);
}

/** Ends each line with one LF. A value cannot contain one: all are URLs, identifiers or base64url. */
function lines(texts: readonly string[]): Buffer {
  return Buffer.from(texts.map((text) => `${text}\n`).join(''), 'utf8');
}
