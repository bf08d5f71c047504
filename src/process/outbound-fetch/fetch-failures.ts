/**
 * Error codes of a failed fetch: a closed set. Details never repeat what a remote server sent, so that a fetch cannot read
 * what it must not reach. Source: docs/operate/control.md "Outbound fetches".
 */

export type UrlFailureCode =
  | 'url_malformed'
  | 'url_not_https'
  | 'url_has_credentials'
  | 'url_has_fragment'
  | 'url_has_query'
  | 'url_not_canonical';

export type FetchFailureCode =
  | UrlFailureCode
  | 'name_not_found'
  | 'address_forbidden'
  | 'connection_failed'
  | 'tls_failed'
  | 'redirect_refused'
  | 'http_status'
  | 'content_type'
  | 'content_encoding'
  | 'response_too_large'
  | 'response_too_slow'
  | 'body_malformed';

export interface Failure<Code extends string> {
  readonly code: Code;
  /** One line for the operator: the finding, and the remedy where it is not obvious. */
  readonly detail: string;
}

export type FetchFailure = Failure<FetchFailureCode>;
