/** What of a request the Check holds. */
import type { Gateway, Rule } from '../gateway.ts';
import {
  bodySettings,
  extAuths,
  externalAuths,
  isOn,
  istioProviders,
  mayBeOn,
  unless,
  viewsOf,
  where,
  whole,
} from '../settings.ts';
import type { View } from '../view.ts';

const there = (): boolean => true;

/** Whether a patch in the file sets what the API of Istio or Envoy Gateway cannot. */
function isPatched({ checks }: Gateway, ...names: readonly string[]): boolean {
  return checks.some(({ isWhole, view }) => !isWhole && view.at(...names)?.flag === true);
}

const partialBody: Rule = {
  id: 'partial-body',
  severity: 'error',
  effect: 'shows the verifier a part of a large body, and forwards all of it',
  fix: 'allow_partial_message: false',
  find: (gateway) => where(viewsOf(bodySettings(gateway)), ['allow_partial_message'], mayBeOn),
};

const bodyNotPacked: Rule = {
  id: 'body-not-packed',
  severity: 'warning',
  effect: 'sends bodies as text, in which bytes that are not UTF-8 are changed: such requests are refused',
  fix: 'pack_as_bytes: true (Istio: packAsBytes: true; Envoy Gateway: an EnvoyPatchPolicy)',
  find(gateway) {
    const bodies = unless(bodySettings(gateway), ['pack_as_bytes'], isOn);
    const patched =
      isPatched(gateway, 'with_request_body', 'pack_as_bytes') || isPatched(gateway, 'pack_as_bytes');
    if (patched) return bodies;
    return [
      ...bodies,
      ...extAuths(gateway).flatMap((auth) => auth.get('body_to_ext_auth') ?? []),
      ...externalAuths(gateway).flatMap((auth) => auth.get('forward_body') ?? []),
    ];
  },
};

const bodyNotShown: Rule = {
  id: 'body-not-shown',
  severity: 'warning',
  effect:
    'shows the verifier no bodies: only routes with `body: unbound` work, and it must know (--envoy-body none)',
  fix: 'with_request_body (Istio: includeRequestBodyInCheck; Envoy Gateway: bodyToExtAuth; Gateway API: forwardBody)',
  find: (gateway) => [
    ...unless(gateway.checks, ['with_request_body'], there),
    ...unless(istioProviders(gateway).map(whole), ['include_request_body_in_check'], there),
    ...unless(extAuths(gateway).map(whole), ['body_to_ext_auth'], there),
    ...unless(externalAuths(gateway).map(whole), ['forward_body', 'max_size'], ({ number }) => number !== 0),
  ],
};

const bodyStreamed: Rule = {
  id: 'body-streamed',
  severity: 'error',
  effect:
    'forwards a body that the verifier cannot notice: on a bound route it rides on a proof for an empty one',
  fix: 'only where the bundle says `body: unbound`, and then allowed by a comment; otherwise take it away',
  find: ({ overrides }) =>
    where(
      overrides.map(({ settings }) => settings),
      ['check_settings', 'disable_request_body_buffering'],
      mayBeOn,
    ),
};

/** `--max-message-bytes` of the verifier by default, less what headers take. */
const MAX_BODY_BYTES = 4_194_304 - 131_072;

const bodyLimit: Rule = {
  id: 'body-limit',
  severity: 'warning',
  effect: 'holds bodies that are too large for a Check: the verifier refuses them (--max-message-bytes)',
  fix: 'max_request_bytes: 1048576, or a higher --max-message-bytes',
  find(gateway) {
    const isLarge = ({ number }: View) => !(number !== undefined && number <= MAX_BODY_BYTES);
    const ofGateway = extAuths(gateway).flatMap((auth) => auth.get('body_to_ext_auth') ?? []);
    return where([...viewsOf(bodySettings(gateway)), ...ofGateway], ['max_request_bytes'], isLarge);
  },
};

const headersMerged: Rule = {
  id: 'headers-merged',
  severity: 'warning',
  effect: 'joins repeated headers and changes bytes: values with a comma or `!` are ambiguous, and refused',
  fix: 'encode_raw_headers: true (Istio: in an EnvoyFilter; Envoy Gateway: in an EnvoyPatchPolicy)',
  find(gateway) {
    const filters = unless(gateway.checks, ['encode_raw_headers'], isOn);
    if (isPatched(gateway, 'encode_raw_headers')) return filters;
    return [...filters, ...istioProviders(gateway), ...extAuths(gateway), ...externalAuths(gateway)];
  },
};

const headersHidden: Rule = {
  id: 'headers-hidden',
  severity: 'error',
  effect: 'keeps headers from the verifier: what it cannot see, it can neither check nor remove',
  fix: 'neither allowed_headers nor disallowed_headers (Envoy Gateway: no headersToExtAuth; Gateway API: no allowedHeaders)',
  find: (gateway) => [
    ...where(viewsOf(gateway.checks), ['allowed_headers'], there),
    ...where(viewsOf(gateway.checks), ['disallowed_headers'], there),
    ...where(extAuths(gateway), ['headers_to_ext_auth'], there),
    ...where(externalAuths(gateway), ['grpc', 'allowed_headers'], there),
    ...where(externalAuths(gateway), ['http', 'allowed_headers'], there),
  ],
};

const peerCertificate: Rule = {
  id: 'peer-certificate',
  severity: 'warning',
  effect: "leaves the caller's certificate out of the Check",
  fix: 'include_peer_certificate: true',
  find: ({ checks }) => unless(checks, ['include_peer_certificate'], isOn),
};

export const CONTENT_RULES: readonly Rule[] = [
  partialBody,
  bodyNotPacked,
  bodyNotShown,
  bodyStreamed,
  bodyLimit,
  headersMerged,
  headersHidden,
  peerCertificate,
];
