/**
 * Types of the gRPC messages as @grpc/proto-loader produces them with the options of `service.ts`: names as in
 * `proto/`, `bytes` as Buffers, absent fields absent.
 */

export interface HeaderValue {
  readonly key?: string;
  readonly value?: string;
  readonly raw_value?: Buffer;
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

export interface HeaderValueOption {
  readonly header: { readonly key: string; readonly value: string };
  /** For older Envoys; false overwrites. */
  readonly append: { readonly value: boolean };
  /** For newer Envoys, whose default is to append. */
  readonly append_action: typeof OVERWRITE_IF_EXISTS_OR_ADD;
}

export const OVERWRITE_IF_EXISTS_OR_ADD = 2;

interface OkHttpResponse {
  readonly headers: readonly HeaderValueOption[];
  readonly headers_to_remove: readonly string[];
}

export interface CheckResponse {
  /** google.rpc.Status; anything but code 0 denies. */
  readonly status?: { readonly code: number };
  readonly ok_response?: OkHttpResponse;
  readonly denied_response?: {
    readonly status: { readonly code: number };
    readonly headers: readonly HeaderValueOption[];
    readonly body: string;
  };
}
