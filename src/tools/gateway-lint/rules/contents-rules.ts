/** Rules about the parts of a request that the Check contains. */

import type { Rule } from '../gateway/gateway.ts';
import {
  bodySettings,
  extAuths,
  externalAuths,
  isOn,
  istioProviders,
  mayBeOn,
  missing,
  routeSettings,
  unless,
  where,
} from '../gateway/gateway-queries.ts';
import type { View } from '../gateway/view.ts';

/** The verifier's default `--max-message-bytes`, minus space for headers. */
const MAX_BODY_BYTES = 4_194_304 - 131_072;

function isLarge({ number }: View): boolean {
  return !(number !== undefined && number <= MAX_BODY_BYTES);
}

function overGrpc(checks: readonly View[]): readonly View[] {
  return checks.filter((check) => check.get('http_service') === undefined);
}

export const CONTENT_RULES: readonly Rule[] = [
  {
    id: 'partial-body',
    severity: 'error',
    effect: 'shows the verifier a part of a large body, and forwards all of it',
    fix: 'allow_partial_message: false',
    find: (gateway) => where(bodySettings(gateway), 'allow_partial_message', mayBeOn),
  },
  {
    id: 'body-not-packed',
    severity: 'warning',
    effect: 'sends bodies as text and changes bytes that are not UTF-8: the verifier denies such requests',
    fix: 'pack_as_bytes: true (Istio: packAsBytes: true; Envoy Gateway: an EnvoyPatchPolicy)',
    find: (gateway) => [
      ...unless(bodySettings(gateway), 'pack_as_bytes', isOn),
      // Envoy Gateway has no such setting.
      ...(gateway.patches.checkSettings.has('with_request_body.pack_as_bytes')
        ? []
        : where(extAuths(gateway), 'body_to_ext_auth')),
      ...where(externalAuths(gateway), 'forward_body'),
    ],
  },
  {
    id: 'body-not-shown',
    severity: 'warning',
    effect:
      'sends no bodies: only routes with `body: unbound` work, and the verifier needs --envoy-body none',
    fix: 'with_request_body (Istio: includeRequestBodyInCheck; Envoy Gateway: bodyToExtAuth; Gateway API: forwardBody)',
    find: (gateway) => [
      ...missing(gateway.checks, 'with_request_body'),
      ...missing(istioProviders(gateway), 'include_request_body_in_check'),
      ...missing(extAuths(gateway), 'body_to_ext_auth'),
      ...unless(externalAuths(gateway), 'forward_body.max_size', ({ number }) => number !== 0),
    ],
  },
  {
    id: 'body-streamed',
    severity: 'error',
    effect:
      'forwards a body that the verifier cannot see: on a bound route the proof of an empty body carries it',
    fix: 'remove it; where the bundle says `body: unbound`, allow it by a comment',
    find: (gateway) => routeSettings(gateway, 'disable_request_body_buffering').filter(mayBeOn),
  },
  {
    id: 'body-limit',
    severity: 'warning',
    effect: 'keeps bodies that are too large for a Check: the verifier denies them (--max-message-bytes)',
    fix: 'max_request_bytes: 1048576, or a higher --max-message-bytes',
    find: (gateway) => [
      ...where(bodySettings(gateway), 'max_request_bytes', isLarge),
      ...where(extAuths(gateway), 'body_to_ext_auth.max_request_bytes', isLarge),
    ],
  },
  {
    id: 'headers-merged',
    severity: 'warning',
    effect:
      'joins repeated headers and changes bytes: the verifier denies ambiguous values, with a comma or `!`',
    fix: 'encode_raw_headers: true (Istio: in an EnvoyFilter; Envoy Gateway: in an EnvoyPatchPolicy)',
    find: (gateway) => [
      ...unless(gateway.checks, 'encode_raw_headers', isOn),
      // Istio and Envoy Gateway have no such setting.
      ...(gateway.patches.checkSettings.has('encode_raw_headers')
        ? []
        : [...istioProviders(gateway), ...extAuths(gateway)]),
      ...externalAuths(gateway),
    ],
  },
  {
    id: 'headers-hidden',
    severity: 'error',
    effect: 'hides headers from the verifier, which can then neither check nor remove them',
    fix: 'neither allowed_headers nor disallowed_headers (Envoy Gateway: no headersToExtAuth; Gateway API: no allowedHeaders)',
    find: (gateway) => [
      // Over HTTP, Envoy sends no headers without this setting: `http-service-rules.ts`.
      ...where(overGrpc(gateway.checks), 'allowed_headers'),
      ...where(gateway.checks, 'disallowed_headers'),
      ...where(extAuths(gateway), 'headers_to_ext_auth'),
      ...where(externalAuths(gateway), 'grpc.allowed_headers'),
      ...where(externalAuths(gateway), 'http.allowed_headers'),
    ],
  },
  {
    id: 'peer-certificate',
    severity: 'warning',
    effect: "leaves the caller's certificate out of the Check",
    fix: 'include_peer_certificate: true',
    // Checks over HTTP do not support it.
    find: ({ checks }) => unless(overGrpc(checks), 'include_peer_certificate', isOn),
  },
];
