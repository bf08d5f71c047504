/**
 * Errors of the libraries, as errors of the command line: the codes stay, and each gets its exit code here. The program
 * loads this only when a command fails.
 */
import { BundleError, type BundleErrorCode, describeFault } from '../../bundle/format/bundle-error.ts';
import { BrokerError } from '../../caller/broker/broker-error.ts';
import { EnrollError, type EnrollFault } from '../../caller/enroll/enroll-error.ts';
import { CliError, type FailureKind, toCliError } from '../../process/program/errors.ts';
import { ClientError, type ClientErrorCode } from '../../protocol/client-error.ts';
import { ExplainInputError } from '../../verifier/explain/explain-input-error.ts';
import { OperatorError } from '../ctl/client/operator-error.ts';

/** Codes that are not usage errors. */
const CLIENT_KINDS: { readonly [C in ClientErrorCode]?: FailureKind } = {
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

/** Codes of usage errors; every other code is about a rejected bundle. */
const BUNDLE_USAGE: ReadonlySet<BundleErrorCode> = new Set([
  'file_missing',
  'file_unreadable',
  'file_not_regular',
  'file_too_large',
  'file_not_written',
  'signing_key_missing',
  'previous_bundle',
  'state_dir_in_use',
]);

/** Converts any thrown value to the error to show. */
export function fromLibraryError(error: unknown): CliError {
  if (error instanceof OperatorError) return new CliError(error.kind, error.code, error.message);
  if (error instanceof EnrollError) return new CliError(ENROLL_KINDS[error.kind], error.code, error.message);
  if (error instanceof BrokerError) return new CliError(error.kind, error.code, error.message);
  if (error instanceof ClientError) {
    return new CliError(CLIENT_KINDS[error.code] ?? 'usage', error.code, error.message);
  }
  if (error instanceof ExplainInputError) return new CliError('usage', error.code, error.message);
  return error instanceof BundleError ? fromBundleError(error) : toCliError(error);
}

function fromBundleError(error: BundleError): CliError {
  const [first, ...more] = error.faults.map(describeFault);
  const others = more.length === 0 ? '' : ` (and ${more.length} more: bundle lint lists them)`;
  return new CliError(isRejectedBundle(error) ? 'refused' : 'usage', error.code, `${first}${others}`);
}

/** Whether the error is about a bundle's content, not about reaching its files. */
export function isRejectedBundle(error: unknown): error is BundleError {
  return error instanceof BundleError && !BUNDLE_USAGE.has(error.code);
}
