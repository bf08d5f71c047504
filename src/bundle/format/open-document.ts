/**
 * Opens signed documents: verifies signatures, parses the payload, and checks shape, site, head and times. Compiles and
 * applies nothing.
 * Source: docs/design/bundle.md "Signed documents" and "Revision and head".
 */
import { decodeBase64url } from '../../protocol/base64url.ts';
import { parseTime } from '../../protocol/rfc3339.ts';
import { bundleError, showValue } from './bundle-error.ts';
import { type ChainLink, type ChainPosition, HEAD_BYTES, headOf, headOfHash } from './chain.ts';
import {
  checkSignatures,
  DOCUMENTS,
  type DocumentKind,
  parsePayload,
  readDocument,
  type Signers,
  type UnverifiedDocument,
  verifyDocument,
} from './documents.ts';
import type { StepKind } from './file-names.ts';
import type { BundleContent, ContentOf, DeltaContent, LinkContent } from './schema.ts';
import { asContent } from './shape.ts';
import { type Steps, withoutPause } from './time-slice.ts';

export interface OpenOptions {
  /** Name of the file, for errors. */
  readonly file: string;
  readonly signers: Signers;
  /** The site that the content must name; undefined for callers that serve no site (authoring). */
  readonly authSite: string | undefined;
}

/** Options of a caller that serves a site. */
export interface OpenForSiteOptions extends OpenOptions {
  readonly authSite: string;
}

/** Content that the pinned keys signed. */
interface OpenedContent<K extends DocumentKind> {
  readonly content: ContentOf[K];
  readonly payload: Buffer;
  /** Thumbprints of the keys that signed. */
  readonly signers: readonly string[];
}

/** @throws BundleError for bytes that are not such a document for this site, signed by enough of the pinned keys. */
export function openContent<K extends DocumentKind>(
  kind: K,
  bytes: Buffer,
  options: OpenOptions,
): OpenedContent<K> {
  return withoutPause(openContentInSteps(kind, bytes, options));
}

function* openContentInSteps<K extends DocumentKind>(
  kind: K,
  bytes: Buffer,
  { file, signers, authSite }: OpenOptions,
): Steps<OpenedContent<K>> {
  const verified = verifyDocument({ file, bytes, ...DOCUMENTS[kind] }, signers);
  yield;
  const value = parsePayload(verified.payload, file);
  yield;
  const content = asContent(kind, value, file);
  if (authSite !== undefined) checkAuthSite(content.auth_site, authSite, file);
  return { ...verified, content };
}

/** Parses a payload whose signatures the caller has checked or made. @throws BundleError */
export function parseContent<K extends DocumentKind>(kind: K, payload: Buffer, file: string): ContentOf[K] {
  return asContent(kind, parsePayload(payload, file), file);
}

/** Content with its envelope. */
export interface ReadContent<K extends DocumentKind> {
  readonly kind: K;
  readonly file: string;
  readonly document: UnverifiedDocument;
  readonly content: ContentOf[K];
}

/**
 * Reads a document for tools, which may have no keys to verify it with.
 * @param trusted who must have signed it; undefined disables verification
 * @throws BundleError for bytes that are not such a document, or not signed by them
 */
export function readContent<K extends DocumentKind>(
  kind: K,
  { file, bytes }: { readonly file: string; readonly bytes: Buffer },
  trusted: Signers | undefined,
): ReadContent<K> {
  const document = readDocument({ file, bytes, ...DOCUMENTS[kind] });
  if (trusted !== undefined) checkSignatures(document, { file, ...DOCUMENTS[kind] }, trusted);
  return { kind, file, document, content: parseContent(kind, document.payload, file) };
}

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
export function* openBundleInSteps(bytes: Buffer, options: OpenOptions): Steps<OpenedBundle> {
  const { content, payload, signers } = yield* openContentInSteps('bundle', bytes, options);
  yield;
  return { content, position: positionOf(content, payload, options.file), signers };
}

/** A delta or link as found. */
export interface StepDocument {
  readonly kind: StepKind;
  /** Name of its file, for errors. */
  readonly file: string;
  readonly bytes: Buffer;
}

