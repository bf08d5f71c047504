/** What the client refuses, as errors of the command line: its codes are ours, with an exit code each. */
import { ClientError, type ClientErrorCode } from '../client/client-error.ts';
import { EnrollError, type EnrollFault } from '../client/enroll/enroll-error.ts';
import { CliError, type FailureKind } from '../program/errors.ts';

/** Codes that are not wrong usage. */
const KINDS: { readonly [C in ClientErrorCode]?: FailureKind } = {
  origin_not_allowed: 'refused',
  passport_expired: 'refused',
  passport_mismatch: 'refused',
  passport_required: 'refused',
  timed_out: 'timed_out',
  unreachable: 'unreachable',
  response_incomplete: 'unreachable',
};

const ENROLL_KINDS: { readonly [F in EnrollFault]: FailureKind } = {
  usage: 'usage',
  refused: 'refused',
  pending: 'timed_out',
  unreachable: 'unreachable',
};

/** For `catch`: a client's error becomes ours, all else passes. */
export function fromClientError(error: unknown): unknown {
  if (error instanceof EnrollError) return new CliError(ENROLL_KINDS[error.kind], error.code, error.message);
  if (!(error instanceof ClientError)) return error;
  return new CliError(KINDS[error.code] ?? 'usage', error.code, error.message);
}
