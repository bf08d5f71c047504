/** Opens a bundle's file: verifies signatures, parses the payload, and checks shape, site and head. Compiles nothing. */

import { bundleError, showValue } from './bundle-error.ts';
import { type ChainPosition, headOf } from './chain.ts';
import { DOCUMENT_TYPES, MAX_BUNDLE_BYTES, parsePayload, type Signers, verifyDocument } from './documents.ts';
import type { BundleContent } from './schema.ts';
import { asBundleContent } from './shape.ts';
import { type Steps, withoutPause } from './time-slice.ts';

export interface OpenOptions {
  /** Name of the file, for errors. */
  readonly file: string;
  readonly signers: Signers;
  /** The site that the content must name; undefined for callers that serve no site (authoring). */
  readonly authSite: string | undefined;
}

/** Content that the pinned keys signed. */
export interface OpenedBundle {
  readonly content: BundleContent;
  readonly position: ChainPosition;
  /** Thumbprints of the keys that signed. */
  readonly signers: readonly string[];
}

/** @throws BundleError for bytes that are not a bundle for this site, signed by enough of the pinned keys. */
export function openBundle(bytes: Buffer, options: OpenOptions): OpenedBundle {
  return withoutPause(openBundleInSteps(bytes, options));
}

/** As {@link openBundle}, pausing between its parts, each of which takes tens of milliseconds for a large bundle. */
export function* openBundleInSteps(
  bytes: Buffer,
  { file, signers, authSite }: OpenOptions,
): Steps<OpenedBundle> {
  const document = { file, type: DOCUMENT_TYPES.bundle, bytes, maxBytes: MAX_BUNDLE_BYTES };
  const verified = verifyDocument(document, signers);
  yield;
  const value = parsePayload(verified.payload, file);
  yield;
  const content = asBundleContent(value, file);
  if (authSite !== undefined) checkAuthSite(content.auth_site, authSite, file);
  yield;
  return { content, position: positionOf(content, verified.payload, file), signers: verified.signers };
}

/** @throws BundleError `auth_site_mismatch` */
export function checkAuthSite(found: string, wanted: string, file: string): void {
  if (found === wanted) return;
  const text = `${showValue(found)}, but this is ${showValue(wanted)}`;
  throw bundleError('auth_site_mismatch', file, '/auth_site', text);
}

/**
 * The revision and the head that a payload results in.
 * @throws BundleError `value_invalid` when `previous_head` is not canonical
 */
export function positionOf(content: BundleContent, payload: Uint8Array, file: string): ChainPosition {
  const head = headOf(content.previous_head, payload);
  if (head === undefined) {
    throw bundleError('value_invalid', file, '/previous_head', 'not 32 bytes in canonical base64url');
  }
  return { revision: content.revision, head };
}
