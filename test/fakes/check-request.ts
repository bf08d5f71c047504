/** CheckRequests as Envoy makes them (docs/enforcement.md "What ext_authz really sends"). */
import type { CheckRequest, HeaderValue } from '../../src/process/ext-authz/request-messages.ts';
import type { HeaderLine, WireRequest } from './signed-request.ts';

/** With `encode_raw_headers` and `pack_as_bytes`. */
export function rawCheckRequest(request: WireRequest): CheckRequest {
  const headers = linesOf(request).map(({ name, value }): HeaderValue => {
    const key = name.toLowerCase();
    return { key, raw_value: Buffer.from(value, 'latin1') };
  });
  return checkRequest(request, { header_map: { headers } });
}

/** Without: lines joined, bytes beyond ASCII replaced. */
export function mergedCheckRequest(request: WireRequest): CheckRequest {
  const headers: { [name: string]: string } = {};
  for (const { name, value } of linesOf(request)) {
    const key = name.toLowerCase();
    const text = value.replace(/[^\0-\x7f]/g, '!');
    headers[key] = Object.hasOwn(headers, key) ? `${headers[key]},${text}` : text;
  }
  return checkRequest(request, { headers });
}

/** Envoy's pseudo-headers are among the others. */
function linesOf({ authority, body, headers, method, scheme, target }: WireRequest): readonly HeaderLine[] {
  const pseudo = { ':authority': authority, ':path': target, ':method': method, ':scheme': scheme };
  const lines = Object.entries(pseudo).map(([name, value]) => ({ name, value }));
  if (body.kind === 'none') return [...lines, ...headers];
  const value = String(body.kind === 'unknown');
  return [...lines, ...headers, { name: 'x-envoy-auth-partial-body', value }];
}

function checkRequest(
  { authority, body, method, scheme, target }: WireRequest,
  headers: object,
): CheckRequest {
  const bytes = body.kind === 'exact' ? { raw_body: Buffer.from(body.bytes) } : {};
  const http = { method, scheme, host: authority, path: target, ...headers, ...bytes };
  return { attributes: { request: { http } } };
}
