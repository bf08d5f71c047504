/** Fetches and parses an issuer's key set. Source: RFC 7517 section 5; docs/operate/control.md "Sources and tokens". */
import type { Failure, FetchFailureCode } from '../../process/outbound-fetch/fetch-failures.ts';
import type { JsonFetcher } from '../../process/outbound-fetch/outbound-fetch.ts';
import { type IssuerKey, MAX_KEYS, parseKeySet } from './key-set.ts';

type KeySetFetch =
  | {
      readonly kind: 'key_set';
      /** The usable keys. An empty list is a valid result. */
      readonly keys: readonly IssuerKey[];
      /** The document as fetched, for the records. */
      readonly jwks: string;
      /** When the request began, so that the set never seems newer than it is. */
      readonly fetchedAtMs: number;
    }
  | ({ readonly kind: 'failed' } & Failure<SourceFailureCode>);

/** Never rejects. */
export async function fetchKeySet(
  jwksUri: string,
  fetcher: JsonFetcher,
  nowMs: () => number,
): Promise<KeySetFetch> {
  const fetchedAtMs = nowMs();
  const fetched = await fetcher.fetchJson(jwksUri);
  if (fetched.kind === 'failed') return fetched;
  const keys = parseKeySet(fetched.value);
  if (keys === undefined) {
    const detail = `is no object with a list "keys" of at most ${MAX_KEYS} objects`;
    return { kind: 'failed', code: 'key_set_malformed', detail };
  }
  return { kind: 'key_set', keys, jwks: fetched.text, fetchedAtMs };
}

/**
 * Codes for unusable issuer metadata: a closed set. Operators see them on a failed draft; tests assert them.
 * Source: docs/operate/control.md "Outbound fetches".
 */

export type SourceFailureCode =
  | FetchFailureCode
  | 'audience_malformed'
  | 'discovery_malformed'
  | 'discovery_issuer_mismatch'
  | 'discovery_jwks_uri_mismatch'
  | 'key_set_malformed'
  | 'key_set_no_usable_key';
