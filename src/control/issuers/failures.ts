/**
 * Codes for unusable issuer metadata: a closed set. Operators see them on a failed draft; tests assert them.
 * Source: docs/control.md "Outbound fetches".
 */
import type { FetchFailureCode } from '../../outbound-fetch/fetch-failures.ts';

export type SourceFailureCode =
  | FetchFailureCode
  | 'audience_malformed'
  | 'discovery_malformed'
  | 'discovery_issuer_mismatch'
  | 'discovery_jwks_uri_mismatch'
  | 'key_set_malformed'
  | 'key_set_no_usable_key';
