/** What `src/bundle` refuses, as errors of the command line: its codes are ours. */
import { BundleError, type BundleErrorCode, type BundleFault } from '../../bundle/format/bundle-error.ts';
import { CliError } from '../../program/errors.ts';

/** A wrong call; everything else is a bundle that is refused. */
const USAGE: ReadonlySet<BundleErrorCode> = new Set([
  'file_missing',
  'file_unreadable',
  'file_not_regular',
  'file_too_large',
  'file_not_written',
  'signing_key_missing',
  'previous_bundle',
  'state_dir_in_use',
]);

/** For `catch`: a bundle's error becomes ours, all else passes. */
export function fromBundleError(error: unknown): unknown {
  if (!(error instanceof BundleError)) return error;
  const [first, ...more] = error.faults.map(describeFault);
  const others = more.length === 0 ? '' : ` (and ${more.length} more: bundle lint lists them)`;
  return new CliError(USAGE.has(error.code) ? 'usage' : 'refused', error.code, `${first}${others}`);
}

export function describeFault({ file, path, text }: BundleFault): string {
  return path === '' ? `${file}: ${text}` : `${file}: ${path}: ${text}`;
}

/** Whether the error is about a bundle's content, not about reaching its files. */
export function isRefusedBundle(error: unknown): error is BundleError {
  return error instanceof BundleError && !USAGE.has(error.code);
}
