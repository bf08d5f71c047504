/**
 * Compiles the OAuth authorization servers of a bundle, whose access tokens count beside a DPoP proof. Their keys are a namespace of
 * their own.
 * Source: docs/design/bundle.md "Rules that a load enforces".
 */
import { importTokenKey, type TokenKey } from '../../protocol/token-key.ts';
import { type Faults, pointer, showValue } from '../format/bundle-error.ts';
import { DEFAULT_PASSPORT_TTL_SECONDS } from '../format/bundle-limits.ts';
import type { BundleContent, OAuthIssuerContent } from '../format/schema.ts';
import { optionalTime } from './compile-keys.ts';
import type { OAuthIssuer } from './snapshot.ts';

/** By issuer. */
export function compileOAuthIssuers(
  content: BundleContent,
  faults: Faults,
): ReadonlyMap<string, OAuthIssuer> {
  const others = new Set(
    [...(content.clients ?? []), ...(content.issuers ?? [])].map(({ issuer }) => issuer),
  );
  const compiled = new Map<string, OAuthIssuer>();
  for (const [index, entry] of (content.oauth_issuers ?? []).entries()) {
    const path = pointer('oauth_issuers', index);
    // A server must not be able to speak for a client, nor for callers of a broker.
    if (others.has(entry.issuer)) {
      const text = `${showValue(entry.issuer)} is the issuer of a client or broker`;
      faults.add('issuer_of_client', `${path}/issuer`, text);
    }
    if (compiled.has(entry.issuer)) {
      faults.add('duplicate', `${path}/issuer`, `${showValue(entry.issuer)} occurs twice`);
    }
    compiled.set(entry.issuer, compileOAuthIssuer(entry, path, faults));
  }
  return compiled;
}

/** Claims that name the client also in tokens of its users. */
const CLAIMS_OF_CLIENTS = ['client_id', 'azp'];

function compileOAuthIssuer(entry: OAuthIssuerContent, path: string, faults: Faults): OAuthIssuer {
  const { service_marker: marker, subject_claim: subjectClaim = 'sub' } = entry;
  if (CLAIMS_OF_CLIENTS.includes(subjectClaim) && marker === undefined) {
    const text = `any user of a client would be the workload: ${subjectClaim} as subject needs it`;
    faults.add('missing_member', `${path}/service_marker`, text);
  }
  return {
    issuer: entry.issuer,
    trustDomain: entry.trust_domain,
    tokenTypes: new Set(entry.token_types ?? ['at+jwt']),
    subjectClaim,
    serviceMarker: marker,
    contextClaims: entry.context_claims ?? [],
    maxTokenTtlSeconds: entry.max_token_ttl_seconds ?? DEFAULT_PASSPORT_TTL_SECONDS,
    notBeforeSeconds: optionalTime(entry.not_before, `${path}/not_before`, faults),
    keys: compileKeys(entry, path, faults),
  };
}

function compileKeys(
  { keys }: OAuthIssuerContent,
  path: string,
  faults: Faults,
): ReadonlyMap<string, TokenKey> {
  const compiled = new Map<string, TokenKey>();
  for (const [index, { alg, jwk, kid }] of keys.entries()) {
    const at = `${path}${pointer('keys', index)}`;
    if (compiled.has(kid)) faults.add('duplicate', `${at}/kid`, `${showValue(kid)} occurs twice`);
    const key = importTokenKey(jwk, alg);
    if (key === undefined) faults.add('key_refused', `${at}/jwk`, `no valid key for ${alg}`);
    else compiled.set(kid, key);
  }
  return compiled;
}
