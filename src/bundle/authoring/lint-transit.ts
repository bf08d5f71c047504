/**
 * Finds changes that proxies and client libraries make between a caller and the verifier, so that correct requests are
 * denied.
 */
import { parsePathTemplate } from '../../protocol/path-template.ts';
import { pointer, showValue } from '../format/bundle-error.ts';
import type { RouteContent } from '../format/schema.ts';
import { type Finding, warning } from './findings.ts';

export function lintTransit(route: RouteContent, path: string): readonly Finding[] {
  return [...rewrittenHeaders(route, path), ...boundGrpc(route, path)];
}

/** Headers that are rewritten on the way, with the kind of rewriting. */
const REWRITTEN: readonly (readonly [name: RegExp, change: string])[] = [
  [/^accept-encoding$/, 'CDNs and HTTP libraries set their own encodings'],
  [/^user-agent$/, 'HTTP libraries and CDNs set their own'],
  [/^(?:via|forwarded|cdn-loop)$/, 'each proxy on the way adds itself'],
  [/^x-(?:forwarded-.+|real-ip|envoy-.+)$/, 'each proxy on the way replaces it, or adds to it'],
  [/^accept(?:-.+)?$/, 'its value has commas, and after Envoy one line with commas may be several'],
  [/^cookie$/, 'HTTP/2 splits it into lines'],
  [/^date$/, 'HTTP libraries and proxies set it when they send'],
  [
    /^(?:range|if-range|if-match|if-none-match|if-modified-since|if-unmodified-since)$/,
    'caches ask for other parts than the caller',
  ],
  [
    /^(?:x-request-id|x-correlation-id|traceparent|tracestate|baggage|b3|x-b3-.+|x-amzn-trace-id|x-cloud-trace-context)$/,
    'gateways and tracing libraries set their own',
  ],
  [
    /^(?:cache-control|pragma|priority|early-data|max-forwards)$/,
    'it is meant for the proxies on the way, which may change it',
  ],
  [
    /^(?:connection|keep-alive|proxy-.+|te|trailer|transfer-encoding|upgrade|expect|http2-settings)$/,
    'it is of one connection, and a proxy does not pass it on',
  ],
  [/^(?:host|content-length)$/, 'HTTP/2 has another form of it; the proof covers authority and body already'],
];

function rewrittenHeaders({ route_id, signed_headers = [] }: RouteContent, path: string): readonly Finding[] {
  return signed_headers.flatMap((name, index) => {
    const change = REWRITTEN.find(([pattern]) => pattern.test(name))?.[1];
    if (change === undefined) return [];
    const text = `${showValue(route_id)}: ${name} often arrives changed, and then the request is denied: ${change}`;
    return [warning('signed_header_rewritten', `${path}${pointer('signed_headers', index)}`, text)];
  });
}

const PACKAGED_SERVICE = /^[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+$/;
const CAPITALISED = /^[A-Z]\w*$/;

/** A call is `POST /package.Service/Method`. The package may be missing, the method a placeholder. */
function boundGrpc(
  { body, method, path_template, route_id }: RouteContent,
  path: string,
): readonly Finding[] {
  if (method !== 'POST' || body === 'unbound') return [];
  const template = parsePathTemplate(path_template);
  const [service, call, ...rest] = template.kind === 'template' ? template.segments : [];
  if (service?.kind !== 'literal' || call === undefined || rest.length > 0) return [];
  const isMethod = call.kind !== 'literal' || CAPITALISED.test(call.text);
  const isGrpc =
    isMethod &&
    (PACKAGED_SERVICE.test(service.text) || (call.kind === 'literal' && CAPITALISED.test(service.text)));
  if (!isGrpc) return [];
  const text = `${showValue(route_id)}: looks like gRPC; a bound body is received whole before the check, so streaming calls wait or are denied: unary calls only, or body: unbound`;
  return [warning('grpc_body_bound', `${path}/path_template`, text)];
}
