/**
 * Reads the documents that carry a trust bundle: a SPIFFE bundle (a JWK Set) or certificates in PEM.
 *
 * Entries of unknown type or use are ignored, as the specification demands. A broken entry of a known use rejects the
 * document, so that a mistake at its publisher never removes a key in silence.
 * Sources: SPIFFE_Trust_Domain_and_Bundle section 4; X509-SVID section 6; JWT-SVID section 6.
 */
import { createPublicKey, type KeyObject } from 'node:crypto';
import { isJsonObject, type JsonObject, parseStrictJson } from '../../protocol/strict-json.ts';
import { type ParsedCertificate, parseCertificate } from '../certificate.ts';
import { hasStrongKey } from '../certification-path.ts';
import type { JwtAuthority } from '../trust-bundles.ts';

export interface BundleDocument {
  readonly kind: 'bundle';
  readonly x509Authorities: readonly ParsedCertificate[];
  readonly jwtAuthorities: readonly JwtAuthority[];
  /** `spiffe_sequence` */
  readonly sequence: number | undefined;
  /** `spiffe_refresh_hint` */
  readonly refreshHintSeconds: number | undefined;
}

export interface UnreadableBundle {
  readonly kind: 'unreadable';
  /** Description of the fault for the operator; it never quotes the document. */
  readonly text: string;
}

/** More than any trust domain has; a limit on work for each SVID. */
const MAX_AUTHORITIES = 100;

/** @param text a SPIFFE bundle when it begins with `{`, otherwise PEM */
export function readBundleText(text: string): BundleDocument | UnreadableBundle {
  if (!text.trimStart().startsWith('{')) return readPemBundle(text);
  try {
    return readBundleJson(parseStrictJson(text));
  } catch {
    return unreadable('is not valid JSON, or names a member twice in one object');
  }
}

/** @param value a JWK Set, parsed strictly */
export function readBundleJson(value: unknown): BundleDocument | UnreadableBundle {
  if (!isJsonObject(value) || !Array.isArray(value.keys) || !value.keys.every(isJsonObject)) {
    return unreadable('is no object with a list "keys" of objects');
  }
  const { spiffe_sequence: sequence, spiffe_refresh_hint: hint } = value;
  if (!isCount(sequence)) return unreadable('spiffe_sequence must be an integer from 0 to 2^53 - 1');
  if (!isCount(hint)) return unreadable('spiffe_refresh_hint must be an integer, in seconds');
  const x509 = value.keys.filter(
    ({ use, x5c }) => use === 'x509-svid' && Array.isArray(x5c) && x5c.length > 0,
  );
  const x509Authorities = x509.map(readX509Entry).filter((authority) => authority !== undefined);
  if (x509Authorities.length !== x509.length) {
    return unreadable('an x5c does not begin with a certificate in base64');
  }
  const jwtAuthorities = readJwtAuthorities(value.keys.filter(({ use }) => use === 'jwt-svid'));
  if (jwtAuthorities === undefined)
    return unreadable('a jwt-svid key has no kid, is broken, or repeats a kid');
  return limited({ kind: 'bundle', x509Authorities, jwtAuthorities, sequence, refreshHintSeconds: hint });
}

const CERTIFICATE = /-----BEGIN CERTIFICATE-----([A-Za-z0-9+/=\s]*)-----END CERTIFICATE-----/g;

/** Reads only X.509 authorities. Anything except certificates and blank lines makes the text unreadable. */
function readPemBundle(text: string): BundleDocument | UnreadableBundle {
  const blocks = [...text.matchAll(CERTIFICATE)].map(([, base64 = '']) => Buffer.from(base64, 'base64'));
  // An empty text is probably a file that is being written, not a trust domain without keys.
  if (blocks.length === 0 || text.replaceAll(CERTIFICATE, '').trim() !== '') {
    return unreadable('is neither a SPIFFE bundle (JSON) nor certificates in PEM and nothing else');
  }
  return readDerAuthorities(blocks);
}

/** @param certificates of one trust domain */
export function readDerAuthorities(certificates: readonly Uint8Array[]): BundleDocument | UnreadableBundle {
  const x509Authorities = certificates.map(parseCertificate).filter((authority) => authority !== undefined);
  if (x509Authorities.length !== certificates.length) return unreadable('holds an invalid certificate');
  return limited({
    kind: 'bundle',
    x509Authorities,
    jwtAuthorities: [],
    sequence: undefined,
    refreshHintSeconds: undefined,
  });
}

function readX509Entry({ x5c }: JsonObject): ParsedCertificate | undefined {
  const first: unknown = Array.isArray(x5c) ? x5c[0] : undefined;
  if (typeof first !== 'string' || !/^[A-Za-z0-9+/]+={0,2}$/.test(first)) return undefined;
  return parseCertificate(Buffer.from(first, 'base64'));
}

/** Undefined when one of the entries is broken. Keys of unknown type or curve, and weak ones, are left out. */
export function readJwtAuthorities(entries: readonly JsonObject[]): readonly JwtAuthority[] | undefined {
  const byKid = new Map<string, JwtAuthority>();
  for (const { kid, kty, n, e, crv, x, y } of entries) {
    if (typeof kid !== 'string' || kid === '' || byKid.has(kid)) return undefined;
    if (kty !== 'RSA' && kty !== 'EC') continue;
    // Only the public members of the type: a private key in a bundle must not spread.
    const jwk = kty === 'RSA' ? { kty, n, e } : { kty, crv, x, y };
    const publicKey = importJwk(jwk);
    if (publicKey === undefined) return undefined;
    if (hasStrongKey({ publicKey })) byKid.set(kid, { kid, jwk, publicKey });
  }
  return [...byKid.values()];
}

function importJwk(jwk: JsonObject): KeyObject | undefined {
  if (!Object.values(jwk).every((member) => typeof member === 'string')) return undefined;
  try {
    return createPublicKey({ key: { ...jwk }, format: 'jwk' });
  } catch {
    return undefined;
  }
}

function limited(bundle: BundleDocument): BundleDocument | UnreadableBundle {
  const count = Math.max(bundle.x509Authorities.length, bundle.jwtAuthorities.length);
  return count > MAX_AUTHORITIES ? unreadable(`has more than ${MAX_AUTHORITIES} keys of one use`) : bundle;
}

function isCount(value: unknown): value is number | undefined {
  return value === undefined || (Number.isSafeInteger(value) && Number(value) >= 0);
}

function unreadable(text: string): UnreadableBundle {
  return { kind: 'unreadable', text };
}
