/**
 * Parses an issuer's key set (RFC 7517) and keeps the keys that can verify workload tokens. Unusable keys are skipped,
 * because issuers also publish keys for other purposes and introduce new kinds early.
 *
 * Source: docs/operate/control.md "Sources and tokens"; RFC 7517, RFC 7518 section 6, RFC 7638, RFC 8037, RFC 8725 section 3.
 */
import { createPublicKey, hash, type KeyObject } from 'node:crypto';
import { decodeBase64url } from '../../protocol/base64url.ts';
import { isIdentifier } from '../../protocol/identifiers.ts';
import { importPublicJwk } from '../../protocol/import-public-key.ts';
import { isJsonObject, type JsonObject, parseStrictJson } from '../../protocol/strict-json.ts';

/** Accepted algorithms of workload tokens. `EdDSA` is excluded: it names more than one algorithm (RFC 9864 section 4). */
export const TOKEN_ALGORITHMS = ['RS256', 'PS256', 'ES256', 'Ed25519'] as const;
export type TokenAlgorithm = (typeof TOKEN_ALGORITHMS)[number];

export interface IssuerKey {
  readonly kid: string;
  /** Algorithms allowed for this key: by its type, and by its own `alg` if present. */
  readonly algorithms: readonly TokenAlgorithm[];
  /** RFC 7638, SHA-256, base64url. */
  readonly thumbprint: string;
  readonly keyObject: KeyObject;
}

/** Limit of keys per set: more than issuers have, because reading each one costs time. */
export const MAX_KEYS = 100;
const MIN_RSA_BITS = 2048;
const MAX_RSA_BITS = 8192;

/** The usable keys, possibly none; undefined when the text is not a key set. */
export function parseKeySetText(text: string): readonly IssuerKey[] | undefined {
  try {
    return parseKeySet(parseStrictJson(text));
  } catch {
    return undefined;
  }
}

/** The usable keys, possibly none; undefined when the value is not a key set. */
export function parseKeySet(value: unknown): readonly IssuerKey[] | undefined {
  if (!isJsonObject(value) || !Array.isArray(value.keys)) return undefined;
  const entries: readonly unknown[] = value.keys;
  if (entries.length > MAX_KEYS || !entries.every(isJsonObject)) return undefined;
  const byIdentity = new Map<string, IssuerKey>();
  for (const entry of entries) {
    const key = readKey(entry);
    if (key !== undefined) byIdentity.set(`${key.thumbprint} ${key.algorithms.join()} ${key.kid}`, key);
  }
  return [...byIdentity.values()];
}

/**
 * Finds the one key that a token names. Several matches are `ambiguous`: two keys of one type under one name are a
 * mistake, and guessing is unsafe.
 */
export function findIssuerKey(
  keys: readonly IssuerKey[],
  kid: string,
  algorithm: TokenAlgorithm,
):
  | { readonly kind: 'key'; readonly key: IssuerKey }
  | { readonly kind: 'unknown' | 'ambiguous' | 'other_algorithm' } {
  const named = keys.filter((key) => key.kid === kid);
  if (named.length === 0) return { kind: 'unknown' };
  const [key, another] = named.filter((candidate) => candidate.algorithms.includes(algorithm));
  if (key === undefined) return { kind: 'other_algorithm' };
  return another === undefined ? { kind: 'key', key } : { kind: 'ambiguous' };
}

/** Members of private and symmetric keys (RFC 7518 section 6). A published private key is compromised. */
const SECRET_MEMBERS = ['d', 'p', 'q', 'dp', 'dq', 'qi', 'oth', 'k'];

function readKey(jwk: JsonObject): IssuerKey | undefined {
  const { kid } = jwk;
  if (SECRET_MEMBERS.some((name) => Object.hasOwn(jwk, name))) return undefined;
  // Tokens must name their key, so a key without `kid` is useless.
  if (!isIdentifier(kid) || !isForVerifying(jwk)) return undefined;
  const material = readMaterial(jwk);
  if (material === undefined) return undefined;
  const algorithms = material.algorithms.filter((name) => jwk.alg === undefined || jwk.alg === name);
  return algorithms.length === 0 ? undefined : { ...material, kid, algorithms };
}

/** `use` and `key_ops` (RFC 7517 sections 4.2 and 4.3) must be absent or allow verification. */
function isForVerifying({ use, key_ops: operations }: JsonObject): boolean {
  if (use !== undefined && use !== 'sig') return false;
  return operations === undefined || (Array.isArray(operations) && operations.includes('verify'));
}

type KeyMaterial = Omit<IssuerKey, 'kid'>;

function readMaterial(jwk: JsonObject): KeyMaterial | undefined {
  const { kty, crv, x, y } = jwk;
  if (kty === 'RSA') return readRsa(jwk);
  const key = importPublicJwk(kty === 'EC' ? { kty, crv, x, y } : { kty, crv, x });
  if (key === undefined) return undefined;
  return { algorithms: [key.algorithm], thumbprint: key.thumbprint, keyObject: key.keyObject };
}

function readRsa({ n, e }: JsonObject): KeyMaterial | undefined {
  if (typeof n !== 'string' || typeof e !== 'string') return undefined;
  const modulus = decodeBase64url(n);
  const exponent = decodeBase64url(e);
  if (modulus === undefined || exponent === undefined) return undefined;
  const bits = bitLength(modulus);
  if (bits < MIN_RSA_BITS || bits > MAX_RSA_BITS || !isUsualExponent(exponent)) return undefined;
  try {
    const keyObject = createPublicKey({ key: { kty: 'RSA', n, e }, format: 'jwk' });
    const thumbprint = hash('sha256', `{"e":"${e}","kty":"RSA","n":"${n}"}`, 'base64url');
    return { algorithms: ['RS256', 'PS256'], thumbprint, keyObject };
  } catch {
    return undefined;
  }
}

/** 0 for a leading zero byte: RFC 7518 section 2 requires the shortest encoding, so that number is invalid. */
function bitLength(bytes: Buffer): number {
  const first = bytes[0] ?? 0;
  return first === 0 ? 0 : (bytes.length - 1) * 8 + (32 - Math.clz32(first));
}

/** Odd, 65537 to 2^32. Small exponents invite forgeries with lax padding checks; huge ones make verification slow. */
function isUsualExponent(bytes: Buffer): boolean {
  if (bitLength(bytes) < 17 || bytes.length > 4) return false;
  return (bytes.at(-1) ?? 0) % 2 === 1;
}
