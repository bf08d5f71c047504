/**
 * Verifies a JWT-SVID: form, header, key of its own trust domain's bundle, signature, claims.
 *
 * Stricter than the specification: `kid` is required, and the only audience is the expected one.
 * Sources: JWT-SVID sections 2 to 4; RFC 7515; RFC 8725 section 3.
 */
import { compactVerify } from 'jose';
import { decodeBase64url } from '../protocol/base64url.ts';
import { isJsonObject, type JsonObject, parseStrictJson } from '../protocol/strict-json.ts';
import { type SpiffeProblem, spiffeProblem } from './spiffe-problem.ts';
import type { JwtAuthority, TrustBundles } from './trust-bundles.ts';
import { parseWorkloadId, type WorkloadId } from './workload-id.ts';

export interface JwtSvidExpectations {
  /** The only audience that the token may have. */
  readonly audience: string;
  readonly bundles: TrustBundles;
  readonly nowMs: number;
}

export interface VerifiedJwtSvid {
  readonly kind: 'svid';
  readonly spiffeId: string;
  readonly trustDomain: string;
  readonly notAfterMs: number;
}

const MAX_TOKEN_CHARACTERS = 16_384;
const COMPACT = /^([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]+)$/;

/** Never rejects. */
export async function verifyJwtSvid(
  token: string,
  { audience, bundles, nowMs }: JwtSvidExpectations,
): Promise<VerifiedJwtSvid | SpiffeProblem> {
  const parsed = parseToken(token);
  if (parsed.kind === 'problem') return parsed;
  const header = checkHeader(parsed.header);
  if (header.kind === 'problem') return header;
  const { sub } = parsed.claims;
  const id = parseWorkloadId(typeof sub === 'string' ? sub : '');
  if (id.kind === 'problem') return id;
  const key = findKey(id, header, bundles);
  if (key.kind === 'problem') return key;
  try {
    await compactVerify(token, key.authority.publicKey, { algorithms: [header.algorithm] });
  } catch {
    return spiffeProblem('jwt_svid_signature', 'its signature is invalid');
  }
  return checkClaims(parsed.claims, id, audience, nowMs);
}

interface ParsedToken {
  readonly kind: 'token';
  readonly header: JsonObject;
  readonly claims: JsonObject;
}

function parseToken(token: string): ParsedToken | SpiffeProblem {
  const parts = token.length > MAX_TOKEN_CHARACTERS ? [] : (COMPACT.exec(token)?.slice(1) ?? []);
  const [header, claims, signature] = parts.map(decodeBase64url);
  const parsed = { header: header && parseObject(header), claims: claims && parseObject(claims) };
  // A second spelling of one signature would be another credential hash.
  if (parsed.header === undefined || parsed.claims === undefined || signature === undefined) {
    return spiffeProblem('svid_malformed', 'is no compact JWS of two JSON objects');
  }
  return { kind: 'token', header: parsed.header, claims: parsed.claims };
}

interface CheckedHeader {
  readonly kind: 'header';
  readonly algorithm: string;
  readonly kid: string;
}

/** Section 2.1, by the key that each needs. */
const ALGORITHMS: ReadonlyMap<string, string> = new Map([
  ['RS256', 'rsa'],
  ['RS384', 'rsa'],
  ['RS512', 'rsa'],
  ['PS256', 'rsa'],
  ['PS384', 'rsa'],
  ['PS512', 'rsa'],
  ['ES256', 'prime256v1'],
  ['ES384', 'secp384r1'],
  ['ES512', 'secp521r1'],
]);
/** Section 2: a header has no other members. */
const HEADER_MEMBERS: ReadonlySet<string> = new Set(['alg', 'kid', 'typ']);

function checkHeader(header: JsonObject): CheckedHeader | SpiffeProblem {
  const { alg, kid, typ } = header;
  if (!Object.keys(header).every((name) => HEADER_MEMBERS.has(name))) {
    return spiffeProblem('jwt_svid_header', 'its header may have alg, kid and typ only');
  }
  // Rejects other tokens of the same authority, such as WIT-SVIDs (`wit+jwt`).
  if (typ !== undefined && typ !== 'JWT' && typ !== 'JOSE') {
    return spiffeProblem('jwt_svid_header', 'its header member typ must be JWT or JOSE');
  }
  if (typeof alg !== 'string' || !ALGORITHMS.has(alg)) {
    return spiffeProblem(
      'jwt_svid_header',
      `must be signed with one of: ${[...ALGORITHMS.keys()].join(', ')}`,
    );
  }
  if (typeof kid !== 'string') return spiffeProblem('jwt_svid_header', 'its header must name a key (kid)');
  return { kind: 'header', algorithm: alg, kid };
}

function findKey(
  { trustDomain }: WorkloadId,
  { kid, algorithm }: CheckedHeader,
  bundles: TrustBundles,
): { readonly kind: 'key'; readonly authority: JwtAuthority } | SpiffeProblem {
  const authorities = bundles.bundleOf(trustDomain)?.jwtAuthorities ?? [];
  if (authorities.length === 0) {
    return spiffeProblem('trust_domain_unknown', "there is no JWT bundle for the SVID's trust domain");
  }
  const authority = authorities.find((candidate) => candidate.kid === kid);
  if (authority === undefined) {
    return spiffeProblem('jwt_svid_key_unknown', "its trust domain's bundle has no key of that kid");
  }
  const { asymmetricKeyType: type, asymmetricKeyDetails: details } = authority.publicKey;
  if (ALGORITHMS.get(algorithm) !== (type === 'ec' ? details?.namedCurve : type)) {
    return spiffeProblem('jwt_svid_header', 'its algorithm is not for the key that it names');
  }
  return { kind: 'key', authority };
}

function checkClaims(
  { aud, exp, nbf }: JsonObject,
  { spiffeId, trustDomain }: WorkloadId,
  audience: string,
  nowMs: number,
): VerifiedJwtSvid | SpiffeProblem {
  const audiences: readonly unknown[] = Array.isArray(aud) ? aud : [aud];
  // With a second audience, its recipient could use the token here (section 6.2).
  if (audiences.length !== 1 || audiences[0] !== audience) {
    return spiffeProblem('jwt_svid_audience', `its only audience must be ${audience}`);
  }
  if (typeof exp !== 'number' || (nbf !== undefined && typeof nbf !== 'number')) {
    return spiffeProblem('jwt_svid_claims', 'must have exp as a number, and nbf as one if present');
  }
  if (!(nowMs < exp * 1000)) return spiffeProblem('svid_expired', 'has expired');
  if (nbf !== undefined && !(nowMs >= nbf * 1000)) {
    return spiffeProblem('svid_not_yet_valid', 'is not valid yet; check the clocks');
  }
  return { kind: 'svid', spiffeId, trustDomain, notAfterMs: exp * 1000 };
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

function parseObject(bytes: Uint8Array): JsonObject | undefined {
  try {
    const value = parseStrictJson(utf8.decode(bytes));
    return isJsonObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
