/** Errors of a client, with a closed union of stable codes. Messages never contain a key or a passport. */

export type ClientErrorCode =
  /** The profile file is not in its format. */
  | 'profile_invalid'
  | 'profile_not_found'
  | 'profile_ambiguous'
  /** The named profile is for another method or path. */
  | 'profile_mismatch'
  | 'method_invalid'
  | 'url_invalid'
  /** Upstreams could interpret the target in different ways. */
  | 'url_not_canonical'
  | 'origin_not_allowed'
  /** The URL is not one that conformance cases can change. */
  | 'target_unsuitable'
  | 'header_invalid'
  /** A header that the client itself sets. */
  | 'header_reserved'
  /** A header that must be signed is missing. */
  | 'header_missing'
  /** A header that must be signed occurs more than once. */
  | 'header_repeated'
  | 'ttl_out_of_range'
  | 'key_id_missing'
  /** Without a broker's passport a key is never more than `software`. */
  | 'passport_required'
  | 'passport_malformed'
  | 'passport_expired'
  /** The broker's passport is for another key, audience or identity. */
  | 'passport_mismatch'
  /** The passport or transcript would exceed the verifier's limit. */
  | 'credentials_too_large'
  | 'ca_invalid'
  /** No connection, or it closed before a response. */
  | 'unreachable'
  /** The connection closed during the response. */
  | 'response_incomplete'
  | 'timed_out';

export class ClientError extends Error {
  override readonly name = 'ClientError';
  readonly code: ClientErrorCode;

  constructor(code: ClientErrorCode, message: string) {
    super(message);
    this.code = code;
  }
}
