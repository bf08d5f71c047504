/**
 * Parses a workload token before its signature is checked: its form and header, but no claim. The policy determines the
 * source; the header only selects one of that source's keys and the algorithm.
 *
 * Source: RFC 7515 sections 4 and 7.1; RFC 8725 sections 2 and 3; docs/operate/control.md "Sources and tokens".
 */
import { decodeBase64url } from '../../protocol/base64url.ts';
import { isIdentifier } from '../../protocol/identifiers.ts';
import { isJsonObject, type JsonObject, parseStrictJson } from '../../protocol/strict-json.ts';
import { TOKEN_ALGORITHMS, type TokenAlgorithm } from './key-set.ts';

export const MAX_TOKEN_BYTES = 16_384;

interface TokenEnvelope {
  readonly kind: 'envelope';
  readonly algorithm: TokenAlgorithm;
  readonly kid: string;
}

/** Allows an empty signature; `none` is rejected as an algorithm. */
const COMPACT = /^([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]*)$/;

export function readTokenEnvelope(token: string): TokenEnvelope | TokenProblem {
  if (token.length > MAX_TOKEN_BYTES) return reject('token_malformed', `more than ${MAX_TOKEN_BYTES} bytes`);
  const [, ...parts] = COMPACT.exec(token) ?? [];
  const [header] = parts.map(decodeBase64url);
  // A second spelling of the same bytes would be a second token with the same signature.
  if (header === undefined || parts.some((part) => decodeBase64url(part) === undefined)) {
    return reject('token_malformed', 'is no compact JWS in canonical base64url');
  }
  const members = parseJsonObject(header);
  return members === undefined
    ? reject('token_malformed', 'its header is no JSON object, or names a member twice')
    : readHeader(members);
}

/**
 * Members that supply a key or its location, change how the signature is computed, or nest another token. Ignoring them
 * would be safe too, but no workload token needs them and their presence suggests an attack. Others are ignored (RFC 7515
 * section 4).
 */
const REFUSED_MEMBERS = ['jwk', 'jku', 'x5u', 'x5c', 'crit', 'b64', 'enc', 'zip', 'cty'];

function readHeader(header: JsonObject): TokenEnvelope | TokenProblem {
  const refused = REFUSED_MEMBERS.find((name) => Object.hasOwn(header, name));
  if (refused !== undefined) return reject('token_header', `its header must not have the member ${refused}`);
  const { typ, alg, kid } = header;
  // Rejects other kinds of tokens by the same issuer (RFC 8725 section 3.11). Clusters send no typ, other issuers `JWT`.
  if (typ !== undefined && (typeof typ !== 'string' || typ.toUpperCase() !== 'JWT')) {
    return reject('token_header', 'its header member typ must be absent or JWT');
  }
  const algorithm = TOKEN_ALGORITHMS.find((name) => name === alg);
  if (algorithm === undefined) {
    return reject('token_algorithm', `must be signed with one of: ${TOKEN_ALGORITHMS.join(', ')}`);
  }
  if (!isIdentifier(kid)) return reject('token_key_unknown', 'its header does not name a key (kid)');
  return { kind: 'envelope', algorithm, kid };
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Undefined unless the bytes are one JSON object in UTF-8 without duplicate members. */
export function parseJsonObject(bytes: Uint8Array): JsonObject | undefined {
  try {
    const value = parseStrictJson(utf8.decode(bytes));
    return isJsonObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/**
 * Error codes of rejected workload tokens, in the order of the checks. Codes are stable; texts never quote the token.
 * Source: docs/operate/control.md "Sources and tokens".
 */

export const TOKEN_PROBLEM_CODES = [
  'token_malformed',
  'token_header',
  'token_algorithm',
  'issuer_keys_unavailable',
  'token_key_unknown',
  'token_signature',
  'token_issuer',
  'token_audience',
  'token_subject',
  'token_expiry_missing',
  'token_expired',
  'token_not_yet_valid',
  'token_lifetime',
  'token_claims',
] as const;
export type TokenProblemCode = (typeof TOKEN_PROBLEM_CODES)[number];

export interface TokenProblem {
  readonly kind: 'refused';
  readonly code: TokenProblemCode;
  readonly detail: string;
  /** Only with `issuer_keys_unavailable`: seconds until a retry makes sense. */
  readonly retryAfterSeconds?: number;
}

export function reject(code: TokenProblemCode, detail: string): TokenProblem {
  return { kind: 'refused', code, detail };
}
