/**
 * Opens deltas and links: verifies signatures, parses the payload, and checks shape, site, head and times. Applies
 * nothing.
 * Source: docs/bundle.md "Signed documents" and "Revision and head".
 */
import { decodeBase64url } from '../../protocol/base64url.ts';
import { parseTime } from '../../protocol/rfc3339.ts';
import { bundleError, showValue } from './bundle-error.ts';
import { type ChainLink, type ChainPosition, HEAD_BYTES, headOf, headOfHash } from './chain.ts';
import {
  DOCUMENT_TYPES,
  MAX_DELTA_BYTES,
  MAX_LINK_BYTES,
  parsePayload,
  readDocument,
  type Signers,
  verifyDocument,
} from './documents.ts';
import type { StepKind } from './file-names.ts';
import { checkAuthSite } from './open-bundle.ts';
import type { DeltaContent, LinkContent } from './schema.ts';
import { asDeltaContent, asLinkContent } from './shape.ts';

/** A delta or link as found. */
export interface StepDocument {
  readonly kind: StepKind;
  /** Name of its file, for errors. */
  readonly file: string;
  readonly bytes: Buffer;
}

export interface OpenStepOptions {
  /** Name of the file, for errors. */
  readonly file: string;
  readonly signers: Signers;
  readonly authSite: string;
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
  const type = readDocument({ file, bytes, maxBytes: MAX_DELTA_BYTES }).signatures[0]?.type;
  if (type === DOCUMENT_TYPES.delta) return 'delta';
  if (type === DOCUMENT_TYPES.link) return 'link';
  throw bundleError('document_type', file, '/signatures/0/protected', 'typ is neither of a delta nor a link');
}

/** @throws BundleError for bytes that are not such a document for this site, signed by enough of the pinned keys. */
export function openStep(kind: StepKind, bytes: Buffer, options: OpenStepOptions): OpenedStep {
  return kind === 'delta' ? openDelta(bytes, options) : openLink(bytes, options);
}

function openDelta(bytes: Buffer, { file, signers, authSite }: OpenStepOptions): OpenedDelta {
  const document = { file, type: DOCUMENT_TYPES.delta, bytes, maxBytes: MAX_DELTA_BYTES };
  const { payload } = verifyDocument(document, signers);
  const content = asDeltaContent(parsePayload(payload, file), file);
  checkAuthSite(content.auth_site, authSite, file);
  return {
    kind: 'delta',
    file,
    content,
    previousHead: content.previous_head,
    position: positionOfDelta(content, payload, file),
    issuedAtSeconds: momentOf(content.issued_at, '/issued_at', file),
  };
}

function openLink(bytes: Buffer, { file, signers, authSite }: OpenStepOptions): OpenedLink {
  const document = { file, type: DOCUMENT_TYPES.link, bytes, maxBytes: MAX_LINK_BYTES };
  const { payload } = verifyDocument(document, signers);
  const content = asLinkContent(parsePayload(payload, file), file);
  checkAuthSite(content.auth_site, authSite, file);
  const issuedAtSeconds = momentOf(content.issued_at, '/issued_at', file);
  const expiresAtSeconds = momentOf(content.expires_at, '/expires_at', file);
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

function momentOf(text: string, path: string, file: string): number {
  const seconds = parseTime(text);
  if (seconds === undefined) throw bundleError('time_invalid', file, path, `${showValue(text)} is no moment`);
  return seconds;
}

/** @throws BundleError `value_invalid` when `previous_head` is not canonical */
export function positionOfDelta(content: DeltaContent, payload: Uint8Array, file: string): ChainPosition {
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
