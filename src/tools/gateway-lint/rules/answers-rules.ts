/** Rules about Envoy's calls to the verifier, and its handling of the answer or of a missing answer. */

import type { Gateway, Rule } from '../gateway/gateway.ts';
import {
  extAuths,
  externalAuths,
  grpcServices,
  isOn,
  istioProviders,
  mayBeOn,
  routeSettings,
  unless,
  where,
} from '../gateway/gateway-queries.ts';
import type { View } from '../gateway/view.ts';

/** Istio's and Envoy Gateway's settings of the check, which share some names. */
function generatedChecks(gateway: Gateway): readonly View[] {
  return [...istioProviders(gateway), ...extAuths(gateway)];
}

/** Whether the status is a fault of the gateway, not of the caller. */
function isServerError({ text }: View): boolean {
  return /^(?:5\d\d|InternalServerError|NotImplemented|BadGateway|ServiceUnavailable|GatewayTimeout|InsufficientStorage)$/.test(
    text ?? '',
  );
}

/** The verifier gives up on a Check after a second when the gateway allows more. */
const MAX_SECONDS = 2;

function isSoon({ seconds }: View): boolean {
  return seconds !== undefined && seconds > 0 && seconds <= MAX_SECONDS;
}

export const ANSWER_RULES: readonly Rule[] = [
  {
    id: 'fails-open',
    severity: 'error',
    effect: 'lets every request through while the verifier does not answer',
    fix: 'failure_mode_allow: false (Istio, Envoy Gateway: failOpen: false)',
    find: (gateway) => [
      ...where(gateway.checks, 'failure_mode_allow', mayBeOn),
      ...where(generatedChecks(gateway), 'fail_open', mayBeOn),
    ],
  },
  {
    id: 'status-on-error',
    severity: 'warning',
    effect: 'tells callers that they are forbidden when it is the verifier that does not answer',
    fix: 'status_on_error: { code: ServiceUnavailable } (Istio: statusOnError: "503"; Envoy Gateway: statusOnError: 503)',
    find: (gateway) => [
      ...unless(gateway.checks, 'status_on_error.code', isServerError),
      ...unless(generatedChecks(gateway), 'status_on_error', isServerError),
    ],
  },
  {
    id: 'check-time-out',
    severity: 'warning',
    effect:
      'holds requests for long, or for as long as the gateway does by default (Istio 600s, Envoy Gateway 10s)',
    fix: 'grpc_service: { timeout: 0.5s } or server_uri: { timeout: 0.5s }, at most 2s (Istio, Envoy Gateway: timeout: 500ms)',
    find: (gateway) => [
      ...unless([...grpcServices(gateway), ...generatedChecks(gateway)], 'timeout', isSoon),
      ...unless(where(gateway.checks, 'http_service'), 'server_uri.timeout', isSoon),
    ],
  },
  {
    id: 'check-retried',
    severity: 'warning',
    effect:
      'asks again about the same request: the first Check used the proof, so the verifier denies a replay',
    fix: 'no retry_policy on the Check (Envoy Gateway: no backendSettings.retry)',
    find: (gateway) => [
      ...where(grpcServices(gateway), 'retry_policy'),
      ...where(grpcServices(gateway), 'envoy_grpc.retry_policy'),
      ...where(gateway.checks, 'http_service.retry_policy'),
      ...where(extAuths(gateway), 'grpc.backend_settings.retry'),
      ...where(extAuths(gateway), 'http.backend_settings.retry'),
    ],
  },
  {
    id: 'mutations-not-validated',
    severity: 'warning',
    effect: 'applies what an answer of the Check says even when it is not valid HTTP',
    fix: 'validate_mutations: true',
    find: ({ checks }) => unless(checks, 'validate_mutations', isOn),
  },
  {
    id: 'header-changes-refused',
    severity: 'error',
    effect:
      "ignores headers that the verifier sets and removes: a caller's own context headers reach the API",
    fix: 'no decoder_header_mutation_rules',
    find: ({ checks }) => where(checks, 'decoder_header_mutation_rules'),
  },
  {
    id: 'route-cache-cleared',
    severity: 'error',
    effect: 'chooses the route again after the check: a request may take a route that it was not checked for',
    fix: 'clear_route_cache: false (Istio: clearRouteCache: false; Envoy Gateway: recomputeRoute: false)',
    find: (gateway) => [
      ...where([...gateway.checks, ...istioProviders(gateway)], 'clear_route_cache', mayBeOn),
      ...where(extAuths(gateway), 'recompute_route', mayBeOn),
    ],
  },
  {
    id: 'transport-version',
    severity: 'error',
    effect: 'speaks a version of the Check that no verifier answers',
    fix: 'transport_api_version: V3',
    find: ({ checks }) => unless(checks, 'transport_api_version', (version) => version.isOneOf('V3', 2)),
  },
  {
    id: 'http-service',
    severity: 'error',
    effect: 'asks over HTTP, in a form that leaves out most of the request or that no verifier answers',
    fix: 'grpc_service (Istio: envoyExtAuthzGrpc; Envoy Gateway: extAuth.grpc; Gateway API: protocol: GRPC), or http_service with path_prefix: /check',
    find: (gateway) => [
      ...where(gateway.checks, 'http_service', (service) => service.get('path_prefix')?.text !== '/check'),
      ...routeSettings(gateway, 'http_service'),
      ...where(
        gateway.meshes.flatMap((mesh) => mesh.list('extension_providers')),
        'envoy_ext_authz_http',
      ),
      ...where(extAuths(gateway), 'http'),
      ...where(externalAuths(gateway), 'protocol', (protocol) => protocol.text !== 'GRPC'),
    ],
  },
];
