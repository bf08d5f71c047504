/**
 * A JWT access token of an OAuth authorization server, bound to a key by `cnf.jkt`. A reader that refuses what would give one token two
 * meanings, and verifies nothing.
 * Source: RFC 9068, RFC 9449 section 6.1, RFC 8725.
 */
import { decodeBase64url, isBase64urlOf32Bytes } from './base64url.ts';
import { isIdentifier, isKeyId } from './identifiers.ts';
import { MAX_PASSPORT_BYTES } from './limits.ts';
import { passportSha256 } from './passport.ts';
import {
  hasExactMembers,
  isJsonObject,
  type JsonLimits,
  type JsonObject,
  readStrictJson,
} from './strict-json.ts';
import { isSeconds } from './validity.ts';

/** Signature algorithms of authorization servers (RFC 7518 section 3.1, RFC 9864). */
export const ACCESS_TOKEN_ALGORITHMS = ['RS256', 'PS256', 'ES256', 'Ed25519'] as const;
export type AccessTokenAlgorithm = (typeof ACCESS_TOKEN_ALGORITHMS)[number];

/** `at+jwt`: RFC 9068 section 2.1. `JWT`: of servers that give their access tokens no type of their own. */
export const ACCESS_TOKEN_TYPES = ['at+jwt', 'JWT'] as const;
export type AccessTokenType = (typeof ACCESS_TOKEN_TYPES)[number];

export const MAX_AUDIENCES = 16;

/** Nothing in it is verified. */
export interface AccessToken {
  /** base64url SHA-256 of the compact JWS as sent: 43 characters. */
  readonly sha256: string;
  readonly type: AccessTokenType;
  /** The token's claim; the bundle's key decides. */
  readonly algorithm: AccessTokenAlgorithm;
  readonly keyId: string;
  readonly issuer: string;
  /** At least one, at most 16. */
  readonly audiences: readonly string[];
  readonly issuedAtSeconds: number;
  readonly expiresAtSeconds: number;
  readonly notBeforeSeconds: number | undefined;
  /** Identifies the token in audit events. */
  readonly tokenId: string | undefined;
  /** `cnf.jkt`: RFC 7638 thumbprint of the holder key, 43 characters. */
  readonly holderThumbprint: string;
  /** All of them, for the claims that the bundle names. */
  readonly claims: JsonObject;
  readonly signingInput: Buffer;
  readonly signature: Buffer;
}

/** Parses a compact JWS of at most 8 KiB; undefined when any part departs from the format. */
export function parseAccessToken(jws: string, sha256 = passportSha256(jws)): AccessToken | undefined {
  if (jws.length > MAX_PASSPORT_BYTES) return undefined;
  const parts = jws.split('.', 4);
  if (parts.length !== 3) return undefined;
  const [headerPart = '', claimsPart = '', signaturePart = ''] = parts;
  const header = parseHeader(readObject(headerPart, HEADER_LIMITS));
  const signature = decodeBase64url(signaturePart);
  if (header === undefined || signature === undefined || signature.length > MAX_SIGNATURE_BYTES)
    return undefined;
  const object = readObject(claimsPart, CLAIMS_LIMITS);
  const claims = object && parseClaims(object, header.type);
  if (claims === undefined) return undefined;
  return {
    sha256,
    ...header,
    ...claims,
    signingInput: Buffer.from(`${headerPart}.${claimsPart}`, 'latin1'),
    signature,
  };
}

/** Of RSA with 4096 bits. */
const MAX_SIGNATURE_BYTES = 512;
const HEADER_LIMITS: JsonLimits = { maxDepth: 2, maxMembers: 16 };
const CLAIMS_LIMITS: JsonLimits = { maxDepth: 8, maxMembers: 512 };
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

function readObject(part: string, limits: JsonLimits): JsonObject | undefined {
  const bytes = decodeBase64url(part);
  if (bytes === undefined) return undefined;
  let text: string;
  try {
    text = utf8.decode(bytes);
  } catch {
    return undefined;
  }
  const read = readStrictJson(text, limits);
  return read.kind === 'read' && isJsonObject(read.value) ? read.value : undefined;
}

/** They would change which key verifies the token, or what is signed (RFC 7515 section 4.1, RFC 7797). */
const REFUSED_OF_HEADER = ['crit', 'jku', 'x5u', 'jwk', 'b64'];

function parseHeader(
  header: JsonObject | undefined,
): Pick<AccessToken, 'type' | 'algorithm' | 'keyId'> | undefined {
  if (header === undefined || REFUSED_OF_HEADER.some((name) => Object.hasOwn(header, name))) return undefined;
  const type = typeOf(header.typ);
  const named = header.alg === 'EdDSA' ? 'Ed25519' : header.alg;
  const algorithm = ACCESS_TOKEN_ALGORITHMS.find((known) => known === named);
  if (type === undefined || algorithm === undefined || !isKeyId(header.kid)) return undefined;
  return { type, algorithm, keyId: header.kid };
}

/** RFC 7515 section 4.1.9: `application/` may be left out. */
function typeOf(typ: unknown): AccessTokenType | undefined {
  if (typ === 'at+jwt' || typ === 'application/at+jwt') return 'at+jwt';
  return typ === 'JWT' ? 'JWT' : undefined;
}

/** What an ID token or a logout token has, which `typ` JWT does not keep apart (OpenID Connect Core 2, Back-Channel Logout 2.4). */
const OF_OTHER_TOKENS = ['nonce', 'at_hash', 'events'];

type Claims = Omit<AccessToken, 'sha256' | 'type' | 'algorithm' | 'keyId' | 'signingInput' | 'signature'>;

function parseClaims(claims: JsonObject, type: AccessTokenType): Claims | undefined {
  if (type === 'JWT' && OF_OTHER_TOKENS.some((name) => Object.hasOwn(claims, name))) return undefined;
  const { aud, cnf, exp, iat, iss, jti, nbf } = claims;
  const audiences = Array.isArray(aud) ? aud : [aud];
  if (audiences.length < 1 || audiences.length > MAX_AUDIENCES || !audiences.every(isIdentifier))
    return undefined;
  if (!isIdentifier(iss) || !(jti === undefined || isIdentifier(jti))) return undefined;
  if (!isSeconds(iat) || !isSeconds(exp) || !(nbf === undefined || isSeconds(nbf))) return undefined;
  if (!isJsonObject(cnf) || !hasExactMembers(cnf, ['jkt'])) return undefined;
  const { jkt } = cnf;
  if (typeof jkt !== 'string' || !isBase64urlOf32Bytes(jkt)) return undefined;
  return {
    issuer: iss,
    audiences,
    issuedAtSeconds: iat,
    expiresAtSeconds: exp,
    notBeforeSeconds: nbf,
    tokenId: jti,
    holderThumbprint: jkt,
    claims,
  };
}
