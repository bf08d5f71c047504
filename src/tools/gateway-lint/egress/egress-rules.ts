/**
 * Rules for an egress Envoy that uses the signer: they find settings by which a signed request arrives changed, twice,
 * or elsewhere.
 * Source: docs/operate/gateway-lint.md "Egress".
 */
import { filtersBehindCheck, isCheckFilter } from '../gateway/chains.ts';
import { isLocalAddress } from '../gateway/exposure.ts';
import type { Gateway, HttpFilter, Rule } from '../gateway/gateway.ts';
import {
  bodySettings,
  grpcServices,
  isOn,
  mayBeOn,
  missing,
  ofKind,
  routeSettings,
  unless,
  where,
} from '../gateway/gateway-queries.ts';
import { matches } from '../gateway/header-names.ts';
import { mayBe } from '../gateway/read-filters.ts';
import {
  clusterNames,
  hasTlsDestination,
  isLocalCluster,
  isVerified,
  plainDestinations,
  remoteClusters,
  tlsContexts,
  unverifiedDestinations,
} from '../gateway/verifier-locations.ts';
import { everyMapping, type View } from '../gateway/view.ts';
import { ANSWER_RULES } from '../rules/answers-rules.ts';
import { CHAIN_RULES, isHarmless, upstreamFilters } from '../rules/chain-rules.ts';
import { allowedUpgrades } from '../rules/connection-rules.ts';
import { CONTENT_RULES } from '../rules/contents-rules.ts';
import { DECISION_RULES } from '../rules/decision-rules.ts';
import { VERIFIER_RULES } from '../rules/verifier-rules.ts';
import type { SigningScope } from './signing-scope.ts';

/** Findings of a verifier's rule whose reason also applies here. */
function foundBy(rules: readonly Rule[], id: string, gateway: Gateway): ReturnType<Rule['find']> {
  return rules.find((rule) => rule.id === id)?.find(gateway) ?? [];
}

/** Clusters other than the signer's. */
function upstreams(gateway: Gateway): readonly View[] {
  const names = new Set(clusterNames(gateway).map(({ text }) => text));
  return gateway.clusters.filter((cluster) => !names.has(cluster.get('name')?.text));
}

/** Host of an Istio virtual host, whose name includes the port. */
const hostIn = ({ text }: View): string => text?.toLowerCase().replace(/:\d+$/, '') ?? '';

function hostsOf({ patchedHosts }: SigningScope): readonly string[] {
  return patchedHosts.map(hostIn);
}

/** Hosts for which requests are signed, in each form that the file uses. */
function signedHosts(scope: SigningScope): readonly string[] {
  const written = [...scope.patchedHosts, ...scope.routeParts.flatMap((part) => part.list('domains'))];
  return [...hostsOf(scope), ...written.flatMap(({ text }) => text?.toLowerCase() ?? [])];
}

/** The host matcher of an RBAC permission for requests to other hosts. */
function excludedHost(permission: View): View | undefined {
  const header = permission.at('not_rule', 'header');
  return header?.get('name')?.text === ':authority' ? header : undefined;
}

/** Whether the matcher accepts all hosts. */
function takesAll(header: View, hosts: readonly string[]): boolean {
  const matcher = header.get('string_match');
  const isPlain = matcher !== undefined && !mayBe(header.get('invert_match'));
  return isPlain && hosts.every((host) => matches(matcher, host));
}

function isForOthersThan(hosts: readonly string[]): (permission: View) => boolean {
  return (permission) => {
    const header = excludedHost(permission);
    return header !== undefined && takesAll(header, hosts);
  };
}

/** Hosts that need no signature, of a filter that requires one. */
function unsignedHosts({ kind, settings }: HttpFilter): readonly View[] {
  const views = kind === 'rbac' && settings !== undefined ? everyMapping([settings]) : [];
  const isForSigned = views.some((view) => view.get('name')?.text === 'x-proofgate-signature');
  return isForSigned ? views.flatMap((view) => excludedHost(view) ?? []) : [];
}

/** Settings of a route, a virtual host or a route configuration that Envoy applies in its router. */
const AFTER_SIGNING = [
  'append_x_forwarded_host',
  'auto_host_rewrite',
  'host_rewrite_literal',
  'host_rewrite_path_regex',
  'host_rewrite',
  'path_rewrite',
  'path_rewrite_policy',
  'prefix_rewrite',
  'regex_rewrite',
  'request_headers_to_add',
  'request_headers_to_remove',
];

