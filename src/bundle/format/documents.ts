/**
 * Signs and verifies documents: JWS JSON, general serialization (RFC 7515 section 7.2.1), so that several keys may
 * sign. Verifiers pin the keys and never take them from a file. Signatures are checked before a payload is parsed.
 * Source: docs/design/bundle.md "Signed documents".
 */
import { decodeBase64url } from '../../protocol/base64url.ts';
import type { PublicKey, SignatureAlgorithm } from '../../protocol/public-key.ts';
import { SIGNATURE_BYTES, signMessage } from '../../protocol/signature.ts';
import type { SigningKey } from '../../protocol/signing.ts';
import {
  hasExactMembers,
  isJsonObject,
  parseStrictJson,
  StrictJsonError,
} from '../../protocol/strict-json.ts';
import { verifySignature } from '../../protocol/verify-signature.ts';
import { bundleError } from './bundle-error.ts';

/**
 * `type`: `typ` of each signature's protected header identifies the kind of document, so that one cannot pass as another.
 * `maxBytes`: maximum size of the file, checked before parsing.
 */
export const DOCUMENTS = {
  bundle: { type: 'proofgate-bundle+jws', maxBytes: 64 * 1024 * 1024 },
  delta: { type: 'proofgate-delta+jws', maxBytes: 16 * 1024 * 1024 },
  link: { type: 'proofgate-link+jws', maxBytes: 64 * 1024 },
  freshness: { type: 'proofgate-freshness+jws', maxBytes: 64 * 1024 },
  breakGlass: { type: 'proofgate-break-glass+jws', maxBytes: 64 * 1024 },
} as const;
export type DocumentKind = keyof typeof DOCUMENTS;
export type DocumentType = (typeof DOCUMENTS)[DocumentKind]['type'];

export const MAX_SHARD_BYTES = 64 * 1024 * 1024;
const MAX_SIGNATURES = 16;
const MAX_HEADER_CHARACTERS = 512;

/** Who may sign one kind of document, and how many of them must. */
export interface Signers {
  readonly keys: readonly PublicKey[];
  /** Number of distinct key thumbprints required, at least 1. */
  readonly threshold: number;
}

export interface DocumentToVerify {
  /** Name of the file, for errors. */
  readonly file: string;
  readonly type: DocumentType;
  readonly bytes: Buffer;
  readonly maxBytes: number;
}

export interface VerifiedDocument {
  /** The signed bytes: UTF-8 JSON, not parsed yet. */
  readonly payload: Buffer;
  /** Distinct thumbprints of the pinned keys that signed. */
  readonly signers: readonly string[];
}

/** One signature as it is in the document. Nothing in it is verified. */
export interface DocumentSignature {
  readonly keyId: string;
  readonly algorithm: SignatureAlgorithm;
  readonly type: string;
  /** The protected header as it is in the document, which the signature covers. */
  readonly encodedHeader: string;
  readonly signature: Buffer;
}

/** A document's decoded envelope. Nothing in it is verified. */
export interface UnverifiedDocument {
  readonly payload: Buffer;
  /** The payload as it is in the document, which the signatures cover. */
  readonly encodedPayload: string;
  readonly signatures: readonly DocumentSignature[];
}

/**
 * Verifies the signatures before it reads the payload. Signatures by keys that are not pinned are ignored. An invalid
 * signature that claims a pinned key rejects the document.
 * @throws BundleError `file_too_large`, `document_malformed`, `header_malformed`, `document_type`,
 *   `signature_invalid`, `signatures_insufficient`
 */
export function verifyDocument(document: DocumentToVerify, signers: Signers): VerifiedDocument {
  const read = readDocument(document);
  return { payload: read.payload, signers: checkSignatures(read, document, signers) };
}

/**
 * The rule of {@link verifyDocument} for a decoded envelope.
 * @returns distinct thumbprints of the pinned keys that signed
 * @throws BundleError `document_type`, `signature_invalid`, `signatures_insufficient`
 */
