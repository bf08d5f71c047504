/** What a client refuses, as a closed union of stable codes. Messages never hold key or passport. */

export type ClientErrorCode =
  /** The profile file is not in its format. */
  | 'profile_invalid'
  | 'profile_not_found'
  | 'profile_ambiguous'
  /** The profile that was named is for another method or path. */
  | 'profile_mismatch'
  | 'method_invalid'
  | 'url_invalid'
  /** The target is not one that every upstream reads alike. */
  | 'url_not_canonical'
  | 'origin_not_allowed'
  | 'header_invalid'
  /** A header whose value the client itself decides. */
  | 'header_reserved'
  /** A header that has to be signed was not given. */
  | 'header_missing'
  /** A header that has to be signed was given more than once. */
  | 'header_repeated'
  | 'ttl_out_of_range'
  | 'key_id_missing'
  /** Without a broker's passport a key is never more than `software`. */
  | 'passport_required'
  | 'passport_malformed'
  | 'passport_expired'
  /** The broker's passport is for another key, audience or identity. */
  | 'passport_mismatch'
  /** Passport or transcript would be longer than a verifier reads. */
  | 'credentials_too_large'
  | 'ca_invalid'
  /** No connection, or it ended before an answer. */
  | 'unreachable'
  /** The connection ended within the answer. */
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
