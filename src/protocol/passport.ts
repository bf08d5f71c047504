/**
 * The passport: the caller's identity and holder key. A compact JWS (RFC 7515) with a closed header and a closed set of
 * claims (RFC 7519, RFC 7800, RFC 8725).
 * Source: docs/design/protocol.md "Passport".
 */
import { hash } from 'node:crypto';
import { decodeBase64url, decodeBase64urlText } from './base64url.ts';
import { isIdentifier, isKeyBinding, isKeyId, type KeyBinding } from './identifiers.ts';
import { MAX_ATTRIBUTES, MAX_PASSPORT_BYTES } from './limits.ts';
import { type PublicJwk, parsePublicJwk, type SignatureAlgorithm } from './public-key.ts';
import { SIGNATURE_BYTES } from './signature.ts';
import { isCanonicalSubject } from './spiffe-id.ts';
import {
  hasExactMembers,
  isJsonObject,
  type JsonLimits,
  type JsonObject,
  readStrictJson,
} from './strict-json.ts';
import { isSeconds } from './validity.ts';

export const PASSPORT_TYPE = 'proofgate-passport+jwt';

/** Names and values of 1 to 512 visible characters. */
export type Attributes = ReadonlyMap<string, string>;

export interface PassportClaims {
  readonly issuer: string;
  readonly subject: string;
  readonly trustDomain: string;
  readonly audience: string;
  readonly issuedAtSeconds: number;
  readonly expiresAtSeconds: number;
  readonly notBeforeSeconds: number | undefined;
  readonly keyBinding: KeyBinding;
  /** `cnf.jwk` (RFC 7800 section 3.2); only its shape is checked. */
  readonly holderJwk: PublicJwk;
  /** Identifies the passport in audit events; not the replay identifier. */
  readonly passportId: string;
  readonly provenance: Attributes | undefined;
  readonly context: Attributes | undefined;
}

/** A well-formed passport. Nothing in it is verified. */
export interface Passport {
  /** base64url SHA-256 of the compact JWS as sent: 43 characters. */
  readonly sha256: string;
  readonly keyId: string;
  /** The token's claim; the bundle's key decides. */
  readonly algorithm: SignatureAlgorithm;
  readonly claims: PassportClaims;
  readonly signingInput: Buffer;
  readonly signature: Buffer;
}

/** base64url SHA-256 of the compact JWS, as the transcript binds it. */
export function passportSha256(jws: string): string {
  return hash('sha256', jws, 'base64url');
}

/** Parses a compact JWS of at most 8 KiB; undefined when any part departs from the format. */
export function parsePassport(jws: string, sha256 = passportSha256(jws)): Passport | undefined {
  if (jws.length > MAX_PASSPORT_BYTES) return undefined;
  const headerEnd = jws.indexOf('.');
  const claimsEnd = jws.indexOf('.', headerEnd + 1);
  if (headerEnd < 0 || claimsEnd < 0) return undefined;
  // Reads the claims last, because they are the most expensive. Another dot in the rest is invalid base64url.
  const header = readHeader(jws.slice(0, headerEnd));
  if (header === undefined) return undefined;
  const signature = decodeBase64url(jws.slice(claimsEnd + 1));
  if (signature?.length !== SIGNATURE_BYTES) return undefined;
  const claims = parseClaims(
    parseObject(decodeBase64urlText(jws.slice(headerEnd + 1, claimsEnd)), CLAIMS_LIMITS),
  );
  if (claims === undefined) return undefined;
  const signingInput = Buffer.from(jws.slice(0, claimsEnd), 'latin1');
  return { sha256, ...header, claims, signingInput, signature };
}

/** Header and claims are objects whose strings are visible ASCII; other characters are not part of a passport. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: white space between the tokens is for the parser to judge
const OBJECT = /^\s*\{[\x00-\x7e]*$/;

function parseObject(text: string | undefined, limits: JsonLimits): unknown {
  if (text === undefined || !OBJECT.test(text)) return undefined;
  const read = readStrictJson(text, limits);
  return read.kind === 'read' ? read.value : undefined;
}

type Header = Pick<Passport, 'keyId' | 'algorithm'>;

const HEADER_MEMBERS = ['typ', 'alg', 'kid'];
const HEADER_LIMITS: JsonLimits = { maxDepth: 1, maxMembers: HEADER_MEMBERS.length };
/**
 * The header as signers usually write it. Matching it costs less than JSON.parse, which matters in a flood of new
 * passports.
 */