export function checkSignatures(
  read: UnverifiedDocument,
  { file, type }: Pick<DocumentToVerify, 'file' | 'type'>,
  signers: Signers,
): readonly string[] {
  const holding = new Set<string>();
  read.signatures.forEach((signature, index) => {
    const path = `/signatures/${index}`;
    if (signature.type !== type) {
      throw bundleError('document_type', file, `${path}/protected`, `typ must be ${type}`);
    }
    const key = signers.keys.find(({ thumbprint }) => thumbprint === signature.keyId);
    if (key === undefined) return;
    if (!signatureHolds(read, signature, key)) {
      throw bundleError('signature_invalid', file, path, `signature of ${key.thumbprint} is invalid`);
    }
    holding.add(key.thumbprint);
  });
  const needed = Math.max(1, signers.threshold);
  if (holding.size < needed) {
    const text = `signed by ${holding.size} of the pinned keys, ${needed} needed`;
    throw bundleError('signatures_insufficient', file, '/signatures', text);
  }
  return [...holding];
}

/** Whether the signature is valid under this key, with this key's algorithm. */
export function signatureHolds(
  document: UnverifiedDocument,
  signature: DocumentSignature,
  key: PublicKey,
): boolean {
  if (signature.keyId !== key.thumbprint || signature.algorithm !== key.algorithm) return false;
  return verifySignature(key, signingInput(signature.encodedHeader, document), signature.signature);
}

/** RFC 7515 section 5.1, step 8. */
function signingInput(encodedHeader: string, document: { readonly encodedPayload: string }): Buffer {
  return Buffer.from(`${encodedHeader}.${document.encodedPayload}`, 'latin1');
}

/**
 * Decodes the envelope without verifying it.
 * @throws BundleError `file_too_large`, `document_malformed`, `header_malformed`
 */
export function readDocument(document: Omit<DocumentToVerify, 'type'>): UnverifiedDocument {
  const { file, bytes, maxBytes } = document;
  if (bytes.length > maxBytes) {
    throw bundleError('file_too_large', file, '', `${bytes.length} bytes, at most ${maxBytes}`);
  }
  const { outside, found } = setPayloadApart(bytes);
  if (outside.length > MAX_ENVELOPE_BYTES) {
    throw bundleError(
      'document_malformed',
      file,
      '',
      `more than ${MAX_ENVELOPE_BYTES} bytes beside the payload`,
    );
  }
  const envelope = parseJson(outside, 'document_malformed', file);
  if (!isJsonObject(envelope) || !hasExactMembers(envelope, ['payload', 'signatures'])) {
    throw bundleError('document_malformed', file, '', 'members must be payload and signatures');
  }
  const { signatures } = envelope;
  // The text that was cut out must have been the payload member, not a similar text elsewhere.
  const payload = found === undefined ? envelope.payload : envelope.payload === '' ? found : undefined;
  const payloadBytes = typeof payload === 'string' ? decodeBase64url(payload) : undefined;
  if (typeof payload !== 'string' || payloadBytes === undefined) {
    throw bundleError('document_malformed', file, '/payload', 'not canonical base64url');
  }
  if (!Array.isArray(signatures) || signatures.length === 0 || signatures.length > MAX_SIGNATURES) {
    throw bundleError('document_malformed', file, '/signatures', `not a list of 1 to ${MAX_SIGNATURES}`);
  }
  return {
    payload: payloadBytes,
    encodedPayload: payload,
    signatures: signatures.map((entry, index) => readSignature(entry, file, index)),
  };
}

/** Enough for {@link MAX_SIGNATURES} signatures. */
const MAX_ENVELOPE_BYTES = 32 * 1024;
const PAYLOAD_MEMBER = /"payload"\s*:\s*"([A-Za-z0-9_-]+)"/;

/**
 * Splits off the payload's text. Anyone who can write the file controls its content, so only a small envelope is parsed
 * as JSON before signatures are checked: 64 MiB of nested objects would block the process for half a minute.
 */
