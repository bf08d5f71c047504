/**
 * Verifies a workload's projected token: form, header, key, signature, and then its claims against the policy and its
 * source revision. Error texts never quote the token or its claims, and the result does not contain the token.
 *
 * A signature does not show whether the service account or pod was deleted: a token is valid until it expires.
 *
 * Source: specification "Authentication", enrollment plane; docs/operate/control.md "Sources and tokens"; RFC 7519, RFC 8725.
 */
import { hash } from 'node:crypto';
import { compactVerify } from 'jose';
import { findIssuerKey, type IssuerKey, type TokenAlgorithm } from './key-set.ts';
import type { KeyLookup } from './source-keys.ts';
import { checkClaims, type TokenExpectations, type VerifiedClaims } from './token-claims.ts';
import { parseJsonObject, readTokenEnvelope, reject, type TokenProblem } from './token-envelope.ts';

export interface VerifiedToken extends VerifiedClaims {
  readonly kind: 'verified';
  /** RFC 7638 thumbprint of the issuer key that signed the token. */
  readonly keyThumbprint: string;
}

export interface TokenCheck {
  readonly expected: TokenExpectations;
  /** The keys of the policy's source revision, such as `(kid) => cache.keysFor(source, kid)`. */
  readonly keysFor: (kid: string) => Promise<KeyLookup>;
  /** Read once, when the signature has been checked. */
  readonly nowMs: () => number;
}

/** Never rejects, unless `keysFor` does. */
export async function verifyWorkloadToken(
  token: string,
  { expected, keysFor, nowMs }: TokenCheck,
): Promise<VerifiedToken | TokenProblem> {
  const envelope = readTokenEnvelope(token);
  if (envelope.kind === 'refused') return envelope;
  const key = pickKey(await keysFor(envelope.kid), envelope.kid, envelope.algorithm);
  if (key.kind === 'refused') return key;
  const payload = await verifiedPayload(token, key.key, envelope.algorithm);
  if (payload === undefined) return reject('token_signature', 'its signature does not verify');
  const claims = parseJsonObject(payload);
  if (claims === undefined) {
    return reject('token_malformed', 'its claims are no JSON object, or name a member twice');
  }
  const checked = checkClaims(claims, expected, nowMs());
  return 'kind' in checked ? checked : { kind: 'verified', keyThumbprint: key.key.thumbprint, ...checked };
}

/**
 * Identifies a token: SHA-256 of its signing input, base64url. It excludes the signature, because an ECDSA signature
 * `(r, s)` is as valid as `(r, n - s)`, so the holder of one token could make it look like two.
 */
export function tokenHash(token: string): string {
  const end = token.lastIndexOf('.');
  return hash('sha256', end === -1 ? token : token.slice(0, end), 'base64url');
}

function pickKey(
  lookup: KeyLookup,
  kid: string,
  algorithm: TokenAlgorithm,
): { readonly kind: 'key'; readonly key: IssuerKey } | TokenProblem {
  if (lookup.kind === 'unavailable') {
    const detail = "the issuer's keys are unavailable at the moment";
    return {
      ...reject('issuer_keys_unavailable', detail),
      retryAfterSeconds: lookup.retryAfterSeconds,
    };
  }
  const found = findIssuerKey(lookup.keys, kid, algorithm);
  switch (found.kind) {
    case 'key':
      return found;
    case 'other_algorithm':
      return reject('token_algorithm', 'the key that it names is for another algorithm');
    case 'ambiguous':
      return reject('token_key_unknown', 'the issuer has several keys of that name');
    case 'unknown':
      return reject('token_key_unknown', 'the issuer has no usable key of that name');
  }
}

async function verifiedPayload(
  token: string,
  key: IssuerKey,
  algorithm: TokenAlgorithm,
): Promise<Uint8Array | undefined> {
  try {
    const { payload } = await compactVerify(token, key.keyObject, { algorithms: [algorithm] });
    return payload;
  } catch {
    return undefined;
  }
}