const USUAL_HEADER =
  /^\{"typ":"proofgate-passport\+jwt","alg":"(Ed25519|ES256)","kid":"([\x21\x23-\x5b\x5d-\x7e]{1,128})"\}$/;

function readHeader(part: string): Header | undefined {
  const text = decodeBase64urlText(part);
  const [, algorithm, keyId] = USUAL_HEADER.exec(text ?? '') ?? [];
  if (keyId !== undefined) return { keyId, algorithm: algorithm === 'ES256' ? 'ES256' : 'Ed25519' };
  return parseHeader(parseObject(text, HEADER_LIMITS));
}

function parseHeader(value: unknown): Header | undefined {
  if (!isJsonObject(value) || !hasExactMembers(value, HEADER_MEMBERS)) return undefined;
  const { typ, alg, kid } = value;
  if (typ !== PASSPORT_TYPE || (alg !== 'Ed25519' && alg !== 'ES256') || !isKeyId(kid)) return undefined;
  return { keyId: kid, algorithm: alg };
}

const REQUIRED_CLAIMS = ['iss', 'sub', 'trust_domain', 'aud', 'iat', 'exp', 'key_binding', 'cnf', 'jti'];
const OPTIONAL_CLAIMS = ['nbf', 'provenance', 'context'];
/** `jwk` and its members: RFC 7518 section 6.2.1. */
const CONFIRMATION_MEMBERS = ['jwk', 'kty', 'crv', 'x', 'y'];
const CLAIMS_LIMITS: JsonLimits = {
  maxDepth: 3,
  maxMembers:
    REQUIRED_CLAIMS.length + OPTIONAL_CLAIMS.length + CONFIRMATION_MEMBERS.length + 2 * MAX_ATTRIBUTES,
};

function parseClaims(value: unknown): PassportClaims | undefined {
  if (!isJsonObject(value) || !hasExactMembers(value, REQUIRED_CLAIMS, OPTIONAL_CLAIMS)) return undefined;
  const { iss, sub, trust_domain, aud, iat, exp, nbf, key_binding, jti } = value;
  if (!isIdentifier(iss) || !isIdentifier(sub) || !isIdentifier(trust_domain)) return undefined;
  if (!isCanonicalSubject(sub)) return undefined;
  if (!isIdentifier(aud) || !isIdentifier(jti) || !isKeyBinding(key_binding)) return undefined;
  if (!isSeconds(iat) || !isSeconds(exp) || (nbf !== undefined && !isSeconds(nbf))) return undefined;
  const holderJwk = parseConfirmation(value);
  const provenance = parseAttributes(value.provenance);
  const context = parseAttributes(value.context);
  if (holderJwk === undefined || provenance === null || context === null) return undefined;
  return {
    issuer: iss,
    subject: sub,
    trustDomain: trust_domain,
    audience: aud,
    issuedAtSeconds: iat,
    expiresAtSeconds: exp,
    notBeforeSeconds: nbf,
    keyBinding: key_binding,
    holderJwk,
    passportId: jti,
    provenance,
    context,
  };
}

function parseConfirmation(claims: JsonObject): PublicJwk | undefined {
  const { cnf } = claims;
  return isJsonObject(cnf) && hasExactMembers(cnf, ['jwk']) ? parsePublicJwk(cnf.jwk) : undefined;
}

/** Undefined when absent, null when malformed. */
function parseAttributes(value: unknown): Attributes | undefined | null {
  if (value === undefined) return undefined;
  if (!isJsonObject(value)) return null;
  const entries = Object.entries(value);
  if (entries.length > MAX_ATTRIBUTES) return null;
  const attributes = new Map<string, string>();
  for (const [name, entry] of entries) {
    if (!isIdentifier(name) || !isIdentifier(entry)) return null;
    attributes.set(name, entry);
  }
  return attributes;
}