/** A delta or link that the pinned keys signed. */
export type OpenedStep = OpenedDelta | OpenedLink;

interface OpenedDocument extends ChainLink {
  readonly file: string;
  readonly issuedAtSeconds: number;
}

export interface OpenedDelta extends OpenedDocument {
  readonly kind: 'delta';
  readonly content: DeltaContent;
}

interface OpenedLink extends OpenedDocument {
  readonly kind: 'link';
  readonly expiresAtSeconds: number;
}

/**
 * The kind that a document claims, for files that hold both kinds. Nothing is verified until it is opened as that kind.
 * @throws BundleError `document_type` when it is neither, and errors of a malformed envelope
 */
export function stepKindOf(bytes: Buffer, file: string): StepKind {
  const type = readDocument({ file, bytes, ...DOCUMENTS.delta }).signatures[0]?.type;
  if (type === DOCUMENTS.delta.type) return 'delta';
  if (type === DOCUMENTS.link.type) return 'link';
  throw bundleError('document_type', file, '/signatures/0/protected', 'typ is neither of a delta nor a link');
}

/** @throws BundleError for bytes that are not such a document for this site, signed by enough of the pinned keys. */
export function openStep(kind: StepKind, bytes: Buffer, options: OpenForSiteOptions): OpenedStep {
  return kind === 'delta' ? openDelta(bytes, options) : openLink(bytes, options);
}

function openDelta(bytes: Buffer, options: OpenForSiteOptions): OpenedDelta {
  const { file } = options;
  const { content, payload } = openContent('delta', bytes, options);
  return {
    kind: 'delta',
    file,
    content,
    previousHead: content.previous_head,
    position: positionOf(content, payload, file),
    issuedAtSeconds: secondsOf(content.issued_at, '/issued_at', file),
  };
}

function openLink(bytes: Buffer, options: OpenForSiteOptions): OpenedLink {
  const { file } = options;
  const { content } = openContent('link', bytes, options);
  const issuedAtSeconds = secondsOf(content.issued_at, '/issued_at', file);
  const expiresAtSeconds = secondsOf(content.expires_at, '/expires_at', file);
  if (issuedAtSeconds >= expiresAtSeconds) {
    throw bundleError('time_order', file, '/expires_at', 'not after issued_at');
  }
  return {
    kind: 'link',
    file,
    previousHead: content.previous_head,
    position: positionOfLink(content, file),
    issuedAtSeconds,
    expiresAtSeconds,
  };
}

/** @throws BundleError `auth_site_mismatch` */
export function checkAuthSite(found: string, wanted: string, file: string): void {
  if (found === wanted) return;
  const text = `${showValue(found)}, but this is ${showValue(wanted)}`;
  throw bundleError('auth_site_mismatch', file, '/auth_site', text);
}

/** @throws BundleError `time_invalid` */
export function secondsOf(text: string, path: string, file: string): number {
  const seconds = parseTime(text);
  if (seconds === undefined) throw bundleError('time_invalid', file, path, `${showValue(text)} is no moment`);
  return seconds;
}

/**
 * The revision and the head that the payload of a bundle or delta results in.
 * @throws BundleError `value_invalid` when `previous_head` is not canonical
 */
export function positionOf(
  content: Pick<BundleContent, 'previous_head' | 'revision'>,
  payload: Uint8Array,
  file: string,
): ChainPosition {
  const head = headOf(content.previous_head, payload);
  if (head === undefined) throw notCanonical(file, '/previous_head');
  return { revision: content.revision, head };
}

/**
 * The position of the whole bundle that the link names.
 * @throws BundleError `value_invalid` when a hash is not canonical
 */
export function positionOfLink(content: LinkContent, file: string): ChainPosition {
  const payloadSha256 = decodeBase64url(content.bundle_sha256);
  if (payloadSha256?.length !== HEAD_BYTES) throw notCanonical(file, '/bundle_sha256');
  const head = headOfHash(content.previous_head, payloadSha256);
  if (head === undefined) throw notCanonical(file, '/previous_head');
  return { revision: content.revision, head };
}

function notCanonical(file: string, path: string) {
  return bundleError('value_invalid', file, path, 'not 32 bytes in canonical base64url');
}
