/**
 * Fetches the keys of an OAuth authorization server, as a bundle lists them: the URL of its key set from its metadata, unless the
 * operator entered one, then the key set.
 * Source: RFC 8414 sections 3 and 3.3, OpenID Connect Discovery 1.0 section 4; docs/operate/control.md "OAuth issuers".
 */
import { MAX_KEYS_PER_ISSUER, type OAuthIssuerContent } from '../../bundle/format/schema-entries.ts';
import type { Failure } from '../../process/outbound-fetch/fetch-failures.ts';
import type { JsonFetch, JsonFetcher } from '../../process/outbound-fetch/outbound-fetch.ts';
import { isKeyId } from '../../protocol/identifiers.ts';
import { parsePublicJwk } from '../../protocol/public-key.ts';
import { isJsonObject } from '../../protocol/strict-json.ts';
import { importTokenKey } from '../../protocol/token-key.ts';
import { fetchKeySet, type SourceFailureCode } from './fetch-key-set.ts';
import { discoveryUrlOf, readKeySetUrl } from './issuer-url.ts';
import type { IssuerKey } from './key-set.ts';

export type OAuthKey = OAuthIssuerContent['keys'][number];

interface AuthorizationServer {
  /** https URL, canonical. */
  readonly issuer: string;
  /** Undefined: the one in the metadata. */
  readonly jwksUrl: string | undefined;
}

type OAuthKeysFetch =
  /** Possibly none: the server then has no key that verifiers could use. */
  | { readonly kind: 'keys'; readonly keys: readonly OAuthKey[]; readonly fetchedAtMs: number }
  | ({ readonly kind: 'failed' } & Failure<SourceFailureCode>);

/** Never rejects. */
export async function fetchOAuthKeys(
  { issuer, jwksUrl }: AuthorizationServer,
  fetcher: JsonFetcher,
  nowMs: () => number,
): Promise<OAuthKeysFetch> {
  const found =
    jwksUrl === undefined ? await findKeySetUrl(issuer, fetcher) : ({ kind: 'url', url: jwksUrl } as const);
  if (found.kind === 'failed') return found;
  const fetched = await fetchKeySet(found.url, fetcher, nowMs);
  if (fetched.kind === 'failed') return fetched;
  const keys = oauthKeysOf(fetched.keys);
  if (keys.length > MAX_KEYS_PER_ISSUER) {
    return failed('key_set_malformed', `more than ${MAX_KEYS_PER_ISSUER} keys can verify access tokens`);
  }
  return { kind: 'keys', keys, fetchedAtMs: fetched.fetchedAtMs };
}

type FoundUrl =
  | { readonly kind: 'url'; readonly url: string }
  | ({ readonly kind: 'failed' } & Failure<SourceFailureCode>);

async function findKeySetUrl(issuer: string, fetcher: JsonFetcher): Promise<FoundUrl> {
  const fetched = await fetchMetadata(issuer, fetcher);
  if (fetched.kind === 'failed') return fetched;
  const metadata = fetched.value;
  if (!isJsonObject(metadata)) return failed('discovery_malformed', 'the metadata is no JSON object');
  // Without this a server could name the keys of another one (RFC 8414 section 3.3).
  if (metadata.issuer !== issuer) {
    return failed('discovery_issuer_mismatch', 'the metadata is that of another issuer');
  }
  const { jwks_uri: url } = metadata;
  if (typeof url !== 'string') return failed('discovery_malformed', 'the metadata has no jwks_uri');
  const reading = readKeySetUrl(url);
  return reading.kind === 'refused'
    ? failed(reading.code, `jwks_uri: ${reading.detail}`)
    : { kind: 'url', url };
}

/** Servers have one of two documents, or both. */
async function fetchMetadata(issuer: string, fetcher: JsonFetcher): Promise<JsonFetch> {
  const fetched = await fetcher.fetchJson(discoveryUrlOf(issuer));
  const isMissing = fetched.kind === 'failed' && fetched.code === 'http_status';
  return isMissing ? fetcher.fetchJson(metadataUrlOf(issuer)) : fetched;
}

/** RFC 8414 section 3.1: the well-known path stands before that of the issuer. */
function metadataUrlOf(issuer: string): string {
  const { origin, pathname } = new URL(issuer);
  return `${origin}/.well-known/oauth-authorization-server${pathname.replace(/\/$/, '')}`;
}

/** Ordered by `kid`. Two keys of one `kid` are ambiguous, so both are left out, as are keys that no bundle can hold. */
function oauthKeysOf(keys: readonly IssuerKey[]): readonly OAuthKey[] {
  const uses = new Map<string, number>();
  for (const { kid } of keys) uses.set(kid, (uses.get(kid) ?? 0) + 1);
  return keys
    .filter(({ kid }) => uses.get(kid) === 1)
    .flatMap((key) => oauthKeyOf(key) ?? [])
    .toSorted((a, b) => (a.kid < b.kid ? -1 : 1));
}

function oauthKeyOf({ algorithms: [alg], keyObject, kid }: IssuerKey): OAuthKey | undefined {
  const { e, kty, n, ...members } = keyObject.export({ format: 'jwk' });
  const jwk =
    kty === 'RSA'
      ? { kty: 'RSA' as const, n: n ?? '', e: 'AQAB' as const }
      : parsePublicJwk({ kty, ...members });
  if (!isKeyId(kid) || alg === undefined || jwk === undefined || (jwk.kty === 'RSA' && e !== 'AQAB')) {
    return undefined;
  }
  return importTokenKey(jwk, alg) === undefined ? undefined : { kid, alg, jwk };
}

function failed(
  code: SourceFailureCode,
  detail: string,
): { readonly kind: 'failed' } & Failure<SourceFailureCode> {
  return { kind: 'failed', code, detail };
}
