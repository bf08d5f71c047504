/**
 * Creates the documents of a chain for a publisher, and statements about it. Pure: takes contents and keys, returns signed bytes and positions.
 * Each content is parsed back from the signed bytes and validated against its schema, so verifiers never reject its
 * shape. The publisher's own state, or `signContent`, enforces rules across members.
 * Source: docs/design/bundle.md "Signed documents" and "Revision and head".
 */
import { createHash } from 'node:crypto';
import type { SigningKey } from '../../protocol/signing.ts';
import { bundleError } from '../format/bundle-error.ts';
import type { ChainPosition } from '../format/chain.ts';
import { DOCUMENTS, type DocumentKind, signDocument } from '../format/documents.ts';
import { BREAK_GLASS_FILE, BUNDLE_FILE, FRESHNESS_FILE, stepFile } from '../format/file-names.ts';
import { parseContent, positionOf, positionOfLink } from '../format/open-document.ts';
import type {
  BreakGlassContent,
  BundleContent,
  ContentOf,
  DeltaContent,
  FreshnessContent,
  LinkContent,
} from '../format/schema.ts';

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
  const encoded = encode('delta', content, file);
  const position = positionOf(encoded.content, encoded.payload, file);
  return { document: sign('delta', encoded.payload, keys, file), position };
}

/** As {@link signDelta}, for a link. Its position is that of the bundle that it names. */
export function signLink(content: LinkContent, keys: readonly SigningKey[]): SignedStep {
  const file = stepFile('link', content.revision);
  const encoded = encode('link', content, file);
  const position = positionOfLink(encoded.content, file);
  return { document: sign('link', encoded.payload, keys, file), position };
}

/**
 * Signs a whole bundle after checking only its shape. `signContent` also compiles it, which takes about a millisecond
 * for each new key.
 * @param keys one signature each; at least one
 * @throws BundleError as {@link signDelta}
 */
export function signWholeBundle(content: BundleContent, keys: readonly SigningKey[]): SignedWholeBundle {
  const { content: parsed, payload } = encode('bundle', content, BUNDLE_FILE);
  return {
    document: sign('bundle', payload, keys, BUNDLE_FILE),
    position: positionOf(parsed, payload, BUNDLE_FILE),
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
  return sign('freshness', encode('freshness', content, FRESHNESS_FILE).payload, keys, FRESHNESS_FILE);
}

/** As {@link signFreshness}, for a break-glass statement. */
export function signBreakGlass(content: BreakGlassContent, keys: readonly SigningKey[]): Buffer {
  return sign('breakGlass', encode('breakGlass', content, BREAK_GLASS_FILE).payload, keys, BREAK_GLASS_FILE);
}

/** The bytes to sign, and the content that a verifier will read from them. */
function encode<K extends DocumentKind>(kind: K, unchecked: ContentOf[K], file: string) {
  const payload = Buffer.from(JSON.stringify(unchecked));
  return { payload, content: parseContent(kind, payload, file) };
}

function sign(kind: DocumentKind, payload: Buffer, keys: readonly SigningKey[], file: string): Buffer {
  if (keys.length === 0) throw bundleError('signing_key_missing', file, '', 'no key to sign with');
  const { maxBytes, type } = DOCUMENTS[kind];
  const document = signDocument(type, payload, keys);
  if (document.length > maxBytes) {
    throw bundleError('file_too_large', file, '', `${document.length} bytes, at most ${maxBytes}`);
  }
  return document;
}
