/**
 * Creates the documents of a chain for a publisher. Pure: takes contents and keys, returns signed bytes and positions.
 * Each content is parsed back from the signed bytes and validated against its schema, so verifiers never reject its
 * shape. The publisher's own state, or `signContent`, enforces rules across members.
 * Source: docs/bundle.md "Signed documents" and "Revision and head".
 */
import { createHash } from 'node:crypto';
import type { SigningKey } from '../../protocol/signing.ts';
import { bundleError } from '../format/bundle-error.ts';
import type { ChainPosition } from '../format/chain.ts';
import {
  DOCUMENT_TYPES,
  type DocumentType,
  MAX_BUNDLE_BYTES,
  MAX_DELTA_BYTES,
  MAX_FRESHNESS_BYTES,
  MAX_LINK_BYTES,
  parsePayload,
  signDocument,
} from '../format/documents.ts';
import { BUNDLE_FILE, FRESHNESS_FILE, stepFile } from '../format/file-names.ts';
import { positionOf } from '../format/open-bundle.ts';
import { positionOfDelta, positionOfLink } from '../format/open-step.ts';
import type { BundleContent, DeltaContent, FreshnessContent, LinkContent } from '../format/schema.ts';
import { asBundleContent, asDeltaContent, asFreshnessContent, asLinkContent } from '../format/shape.ts';

export interface SignedStep {
  /** The JWS as one line of UTF-8 JSON, as stored and sent. */
  readonly document: Buffer;
  /** Position of the chain after this document. */
  readonly position: ChainPosition;
}

export interface SignedWholeBundle extends SignedStep {
  /** base64url, for a link that names this bundle. */
  readonly payloadSha256: string;
}

/**
 * @param keys one signature each; at least one
 * @throws BundleError `signing_key_missing`, `file_too_large` (publish a whole bundle instead), and errors of the shape
 */
export function signDelta(content: DeltaContent, keys: readonly SigningKey[]): SignedStep {
  const file = stepFile('delta', content.revision);
  const payload = payloadOf(content);
  const position = positionOfDelta(asDeltaContent(parsePayload(payload, file), file), payload, file);
  return {
    document: sign(DOCUMENT_TYPES.delta, payload, keys, { file, maxBytes: MAX_DELTA_BYTES }),
    position,
  };
}

/** As {@link signDelta}, for a link. Its position is that of the bundle that it names. */
export function signLink(content: LinkContent, keys: readonly SigningKey[]): SignedStep {
  const file = stepFile('link', content.revision);
  const payload = payloadOf(content);
  const position = positionOfLink(asLinkContent(parsePayload(payload, file), file), file);
  return { document: sign(DOCUMENT_TYPES.link, payload, keys, { file, maxBytes: MAX_LINK_BYTES }), position };
}

/**
 * Signs a whole bundle after checking only its shape. `signContent` also compiles it, which takes about a millisecond
 * for each new key.
 * @param keys one signature each; at least one
 * @throws BundleError as {@link signDelta}
 */
export function signWholeBundle(content: BundleContent, keys: readonly SigningKey[]): SignedWholeBundle {
  const payload = payloadOf(content);
  const shaped = asBundleContent(parsePayload(payload, BUNDLE_FILE), BUNDLE_FILE);
  const limit = { file: BUNDLE_FILE, maxBytes: MAX_BUNDLE_BYTES };
  return {
    document: sign(DOCUMENT_TYPES.bundle, payload, keys, limit),
    position: positionOf(shaped, payload, BUNDLE_FILE),
    payloadSha256: createHash('sha256').update(payload).digest('base64url'),
  };
}

/**
 * Creates the link for a whole bundle that changes nothing, so that verifiers continue without fetching it.
 * @returns undefined for the first bundle of a chain, because a link needs a previous document
 */
export function linkOf(
  content: BundleContent,
  { payloadSha256 }: SignedWholeBundle,
): LinkContent | undefined {
  const { auth_site, revision, previous_head, issued_at, expires_at } = content;
  if (previous_head === undefined) return undefined;
  return { auth_site, revision, previous_head, bundle_sha256: payloadSha256, issued_at, expires_at };
}

/** As {@link signDelta}, for a freshness statement. It has no position, so only the document is returned. */
export function signFreshness(content: FreshnessContent, keys: readonly SigningKey[]): Buffer {
  const payload = payloadOf(content);
  asFreshnessContent(parsePayload(payload, FRESHNESS_FILE), FRESHNESS_FILE);
  const limit = { file: FRESHNESS_FILE, maxBytes: MAX_FRESHNESS_BYTES };
  return sign(DOCUMENT_TYPES.freshness, payload, keys, limit);
}

function payloadOf(content: object): Buffer {
  return Buffer.from(JSON.stringify(content));
}

function sign(
  type: DocumentType,
  payload: Buffer,
  keys: readonly SigningKey[],
  { file, maxBytes }: { readonly file: string; readonly maxBytes: number },
): Buffer {
  if (keys.length === 0) throw bundleError('signing_key_missing', file, '', 'no key to sign with');
  const document = signDocument(type, payload, keys);
  if (document.length > maxBytes) {
    throw bundleError('file_too_large', file, '', `${document.length} bytes, at most ${maxBytes}`);
  }
  return document;
}