function setPayloadApart(bytes: Buffer): { readonly outside: Buffer; readonly found: string | undefined } {
  const match = PAYLOAD_MEMBER.exec(bytes.toString('latin1'));
  const found = match?.[1];
  if (match === null || found === undefined) return { outside: bytes, found: undefined };
  const end = match.index + match[0].length - 1;
  const outside = Buffer.concat([bytes.subarray(0, end - found.length), bytes.subarray(end)]);
  return { outside, found };
}

function readSignature(entry: unknown, file: string, index: number): DocumentSignature {
  const path = `/signatures/${index}`;
  if (!isJsonObject(entry) || !hasExactMembers(entry, ['protected', 'signature'])) {
    throw bundleError('document_malformed', file, path, 'members must be protected and signature');
  }
  const { protected: header, signature } = entry;
  const signatureBytes = typeof signature === 'string' ? decodeBase64url(signature) : undefined;
  if (signatureBytes?.length !== SIGNATURE_BYTES) {
    throw bundleError('document_malformed', file, `${path}/signature`, 'not 64 bytes in canonical base64url');
  }
  if (typeof header !== 'string' || header.length > MAX_HEADER_CHARACTERS) {
    throw bundleError('header_malformed', file, `${path}/protected`, 'not a short string');
  }
  const fields = readHeader(header, file, `${path}/protected`);
  return { ...fields, encodedHeader: header, signature: signatureBytes };
}

type ProtectedHeader = Pick<DocumentSignature, 'keyId' | 'algorithm' | 'type'>;

function readHeader(text: string, file: string, path: string): ProtectedHeader {
  const bytes = decodeBase64url(text);
  if (bytes === undefined) throw bundleError('header_malformed', file, path, 'not canonical base64url');
  const header = parseJson(bytes, 'header_malformed', file, path);
  if (!isJsonObject(header) || !hasExactMembers(header, ['alg', 'kid', 'typ'])) {
    throw bundleError('header_malformed', file, path, 'members must be alg, kid and typ');
  }
  const { alg, kid, typ } = header;
  if ((alg !== 'Ed25519' && alg !== 'ES256') || typeof kid !== 'string' || typeof typ !== 'string') {
    throw bundleError('header_malformed', file, path, 'alg must be Ed25519 or ES256, kid and typ strings');
  }
  return { algorithm: alg, keyId: kid, type: typ };
}

/**
 * Parses a payload with valid signatures: UTF-8 without a byte order mark, JSON without duplicate members.
 * @throws BundleError `payload_malformed`
 */
export function parsePayload(payload: Buffer, file: string): unknown {
  return parseJson(payload, 'payload_malformed', file);
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

function parseJson(
  bytes: Buffer,
  code: 'document_malformed' | 'header_malformed' | 'payload_malformed',
  file: string,
  path = '',
): unknown {
  try {
    return parseStrictJson(utf8.decode(bytes));
  } catch (error) {
    // The message quotes at most a member's name.
    const text = error instanceof StrictJsonError ? error.message.slice(0, 200) : 'not UTF-8';
    throw bundleError(code, file, path, text);
  }
}

/**
 * Signs a document with each key, in the order given.
 * @returns the file's bytes, UTF-8 JSON, one line
 */
export function signDocument(type: DocumentType, payload: Uint8Array, keys: readonly SigningKey[]): Buffer {
  const encodedPayload = Buffer.from(payload).toString('base64url');
  const signatures = keys.map(({ publicKey, privateKey }) => {
    const header = { alg: publicKey.algorithm, kid: publicKey.thumbprint, typ: type };
    const encodedHeader = Buffer.from(JSON.stringify(header)).toString('base64url');
    const message = signingInput(encodedHeader, { encodedPayload });
    const signature = signMessage(publicKey.algorithm, privateKey, message);
    return { protected: encodedHeader, signature: signature.toString('base64url') };
  });
  return Buffer.from(`${JSON.stringify({ payload: encodedPayload, signatures })}\n`);
}