/** Routes of Istio's VirtualServices. */
function istioRoutes(gateway: Gateway): readonly View[] {
  return ofKind(gateway, 'VirtualService').flatMap(({ spec }) => spec.list('http'));
}

/** Changes that a VirtualService makes to requests, which Envoy applies in its router. */
function changedByIstio(gateway: Gateway): readonly View[] {
  const routes = istioRoutes(gateway);
  const holders = [...routes, ...routes.flatMap((route) => route.list('route'))];
  return [...settingsOf(routes, ['rewrite']), ...where(holders, 'headers.request')];
}

function settingsOf(views: readonly View[], names: readonly string[]): readonly View[] {
  return names.flatMap((name) => where(views, name));
}

export const EGRESS_RULES: readonly Rule<SigningScope>[] = [
  {
    id: 'fails-open',
    severity: 'error',
    effect: 'sends requests unsigned while the signer does not answer',
    fix: 'failure_mode_allow: false',
    find: (gateway) => foundBy(ANSWER_RULES, 'fails-open', gateway),
  },
  {
    id: 'not-signed',
    severity: 'error',
    effect: 'sends requests unsigned',
    fix: 'the filter without matcher, filter_enabled, is_optional and `disabled`, or switched on for the host of the API',
    find: (scope) => [
      ...['check-conditional', 'check-sampled', 'check-optional'].flatMap((id) =>
        foundBy(CHAIN_RULES, id, scope),
      ),
      ...foundBy(DECISION_RULES, 'route-unchecked', scope),
      ...scope.neverOn,
    ],
  },
  {
    id: 'unsigned-allowed',
    severity: 'error',
    effect: 'lets requests pass that are not signed, although the signer is switched on for their host',
    fix: "the API's host in the :authority matcher of the filter that requires x-proofgate-signature",
    find: (scope) => {
      const hosts = signedHosts(scope);
      const filters = [...scope.chains.flatMap((chain) => chain.filters), ...scope.patchedBehind];
      return filters.flatMap(unsignedHosts).filter((header) => !takesAll(header, hosts));
    },
  },
  {
    id: 'signature-dropped',
    severity: 'error',
    effect: 'does not take over the headers of the signer, or takes over invalid ones',
    fix: 'validate_mutations: true, no decoder_header_mutation_rules, transport_api_version: V3',
    find: (gateway) =>
      ['header-changes-refused', 'mutations-not-validated', 'transport-version'].flatMap((id) =>
        foundBy(ANSWER_RULES, id, gateway),
      ),
  },
  {
    id: 'body-not-signed',
    severity: 'error',
    effect: 'gives the signer no body, a part of it or other bytes: the verifier denies the request',
    fix: 'with_request_body: { max_request_bytes: 1048576, allow_partial_message: false, pack_as_bytes: true }',
    find: (gateway) => [
      ...missing(gateway.checks, 'with_request_body'),
      ...where(bodySettings(gateway), 'allow_partial_message', mayBeOn),
      ...unless(bodySettings(gateway), 'pack_as_bytes', isOn),
      ...routeSettings(gateway, 'disable_request_body_buffering').filter(mayBeOn),
    ],
  },
  {
    id: 'headers-not-signed',
    severity: 'error',
    effect: 'hides or joins headers: the signer signs others than the verifier gets',
    fix: 'encode_raw_headers: true, neither allowed_headers nor disallowed_headers',
    find: (gateway) => [
      ...unless(gateway.checks, 'encode_raw_headers', isOn),
      ...foundBy(CONTENT_RULES, 'headers-hidden', gateway),
    ],
  },
  {
    id: 'changed-after-signing',
    severity: 'error',
    effect: 'may change or reroute a request after it was signed',
    fix: 'ext_authz last before the router; rewrites and header changes in a filter in front of it',
    find: (scope) => {
      const filters = [
        ...scope.chains.flatMap(filtersBehindCheck),
        ...upstreamFilters(scope, scope.chains),
        ...scope.patchedBehind,
      ];
      return [
        ...filters.filter((filter) => !isHarmless(filter)).map(({ entry }) => entry),
        ...settingsOf(scope.routeParts, AFTER_SIGNING),
        ...changedByIstio(scope),
        ...foundBy(ANSWER_RULES, 'route-cache-cleared', scope),
      ];
    },
  },
  {
    id: 'sent-twice',
    severity: 'error',
    effect: 'may send one proof twice: the verifier denies the second request as a replay',
    fix: 'no retry_policy, no hedge_policy (Istio: retries: { attempts: 0 }): the application retries, and gets a new proof',
    find: (gateway) => [
      ...settingsOf(
        [...gateway.routeParts, ...everyMapping(upstreams(gateway))],
        ['retry_policy', 'hedge_policy'],
      ),
      // Without the setting Istio retries twice.
      ...unless(istioRoutes(gateway), 'retries.attempts', ({ number }) => number === 0),
    ],
  },
  {
    id: 'mirrored',
    severity: 'error',
    effect: 'gives a live proof to a second server',
    fix: 'no request_mirror_policies (Istio: no mirror)',
    find: (gateway) => [
      ...settingsOf(gateway.routeParts, ['request_mirror_policies', 'request_mirror_policy']),
      ...settingsOf(istioRoutes(gateway), ['mirror', 'mirrors']),
    ],
  },
  {
    id: 'target-chosen',
    severity: 'error',
    effect:
      'sends a signed request to an address that the application chooses, not to the host that it is signed for',
    fix: 'a cluster with the host that is signed, no ORIGINAL_DST, no cluster_header, no host_rewrite_header',
    find: (gateway) => [
      ...where(gateway.clusters, 'type', (type) => type.isOneOf('ORIGINAL_DST', 4)),
      ...where(gateway.clusters, 'cluster_type'),
      ...foundBy(DECISION_RULES, 'caller-chooses-target', gateway),
    ],
  },
  {
    id: 'upstream-plaintext',
    severity: 'error',
    effect: 'sends passport and proof in the clear, to any server that answers',
    fix: 'a transport_socket with TLS (Istio: DestinationRule with tls)',
    find: (scope) => [
      ...upstreams(scope)
        .filter((cluster) => !isLocalCluster(cluster, scope) && tlsContexts(cluster) === undefined)
        .map((cluster) => cluster.get('load_assignment') ?? cluster),
      ...plainDestinations(scope, hostsOf(scope)),
      ...scope.patchedHosts.filter((host) => !hasTlsDestination(scope, hostIn(host))),
    ],
  },
  {
    id: 'upstream-unverified',
    severity: 'error',
    effect: 'accepts any certificate, or any of an authority: its owner gets passport and proof',
    fix: 'validation_context with trusted_ca and match_typed_subject_alt_names (Istio: subjectAltNames)',
    find: (scope) => [
      ...upstreams(scope)
        .flatMap((cluster) => tlsContexts(cluster) ?? [])
        .filter((context) => !isVerified(context))
        .map((context) => context.get('common_tls_context') ?? context),
      ...unverifiedDestinations(scope, hostsOf(scope)),
    ],
  },
  {
    id: 'signer-shared',
    severity: 'error',
    effect: 'uses a signer on a shared address: others there can have requests signed as this workload',
    fix: 'a Unix socket, or loopback',
    find: (gateway) => [
      ...remoteClusters(gateway).map((cluster) => cluster.get('load_assignment') ?? cluster),
      ...where(grpcServices(gateway), 'google_grpc'),
    ],
  },
  {
    id: 'egress-exposed',
    severity: 'error',
    effect: 'signs as this workload for everybody who reaches the listener',
    fix: 'the listener on 127.0.0.1 or a Unix socket',
    find: ({ listeners }) =>
      listeners
        .filter(
          ({ chains, isOutbound }) =>
            !isOutbound && chains.some(({ filters }) => filters.some(isCheckFilter)),
        )
        .flatMap(({ view }) => [view, ...view.list('additional_addresses')])
        .flatMap((holder) => holder.get('address') ?? [])
        .filter((address) => !isLocalAddress(address)),
  },
  {
    id: 'upgrades-allowed',
    severity: 'error',
    effect: 'opens connections that carry data which is in no Check',
    fix: 'no upgrade_configs, no connect_matcher, or rbac that refuses the header upgrade',
    find: (scope) => allowedUpgrades(scope, isForOthersThan(signedHosts(scope))),
  },
  ...VERIFIER_RULES.filter(({ id }) => ['admin-exposed', 'credentials-logged', 'not-in-file'].includes(id)),
  {
    id: 'nothing-signed',
    severity: 'warning',
    effect: 'asks no signer anywhere in this file',
    fix: 'envoy.filters.http.ext_authz as in envoy/egress.yaml, or lint the file that has it',
    find: ({ checks, documents }) => (checks.length > 0 ? [] : documents.slice(0, 1)),
  },
];
