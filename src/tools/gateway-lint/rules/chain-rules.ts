/** Rules about the position of the check among the filters, and whether it runs. */
import {
  allChains,
  checkedChains,
  filtersBeforeCheck,
  filtersBehindCheck,
  forwards,
  forwardsAnything,
  isCheckFilter,
  overridesOf,
  reachableChains,
} from '../gateway/chains.ts';
import { policyFiltersBehindCheck, unknownOrders } from '../gateway/envoy-gateway.ts';
import type { Chain, Gateway, HttpFilter, Override, Rule } from '../gateway/gateway.ts';
import { BYTE_ROUTES, mayBeOn, specsOf, where } from '../gateway/gateway-queries.ts';
import { isAskedAlways } from '../gateway/istio-condition.ts';
import { mayBe, readHttpFilter, typed } from '../gateway/read-filters.ts';
import type { View } from '../gateway/view.ts';

/** Filters that do not change method, target, headers and body. */
const HARMLESS = new Set([
  'adaptive_concurrency',
  'admission_control',
  'alpn',
  'bandwidth_limit',
  'buffer',
  'compressor',
  'cors',
  'csrf',
  'ext_authz',
  'fault',
  'grpc_stats',
  'health_check',
  'io.istio.http.peer_metadata.Config',
  'kill_request',
  'local_ratelimit',
  'rate_limit_quota',
  'ratelimit',
  'rbac',
  'router',
  'stats.PluginConfig',
  'tap',
  'upstream_codec',
]);

/** A compressor may also compress request bodies. */
export function isHarmless({ kind, settings }: HttpFilter): boolean {
  const enabled = settings?.at('request_direction_config', 'common_config', 'enabled');
  const isOff = enabled?.get('default_value')?.flag === false && enabled.get('runtime_key') === undefined;
  const isOfRequests = settings?.get('request_direction_config') !== undefined && !isOff;
  return HARMLESS.has(kind) && !(kind === 'compressor' && isOfRequests);
}

/** Filters of routers and clusters, which run after all others. */
export function upstreamFilters(
  gateway: Gateway,
  chains: readonly Chain[] = reachableChains(gateway),
): readonly HttpFilter[] {
  const routers = chains.flatMap(({ filters }) => filters.filter(({ kind }) => kind === 'router'));
  const ofRouters = routers.flatMap(({ settings }) => settings?.list('upstream_http_filters') ?? []);
  const ofClusters = gateway.clusters
    .flatMap((cluster) => cluster.get('typed_extension_protocol_options')?.members() ?? [])
    .flatMap(({ view }) => typed(view)?.settings.list('http_filters') ?? []);
  return [...ofRouters, ...ofClusters].map((entry) => readHttpFilter(entry, []));
}

/**
 * Objects from which Istio creates filters that may change a request. Their phase does not matter, because Istio runs
 * providers first.
 */
const ISTIO_FILTERS = ['RequestAuthentication', 'TrafficExtension', 'WasmPlugin'];

/** Filters that can answer or forward on their own. */
const ANSWERING = new Set([
  'aws_lambda',
  'cache',
  'cache_v2',
  'dynamic_modules',
  'ext_proc',
  'golang',
  'health_check',
  'lua',
  'wasm',
]);

function targetOf(settings: View | undefined): string | undefined {
  const service = settings?.get('grpc_service');
  return (
    service?.at('envoy_grpc', 'cluster_name')?.text ??
    service?.at('google_grpc', 'target_uri')?.text ??
    settings?.at('http_service', 'server_uri', 'cluster')?.text
  );
}

/** Conditions of checks in this chain that may be false for a request. */
function conditionsOf({ filters }: Chain, overrides: readonly Override[]): readonly View[] {
  return filters.flatMap((filter, at) => {
    if (!isCheckFilter(filter)) return [];
    const isMet = isAskedAlways(filter, filters.slice(0, at), overrides);
    const metadata = isMet ? undefined : filter.settings?.get('filter_enabled_metadata');
    return [filter.condition, metadata].flatMap((view) => view ?? []);
  });
}

/** Conditions of checks that are configured by name, for a chain in another file. */
function conditionsElsewhere(gateway: Gateway): readonly View[] {
  const filters = allChains(gateway).flatMap((chain) => chain.filters.filter(isCheckFilter));
  const seen = new Set(filters.map(({ settings }) => settings?.identity));
  const others = gateway.checks.filter(({ identity }) => !seen.has(identity));
  return where(others, 'filter_enabled_metadata');
}

/** Whether the fraction is all requests, independent of runtime values. */
function isEverything(enabled: View): boolean {
  const share = enabled.get('default_value');
  const isOfHundred = share?.get('denominator')?.isOneOf('HUNDRED', 0) ?? true;
  return enabled.get('runtime_key') === undefined && isOfHundred && share?.get('numerator')?.number === 100;
}

