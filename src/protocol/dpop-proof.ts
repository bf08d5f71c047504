/**
 * A DPoP proof: a compact JWS whose key is in its header. A closed reader: it accepts one spelling of each part, and
 * verifies nothing.
 * Source: RFC 9449 section 4.2.
 */
import { decodeBase64url, decodeBase64urlText, isBase64urlOf32Bytes } from './base64url.ts';
import { isMethod } from './identifiers.ts';
import { algorithmOf, type PublicJwk, parsePublicJwk } from './public-key.ts';
import { isCanonicalAuthority, isScheme, normalizeAuthority, type Origin } from './request-target.ts';
import { SIGNATURE_BYTES } from './signature.ts';
import {
  hasExactMembers,
  isJsonObject,
  type JsonLimits,
  type JsonObject,
  readStrictJson,
} from './strict-json.ts';
import { isSeconds } from './validity.ts';

export const DPOP_PROOF_TYPE = 'dpop+jwt';

export const MAX_DPOP_PROOF_BYTES = 4096;

/** How long a proof may be used after its `iat`: it states no end. */
export const DPOP_PROOF_SECONDS = 60;

/** Nothing in it is verified. */
export interface DpopProof {
  /** The key that must have signed it; only its shape is checked. */
  readonly jwk: PublicJwk;
  /** `htm`, case-sensitive. */
  readonly method: string;
  /** Of `htu`. */
  readonly origin: Origin;
  /** Of `htu`, exactly as sent; an empty one is `/`. */
  readonly path: string;
  readonly jti: string;
  readonly issuedAtSeconds: number;
  /** `ath`: base64url SHA-256 of the access token, 43 characters. */
  readonly tokenSha256: string;
  readonly nonce: string | undefined;
  readonly signingInput: Buffer;
  readonly signature: Buffer;
}

/** Parses a compact JWS of at most 4 KiB; undefined when any part departs from the format. */
export function parseDpopProof(jws: string): DpopProof | undefined {
  if (jws.length > MAX_DPOP_PROOF_BYTES) return undefined;
  const headerEnd = jws.indexOf('.');
  const claimsEnd = jws.indexOf('.', headerEnd + 1);
  if (headerEnd < 0 || claimsEnd < 0) return undefined;
  const jwk = parseHeader(readObject(jws.slice(0, headerEnd), HEADER_LIMITS));
  // Another dot in the rest is invalid base64url.
  const signature = decodeBase64url(jws.slice(claimsEnd + 1));
  if (jwk === undefined || signature?.length !== SIGNATURE_BYTES) return undefined;
  const claims = parseClaims(readObject(jws.slice(headerEnd + 1, claimsEnd), CLAIMS_LIMITS));
  if (claims === undefined) return undefined;
  return { jwk, ...claims, signingInput: Buffer.from(jws.slice(0, claimsEnd), 'latin1'), signature };
}

/** Members of a public JWK that say how a key is meant to be used: clients send them, and nothing reads them. */
const IGNORED_OF_JWK = ['kid', 'use', 'alg', 'key_ops', 'ext'];
const HEADER_LIMITS: JsonLimits = { maxDepth: 3, maxMembers: 12 };
/** The six claims, and as many of other protocols. */
const CLAIMS_LIMITS: JsonLimits = { maxDepth: 3, maxMembers: 32 };
// biome-ignore lint/suspicious/noControlCharactersInRegex: white space between the tokens is for the parser to judge
const OBJECT = /^\s*\{[\x00-\x7e]*$/;

function readObject(part: string, limits: JsonLimits): JsonObject | undefined {
  const text = decodeBase64urlText(part);
  if (text === undefined || !OBJECT.test(text)) return undefined;
  const read = readStrictJson(text, limits);
  return read.kind === 'read' && isJsonObject(read.value) ? read.value : undefined;
}

/** The key, when the header names its algorithm. `EdDSA` is Ed25519 for a key of that curve (RFC 9864 section 2.2). */
function parseHeader(header: JsonObject | undefined): PublicJwk | undefined {
  if (header === undefined || !hasExactMembers(header, ['typ', 'alg', 'jwk'])) return undefined;
  if (header.typ !== DPOP_PROOF_TYPE || !isJsonObject(header.jwk)) return undefined;
  const named = Object.entries(header.jwk).filter(([name]) => !IGNORED_OF_JWK.includes(name));
  const jwk = parsePublicJwk(Object.fromEntries(named));
  if (jwk === undefined) return undefined;
  const alg = header.alg === 'EdDSA' ? 'Ed25519' : header.alg;
  return alg === algorithmOf(jwk) ? jwk : undefined;
}

const JTI = /^[A-Za-z0-9._~-]{16,128}$/;
/** RFC 9449 section 8.1. */
const NONCE = /^[\x21\x23-\x5b\x5d-\x7e]{1,256}$/;

/** Whether a server's nonce is one that a proof may carry. */
export function isDpopNonce(text: string): boolean {
  return NONCE.test(text);
}

type Claims = Omit<DpopProof, 'jwk' | 'signingInput' | 'signature'>;

/** Claims that RFC 9449 does not know are ignored, but for those that would end the proof earlier or begin it later. */
function parseClaims(claims: JsonObject | undefined): Claims | undefined {
  if (claims === undefined || Object.hasOwn(claims, 'exp') || Object.hasOwn(claims, 'nbf')) return undefined;
  const { ath, htm, htu, iat, jti, nonce } = claims;
  if (typeof htm !== 'string' || !isMethod(htm)) return undefined;
  if (typeof jti !== 'string' || !JTI.test(jti)) return undefined;
  if (typeof ath !== 'string' || !isBase64urlOf32Bytes(ath)) return undefined;
  if (!isSeconds(iat)) return undefined;
  if (nonce !== undefined && !(typeof nonce === 'string' && isDpopNonce(nonce))) return undefined;
  const place = typeof htu === 'string' ? splitUrl(htu) : undefined;
  return place && { method: htm, ...place, jti, issuedAtSeconds: iat, tokenSha256: ath, nonce };
}

const HTTP_URL =
  /^([A-Za-z]{4,5}):\/\/([\x21\x22\x24-\x2e\x30-\x3e\x40-\x7e]+)(\/[\x21\x22\x24-\x3e\x40-\x7e]*)?$/;

/** Splits a URL without query and fragment, by its bytes: a URL parser would resolve dot segments (`request-target.ts`). */
function splitUrl(url: string): Pick<DpopProof, 'origin' | 'path'> | undefined {
  const [, schemeAsSent = '', authorityAsSent = '', path = '/'] = HTTP_URL.exec(url) ?? [];
  const scheme = schemeAsSent.toLowerCase();
  if (!isScheme(scheme)) return undefined;
  const authority = normalizeAuthority(scheme, authorityAsSent);
  return isCanonicalAuthority(scheme, authority) ? { origin: { scheme, authority }, path } : undefined;
}
