/** How the verifier is asked, and what is made of its answer, or of having none. */
import type { Rule } from '../gateway.ts';
import {
  extAuths,
  externalAuths,
  grpcServices,
  istioProviders,
  mayBeOn,
  providersOf,
  unless,
  viewsOf,
  where,
  whole,
} from '../settings.ts';
import type { View } from '../view.ts';

const failsOpen: Rule = {
  id: 'fails-open',
  severity: 'error',
  effect: 'lets every request through while the verifier does not answer',
  fix: 'failure_mode_allow: false (Istio, Envoy Gateway: failOpen: false)',
  find: (gateway) => [
    ...where(viewsOf(gateway.checks), ['failure_mode_allow'], mayBeOn),
    ...where(
      [...istioProviders(gateway), ...providersOf(gateway.meshes, 'envoy_ext_authz_http')],
      ['fail_open'],
      mayBeOn,
    ),
    ...where(extAuths(gateway), ['fail_open'], mayBeOn),
  ],
};

/** Words for statuses that say whose fault it is. */
const SERVER_ERROR =
  /^(?:5\d\d|InternalServerError|NotImplemented|BadGateway|ServiceUnavailable|GatewayTimeout|InsufficientStorage)$/;

const statusOnError: Rule = {
  id: 'status-on-error',
  severity: 'warning',
  effect: 'tells callers that they are forbidden when it is the verifier that does not answer',
  fix: 'status_on_error: { code: ServiceUnavailable } (Istio: statusOnError: "503"; Envoy Gateway: statusOnError: 503)',
  find: (gateway) => [
    ...unless(gateway.checks, ['status_on_error', 'code'], isServerError),
    ...unless(
      [...istioProviders(gateway), ...extAuths(gateway)].map(whole),
      ['status_on_error'],
      isServerError,
    ),
  ],
};

function isServerError(setting: View): boolean {
  return SERVER_ERROR.test(setting.text ?? '');
}

/** The verifier gives up on a Check after a second where it was given more. */
const MAX_SECONDS = 2;

const checkTimeout: Rule = {
  id: 'check-time-out',
  severity: 'warning',
  effect: 'holds requests for long, or leaves it to the gateway for how long (Istio 600s, Envoy Gateway 10s)',
  fix: 'grpc_service: { timeout: 0.5s }, at most 2s (Istio, Envoy Gateway: timeout: 500ms)',
  find: (gateway) => [
    ...unless(grpcServices(gateway), ['timeout'], isSoon),
    ...unless([...istioProviders(gateway), ...extAuths(gateway)].map(whole), ['timeout'], isSoon),
  ],
};

function isSoon({ seconds }: View): boolean {
  return seconds !== undefined && seconds > 0 && seconds <= MAX_SECONDS;
}

const checkRetried: Rule = {
  id: 'check-retried',
  severity: 'warning',
  effect: 'asks again about the same request: its proof is used by then, so it is refused as a replay',
  fix: 'no retry_policy on the Check (Envoy Gateway: no backendSettings.retry)',
  find: (gateway) => [
    ...where(viewsOf(grpcServices(gateway)), ['retry_policy'], always),
    ...where(viewsOf(grpcServices(gateway)), ['envoy_grpc', 'retry_policy'], always),
    ...where(viewsOf(gateway.checks), ['http_service', 'retry_policy'], always),
    ...where(extAuths(gateway), ['grpc', 'backend_settings', 'retry'], always),
    ...where(extAuths(gateway), ['http', 'backend_settings', 'retry'], always),
  ],
};

function always(): boolean {
  return true;
}

const mutationsNotValidated: Rule = {
  id: 'mutations-not-validated',
  severity: 'warning',
  effect: 'takes over what an answer of the Check says, also when it is no valid HTTP',
  fix: 'validate_mutations: true',
  find: ({ checks }) => unless(checks, ['validate_mutations'], ({ flag }) => flag === true),
};

const headerChangesRefused: Rule = {
  id: 'header-changes-refused',
  severity: 'error',
  effect: "leaves out what the verifier sets and removes: a caller's own context headers reach the API",
  fix: 'no decoder_header_mutation_rules',
  find: ({ checks }) => where(viewsOf(checks), ['decoder_header_mutation_rules'], always),
};

const routeCacheCleared: Rule = {
  id: 'route-cache-cleared',
  severity: 'error',
  effect: 'chooses the route anew after the check: what was checked for one may go to another',
  fix: 'clear_route_cache: false (Istio: clearRouteCache: false; Envoy Gateway: recomputeRoute: false)',
  find: (gateway) => [
    ...where(viewsOf(gateway.checks), ['clear_route_cache'], mayBeOn),
    ...where(istioProviders(gateway), ['clear_route_cache'], mayBeOn),
    ...where(extAuths(gateway), ['recompute_route'], mayBeOn),
  ],
};

const transportVersion: Rule = {
  id: 'transport-version',
  severity: 'error',
  effect: 'speaks a version of the Check that no verifier answers',
  fix: 'transport_api_version: V3',
  find: ({ checks }) => unless(checks, ['transport_api_version'], (version) => version.isOneOf('V3', 2)),
};

const httpService: Rule = {
  id: 'http-service',
  severity: 'error',
  effect: 'asks over HTTP, in a form that leaves out most of the request; the verifier speaks gRPC',
  fix: 'grpc_service (Istio: envoyExtAuthzGrpc; Envoy Gateway: extAuth.grpc; Gateway API: protocol: GRPC)',
  find: (gateway) => [
    ...where(viewsOf(gateway.checks), ['http_service'], always),
    ...gateway.overrides.flatMap(({ settings }) => settings.at('check_settings', 'http_service') ?? []),
    ...providersOf(gateway.meshes, 'envoy_ext_authz_http'),
    ...where(extAuths(gateway), ['http'], always),
    ...where(externalAuths(gateway), ['protocol'], (protocol) => protocol.text !== 'GRPC'),
  ],
};

export const ANSWER_RULES: readonly Rule[] = [
  failsOpen,
  statusOnError,
  checkTimeout,
  checkRetried,
  mutationsNotValidated,
  headerChangesRefused,
  routeCacheCleared,
  transportVersion,
  httpService,
];