/** Whether each forwarding route enables the filter, itself or by an enclosing part. */
function isOnEverywhere(chain: Chain, filter: HttpFilter, overrides: readonly Override[]): boolean {
  if (chain.unseenRoutes !== undefined || chain.routes.length === 0) return false;
  const switching = new Set(
    overridesOf([filter], overrides)
      .filter((one) => !one.isDisabled && !mayBe(one.settings.get('disabled')))
      .map(({ owner }) => owner.identity),
  );
  const isOn = (view: View) => switching.has(view.identity);
  const isOnIn = (host: View) =>
    isOn(host) ||
    (host.get('matcher') === undefined &&
      host.list('routes').every((route) => isOn(route) || !forwards(route)));
  return chain.routes.every((one) => isOn(one) || one.list('virtual_hosts').every(isOnIn));
}

export const CHAIN_RULES: readonly Rule[] = [
  {
    id: 'check-missing',
    severity: 'error',
    effect: 'forwards requests without asking the verifier at all',
    fix: 'envoy.filters.http.ext_authz, last before the router; or remove the listener',
    find: (gateway) =>
      reachableChains(gateway)
        .filter((chain) => !chain.filters.some(isCheckFilter) && forwardsAnything(chain))
        .map(({ manager }) => manager.get('http_filters') ?? manager),
  },
  {
    id: 'tcp-proxy',
    severity: 'error',
    effect: 'forwards bytes that no HTTP filter sees, past the check',
    fix: 'an HTTP connection manager with ext_authz, or no such listener',
    find: (gateway) => [
      ...gateway.listeners.filter(({ isOutbound }) => !isOutbound).flatMap(({ proxies }) => proxies),
      ...specsOf(gateway, ...BYTE_ROUTES),
    ],
  },
  {
    id: 'filter-behind-check',
    severity: 'error',
    effect: 'may change or reroute a request after it was checked',
    fix: 'put it in front of ext_authz, which is last before the router (Envoy Gateway: EnvoyProxy filterOrder)',
    find: (gateway) => [
      ...[...reachableChains(gateway).flatMap(filtersBehindCheck), ...upstreamFilters(gateway)]
        .filter((filter) => !isHarmless(filter))
        .map(({ entry }) => entry),
      ...unknownOrders(gateway, (kind) => HARMLESS.has(kind)),
      ...policyFiltersBehindCheck(gateway),
      ...specsOf(gateway, ...ISTIO_FILTERS),
    ],
  },
  {
    id: 'answers-before-check',
    severity: 'warning',
    effect: "may answer in the API's name before the verifier is asked",
    fix: 'put ext_authz in front of a cache; remove what answers, or give it a listener of its own',
    find: (gateway) =>
      reachableChains(gateway)
        .flatMap(filtersBeforeCheck)
        .filter(({ kind }) => ANSWERING.has(kind))
        .map(({ entry }) => entry),
  },
  {
    id: 'checked-twice',
    severity: 'error',
    effect:
      'asks the same verifier a second time: the first Check used the proof, so every request is denied',
    fix: 'one ext_authz filter for each verifier',
    find: (gateway) =>
      reachableChains(gateway).flatMap(({ filters }) => {
        const checks = filters.filter((one) => isCheckFilter(one) && !mayBe(one.entry.get('disabled')));
        const targets = checks.map(({ settings }) => targetOf(settings));
        return checks.filter((_, i) => targets.indexOf(targets[i]) < i).map(({ entry }) => entry);
      }),
  },
  {
    id: 'check-conditional',
    severity: 'error',
    effect: 'asks about some requests only; the others are forwarded unchecked',
    fix: 'ext_authz without a matcher around it and without filter_enabled_metadata',
    find: (gateway) => [
      ...allChains(gateway).flatMap((chain) => conditionsOf(chain, gateway.overrides)),
      ...conditionsElsewhere(gateway),
    ],
  },
  {
    id: 'check-sampled',
    severity: 'error',
    effect: 'asks about a share of the requests, or about none when a runtime key says so',
    fix: 'no filter_enabled',
    find: ({ checks }) => where(checks, 'filter_enabled', (enabled) => !isEverything(enabled)),
  },
  {
    id: 'check-off',
    severity: 'error',
    effect: 'switches the check off where no route switches it on again',
    fix: 'no `disabled` at the ext_authz filter',
    find: (gateway) =>
      checkedChains(gateway).flatMap((chain) => {
        const off = chain.filters.filter(
          (filter) => isCheckFilter(filter) && !isOnEverywhere(chain, filter, gateway.overrides),
        );
        return where(
          off.map(({ entry }) => entry),
          'disabled',
          mayBeOn,
        );
      }),
  },
  {
    id: 'check-optional',
    severity: 'error',
    effect: 'silently leaves the check out where Envoy does not know its settings',
    fix: 'no is_optional at the ext_authz filter',
    find: (gateway) => {
      const filters = allChains(gateway).flatMap((chain) => chain.filters.filter(isCheckFilter));
      return where(
        filters.map(({ entry }) => entry),
        'is_optional',
        mayBeOn,
      );
    },
  },
];
