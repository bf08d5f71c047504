/** Types of the answers as @grpc/proto-loader takes them: see `request-messages.ts`. */

export interface HeaderValueOption {
  readonly header: { readonly key: string; readonly value: string };
  /** For older Envoys; false overwrites. */
  readonly append: { readonly value: boolean };
  /** For newer Envoys, whose default is to append. */
  readonly append_action: typeof OVERWRITE_IF_EXISTS_OR_ADD;
}

export const OVERWRITE_IF_EXISTS_OR_ADD = 2;

/** Sets both fields: older Envoys read only the first, newer ones the second. */
function overwrite([key, value]: readonly [string, string]): HeaderValueOption {
  return { header: { key, value }, append: { value: false }, append_action: OVERWRITE_IF_EXISTS_OR_ADD };
}

export function overwriteAll(
  headers: readonly (readonly [name: string, value: string])[],
): readonly HeaderValueOption[] {
  return headers.map(overwrite);
}

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

/** The library's serializers. */
export interface ResponseSerializers {
  readonly checkResponse: (response: CheckResponse) => Buffer;
}
