/** Faults of this machine, not of a document: the same one may be taken when they are gone. */
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
