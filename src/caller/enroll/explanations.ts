/**
 * Explains Control's error codes to the user. Control's own texts are not shown: an unauthenticated server's text could
 * contain anything, including the token.
 */

import type { NoAnswerCause } from '../service/service-http.ts';
import type { Fault } from '../service/service-verdict.ts';
import { EnrollError, type EnrollFault } from './enroll-error.ts';

const REFUSALS: { readonly [code: string]: string } = {
  policy_unknown: 'Control knows no such policy: copy --policy from the generated command',
  policy_not_active: 'the enrollment policy is deactivated or deleted',
  policy_rebound: 'the policy was bound to another source meanwhile: run again to enroll anew',
  policy_issuer_mismatch:
    'the source has another issuer now than the policy names: an operator has to rebind the policy',
  policy_revision_outdated:
    'the policy is bound to a revision of its source that is no longer the active one',
  source_not_active:
    'the Trust Anchor Source of the policy is still publishing, suspended or retired: operators see which with proofgate ctl get sources',
  unsupported_enrollment_provider: 'Control does not accept this provider',
  public_key_invalid: 'Control does not accept this public key',
  key_revoked:
    'this key was revoked and is refused for ever: enroll a new one with --private-key-out NEWFILE',
  challenge_unknown: 'Control does not know the challenge any more: run again',
  challenge_expired: 'the challenge expired before it was answered: run again',
  challenge_consumed: 'the challenge was answered by another submission: run again',
  signature_invalid: "invalid signature: --control-url must be one of Control's public URLs",
  subject_blocked: "the policy's subject is blocked: an operator has to lift that",
  token_key_limit: 'this token has enrolled as many keys as it may: wait for the next token',
  request_malformed: 'Control does not understand the request: are both of one version?',
  enrollment_unknown: 'Control does not know the enrollment any more: run again to enroll anew',
  poll_unauthorized: "Control does not take the key's word: does this machine's clock agree with Control's?",
  not_found: 'there is a Control, but no enrollment at this path: is --control-url its base URL?',
  token_algorithm:
    "the workload token is signed with an algorithm that Control or the issuer's key does not take",
  token_key_unknown: "the workload token is signed with a key that its source's issuer does not publish",
  token_signature:
    "the workload token's signature is invalid: is the token complete, and from the policy's source?",
  token_issuer: "the workload token is from another issuer than the policy's source",
  token_audience:
    "the workload token is not for the source's audience alone: project one with that audience (the pod's default token is for the cluster's API)",
  token_subject:
    "the workload token is of another subject, such as another service account, than the policy's",
  token_expired: 'the workload token has expired: wait for the next one, or project a new one',
  token_expiry_missing: 'the workload token never expires: project one that does',
  token_not_yet_valid: "the workload token is not valid yet: do the issuer's and Control's clocks agree?",
  token_lifetime: 'the workload token lives longer than 48 h: project a shorter one (expirationSeconds)',
};

const TOKEN_REFUSED = 'Control does not take the workload token: it is not in the form that it must have';

export function refusal(code: string): EnrollError {
  const known = REFUSALS[code] ?? (code.startsWith('token_') ? TOKEN_REFUSED : 'Control refused');
  return new EnrollError('refused', code, known);
}

export function denied(denialCode: string): EnrollError {
  // These codes are not an operator's decision about this enrollment, so the caller may enroll again.
  if (Object.hasOwn(REFUSALS, denialCode)) return refusal(denialCode);
  return new EnrollError('refused', 'enrollment_denied', `the enrollment was denied: ${denialCode}`);
}

export function expiredEnrollment(): EnrollError {
  const text =
    'no operator approved the enrollment before its key would have ended, with the token or by the policy: run again to enroll anew';
  return new EnrollError('refused', 'enrollment_expired', text);
}

/** Describes the last fault, as part of a sentence. */
export function describeFault(fault: Fault): string {
  switch (fault.kind) {
    case 'refused':
    case 'later':
      return fault.code;
    case 'unreachable':
      return `no connection (${fault.cause})`;
    case 'unclear':
      return CAUSES[fault.cause];
  }
}

const CAUSES = {
  timed_out: 'no answer in time',
  stopped: 'stopped',
  connection_lost: 'the connection was lost',
  answer_invalid: "the answer is not one of Control's",
} as const;

/** The error when nothing was submitted and the retries are used up. */
export function gaveUp(fault: Exclude<Fault, { readonly kind: 'refused' }>): EnrollError {
  switch (fault.kind) {
    case 'later':
      return fault.code === 'rate_limited'
        ? new EnrollError('pending', fault.code, 'Control is throttling: run again later', fault.retryAfterMs)
        : new EnrollError(
            'unreachable',
            fault.code,
            'Control cannot answer now: run again later',
            fault.retryAfterMs,
          );
    case 'unreachable':
      return new EnrollError('unreachable', 'unreachable', notReached(fault.cause));
    case 'unclear':
      return new EnrollError(...UNCLEAR[fault.cause]);
  }
}

const UNCLEAR: { readonly [C in NoAnswerCause]: readonly [EnrollFault, string, string] } = {
  timed_out: ['pending', 'timed_out', 'Control did not answer in time: run again'],
  stopped: ['pending', 'interrupted', 'stopped before anything was submitted: run again'],
  connection_lost: [
    'unreachable',
    'unreachable',
    'Control cannot be reached: the connection was lost; does --control-url say https:// or http:// as Control does?',
  ],
  answer_invalid: [
    'unreachable',
    'control_answer_invalid',
    'what answers at --control-url is no Control: check the URL',
  ],
};

function notReached(cause: string): string {
  const isCertificate = /CERT|SIGN|UNABLE/.test(cause);
  const hint = isCertificate
    ? ': its certificate is not trusted; --control-ca-file names whom to trust'
    : ': is --control-url right, and Control running?';
  return `Control cannot be reached (${cause})${hint}`;
}

/** The error when a submission may have been accepted, but no response arrived in any attempt. */
export function unconfirmed(fault: Fault): EnrollError {
  return new EnrollError(
    'pending',
    'submission_unconfirmed',
    `Control may have accepted the submission (last: ${describeFault(fault)}): run the same command again, which makes the same submission`,
    fault.kind === 'later' ? fault.retryAfterMs : undefined,
  );
}

/** The error when Control has the enrollment and has not decided. */
export function stillPending(enrollmentId: string, why: string, retryAfterMs?: number): EnrollError {
  return new EnrollError(
    'pending',
    'enrollment_pending',
    `enrollment ${enrollmentId} is pending (${why}): run the same command again to go on waiting`,
    retryAfterMs,
  );
}
