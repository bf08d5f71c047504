/** What the client refuses, as errors of the command line: its codes are ours, with an exit code each. */
import { ClientError, type ClientErrorCode } from '../client/client-error.ts';
import { CliError, type FailureKind } from './errors.ts';

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

/** For `catch`: a client's error becomes ours, all else passes. */
export function fromClientError(error: unknown): unknown {
  if (!(error instanceof ClientError)) return error;
  return new CliError(KINDS[error.code] ?? 'usage', error.code, error.message);
}
