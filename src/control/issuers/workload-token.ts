/**
 * Verifies a workload's projected token in full: form, header, key, signature, and only then its claims, against what the policy
 * and its source revision demand. Neither token nor claims ever get into a refusal's text, and the result holds no token.
 *
 * That a service account or pod was deleted meanwhile can't be seen in a signature: a token is good until it expires.
 *
 * Source: specification "Authentication", enrollment plane; docs/control.md "Sources and tokens"; RFC 7519, RFC 8725.
 */
import { hash } from 'node:crypto';
import { compactVerify } from 'jose';
import { findIssuerKey, type IssuerKey, type TokenAlgorithm } from './key-set.ts';
import type { KeyLookup } from './source-keys.ts';
import { checkClaims, type TokenExpectations, type VerifiedClaims } from './token-claims.ts';
import { parseJsonObject, readTokenEnvelope } from './token-envelope.ts';
import { refuse, type TokenRefusal } from './token-refusal.ts';

export interface VerifiedToken extends VerifiedClaims {
  readonly kind: 'verified';
  /** RFC 7638, of the issuer's key that signed it. */
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
): Promise<VerifiedToken | TokenRefusal> {
  const envelope = readTokenEnvelope(token);
  if (envelope.kind === 'refused') return envelope;
  const key = pickKey(await keysFor(envelope.kid), envelope.kid, envelope.algorithm);
  if (key.kind === 'refused') return key;
  const payload = await verifiedPayload(token, key.key, envelope.algorithm);
  if (payload === undefined) return refuse('token_signature', 'its signature does not verify');
  const claims = parseJsonObject(payload);
  if (claims === undefined) {
    return refuse('token_malformed', 'its claims are no JSON object, or name a member twice');
  }
  const checked = checkClaims(claims, expected, nowMs());
  return 'kind' in checked ? checked : { kind: 'verified', keyThumbprint: key.key.thumbprint, ...checked };
}

/**
 * Names a token: SHA-256 of its signing input, base64url. The signature is left out, since an ECDSA signature `(r, s)` is as good
 * as `(r, n - s)`: whoever holds one token could otherwise make it look like two.
 */
export function tokenHash(token: string): string {
  const end = token.lastIndexOf('.');
  return hash('sha256', end === -1 ? token : token.slice(0, end), 'base64url');
}

function pickKey(
  lookup: KeyLookup,
  kid: string,
  algorithm: TokenAlgorithm,
): { readonly kind: 'key'; readonly key: IssuerKey } | TokenRefusal {
  if (lookup.kind === 'unavailable') {
    const detail = "the issuer's keys cannot be had at the moment";
    return {
      ...refuse('issuer_keys_unavailable', detail),
      retryAfterSeconds: lookup.retryAfterSeconds,
    };
  }
  const found = findIssuerKey(lookup.keys, kid, algorithm);
  switch (found.kind) {
    case 'key':
      return found;
    case 'other_algorithm':
      return refuse('token_algorithm', 'the key that it names is for another algorithm');
    case 'ambiguous':
      return refuse('token_key_unknown', 'the issuer has several keys of that name');
    case 'unknown':
      return refuse('token_key_unknown', 'the issuer has no usable key of that name');
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
