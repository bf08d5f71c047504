/** Error codes that stem from this machine, not from a document: retrying the same document may succeed later. */
import type { BundleErrorCode } from '../../bundle/format/bundle-error.ts';

export const PASSING: ReadonlySet<BundleErrorCode> = new Set([
  'file_unreadable',
  'file_not_written',
  'mark_corrupt',
  'mark_unavailable',
  'mark_of_another_site',
  // The clock may have been ahead.
  'expired',
  'internal',
]);
