/**
 * Types of the gRPC messages as @grpc/proto-loader produces them with the options of `process/ext-authz/service.ts`: names as in
 * `proto/`, `bytes` as Buffers, absent fields absent.
 */

export interface HeaderValue {
  readonly key?: string;
  readonly value?: string;
  readonly raw_value?: Buffer;
  /** What a decoded message has in the place of `raw_value`: one character for each byte. */
  readonly raw_text?: string;
}

export interface HttpRequest {
  readonly method?: string;
  readonly headers?: { readonly [name: string]: string };
  readonly header_map?: { readonly headers?: readonly HeaderValue[] };
  /** Path and query. */
  readonly path?: string;
  readonly host?: string;
  readonly scheme?: string;
  readonly query?: string;
  readonly fragment?: string;
  readonly body?: Buffer;
  readonly raw_body?: Buffer;
}

export interface CheckRequest {
  readonly attributes?: { readonly request?: { readonly http?: HttpRequest } };
}
