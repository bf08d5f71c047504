/** Where the check stands among the filters, and whether it runs. */
import { forwards, forwardsAnything, isCheckFilter } from '../exposure.ts';
import { filtersOfPolicies, movesBehindCheck } from '../filter-order.ts';
import type { Chain, Gateway, HttpFilter, Override, Rule } from '../gateway.ts';
import { isAskedAlways, mayFakeCondition } from '../istio-condition.ts';
import { mayBe, readHttpFilter, typed } from '../read-filters.ts';
import { BYTE_ROUTES, ofKind, viewsOf } from '../settings.ts';
import type { View } from '../view.ts';

/** Those that callers reach. */
export function chainsOf({ listeners }: Gateway): readonly Chain[] {
  return listeners.filter(({ isOutbound }) => !isOutbound).flatMap(({ chains }) => chains);
}

const checkMissing: Rule = {
  id: 'check-missing',
  severity: 'error',
  effect: 'forwards requests without asking the verifier at all',
  fix: 'envoy.filters.http.ext_authz, last before the router; or take the listener away',
  find: (gateway) =>
    chainsOf(gateway)
      .filter((chain) => !chain.filters.some(isCheckFilter) && forwardsAnything(chain))
      .map(({ manager }) => manager.get('http_filters') ?? manager),
};

const tcpProxy: Rule = {
  id: 'tcp-proxy',
  severity: 'error',
  effect: 'forwards bytes that no HTTP filter sees, past the check',
  fix: 'an HTTP connection manager with ext_authz, or no such listener',
  find: (gateway) => [
    ...gateway.listeners.filter(({ isOutbound }) => !isOutbound).flatMap(({ proxies }) => proxies),
    ...BYTE_ROUTES.flatMap((kind) => ofKind(gateway, kind)).map(({ spec }) => spec),
  ],
};

/** Filters that leave method, target, headers and body of what they forward as they are. */
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

const filterBehindCheck: Rule = {
  id: 'filter-behind-check',
  severity: 'error',
  effect: 'may change or reroute a request after it was checked',
  fix: 'put it in front of ext_authz, which is last before the router (Envoy Gateway: EnvoyProxy filterOrder)',
  find: (gateway) => [
    ...chainsOf(gateway).flatMap(({ filters }) => behindCheck(filters).map(({ entry }) => entry)),
    ...upstreamFilters(gateway),
    ...gateway.insertedFilters
      .filter(({ filter, isBehindCheck }) => isBehindCheck && !isHarmless(filter))
      .map(({ filter }) => filter.entry),
    ...movesBehindCheck(gateway, (kind) => HARMLESS.has(kind)),
    ...filtersOfPolicies(gateway),
    // Whatever their phase: Istio puts what asks a provider first.
    ...ISTIO_FILTERS.flatMap((kind) => ofKind(gateway, kind)).map(({ spec }) => spec),
  ],
};

/** Objects of Istio's that become filters which may change a request. */
const ISTIO_FILTERS = ['RequestAuthentication', 'TrafficExtension', 'WasmPlugin'];

function behindCheck(filters: readonly HttpFilter[]): readonly HttpFilter[] {
  const check = filters.findIndex(isCheckFilter);
  if (check === -1) return [];
  return filters.slice(check + 1).filter((filter) => !isHarmless(filter));
}

/** A compressor may be told to compress bodies of requests, too. */
function isHarmless({ kind, settings }: HttpFilter): boolean {
  const enabled = settings?.at('request_direction_config', 'common_config', 'enabled');
  const isOff = enabled?.get('default_value')?.flag === false && enabled.get('runtime_key') === undefined;
  const isOfRequests = settings?.get('request_direction_config') !== undefined && !isOff;
  return HARMLESS.has(kind) && !(kind === 'compressor' && isOfRequests);
}

/** Of routers and clusters: they run after all others. */
function upstreamFilters(gateway: Gateway): readonly View[] {
  const routers = chainsOf(gateway).flatMap(({ filters }) => filters.filter(({ kind }) => kind === 'router'));
  const ofClusters = gateway.clusters
    .flatMap((cluster) => cluster.get('typed_extension_protocol_options')?.members() ?? [])
    .flatMap(({ view }) => typed(view)?.settings.list('http_filters') ?? []);
  const ofRouters = routers.flatMap(({ settings }) => settings?.list('upstream_http_filters') ?? []);
  return [...ofRouters, ...ofClusters, ...gateway.upstreamFilters]
    .map((entry) => readHttpFilter(entry, new Map()))
    .filter((filter) => !isHarmless(filter))
    .map(({ entry }) => entry);
}

/** Filters that can answer, or forward, by themselves. */
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

const answersBeforeCheck: Rule = {
  id: 'answers-before-check',
  severity: 'warning',
  effect: "may answer in the API's name before anybody is asked",
  fix: 'put ext_authz in front of a cache; leave out what answers, or give it a listener of its own',
  find: (gateway) =>
    chainsOf(gateway).flatMap(({ filters }) => {
      const check = filters.findIndex(isCheckFilter);
      return filters
        .slice(0, Math.max(check, 0))
        .flatMap(({ entry, kind }) => (ANSWERING.has(kind) ? [entry] : []));
    }),
};

const checkedTwice: Rule = {
  id: 'checked-twice',
  severity: 'error',
  effect: 'asks the same verifier a second time: the proof is used by then, so every request is refused',
  fix: 'one ext_authz filter for each verifier',
  find: (gateway) =>
    chainsOf(gateway).flatMap(({ filters }) => {
      const checks = filters.filter(
        (filter) => isCheckFilter(filter) && !mayBe(filter.entry.get('disabled')),
      );
      const targets = checks.map(({ settings }) => targetOf(settings));
      return checks.filter((_, i) => targets.indexOf(targets[i]) < i).map(({ entry }) => entry);
    }),
};

function targetOf(settings: View | undefined): string | undefined {
  const service = settings?.get('grpc_service');
  return service?.at('envoy_grpc', 'cluster_name')?.text ?? service?.at('google_grpc', 'target_uri')?.text;
}

const checkConditional: Rule = {
  id: 'check-conditional',
  severity: 'error',
  effect: 'asks about some requests only; the others are forwarded unchecked',
  fix: 'ext_authz without a matcher around it and without filter_enabled_metadata (Istio: no filter that writes it)',
  find({ checks, insertedFilters, listeners, overrides }) {
    // By where they stand: an alias in another chain is the same settings behind other filters.
    const standing = listeners
      .flatMap(({ chains }) => chains)
      .flatMap(({ filters }) =>
        filters.flatMap((filter, at) =>
          isCheckFilter(filter) ? [{ filter, before: filters.slice(0, at) }] : [],
        ),
      );
    const seen = new Set(standing.map(({ filter }) => filter.settings?.identity));
    const conditional = standing
      .filter(({ before, filter }) => !isAskedAlways(filter, before, overrides))
      .flatMap(({ filter }) => filter.settings ?? []);
    const ofPatches = viewsOf(checks).filter(({ identity }) => !seen.has(identity));
    return [
      ...standing.flatMap(({ filter }) => filter.condition ?? []),
      ...[...conditional, ...ofPatches].flatMap((view) => view.get('filter_enabled_metadata') ?? []),
      ...insertedFilters
        .filter(({ filter, isBehindCheck }) => !isBehindCheck && mayFakeCondition(filter))
        .map(({ filter }) => filter.entry),
    ];
  },
};

const checkSampled: Rule = {
  id: 'check-sampled',
  severity: 'error',
  effect: 'asks about a share of the requests, or about none when a runtime key says so',
  fix: 'no filter_enabled; or deny_at_disable: { default_value: true } without a runtime key',
  find: ({ checks }) =>
    checks.flatMap(({ view }) => {
      const enabled = view.get('filter_enabled');
      return enabled === undefined || isWhole(enabled) || isDeniedOtherwise(view) ? [] : [enabled];
    }),
};

const DENOMINATORS: { readonly [name: string]: number } = {
  HUNDRED: 100,
  TEN_THOUSAND: 10_000,
  MILLION: 1_000_000,
};
const DENOMINATOR_NAMES = Object.keys(DENOMINATORS);

/** All requests, whatever happens at run time. */
function isWhole(enabled: View): boolean {
  const numerator = enabled.at('default_value', 'numerator')?.number ?? 0;
  const written = enabled.at('default_value', 'denominator')?.text ?? 'HUNDRED';
  const denominator =
    DENOMINATORS[written] ?? DENOMINATORS[DENOMINATOR_NAMES[Number(written)] ?? ''] ?? Infinity;
  return enabled.get('runtime_key') === undefined && numerator >= denominator;
}

function isDeniedOtherwise(check: View): boolean {
  const denied = check.get('deny_at_disable');
  return denied?.get('default_value')?.flag === true && denied.get('runtime_key') === undefined;
}

const checkOff: Rule = {
  id: 'check-off',
  severity: 'error',
  effect: 'switches the check off where no route switches it on again',
  fix: 'no `disabled` at the ext_authz filter',
  find: (gateway) =>
    chainsOf(gateway).flatMap((chain) =>
      chain.filters.filter(isCheckFilter).flatMap(({ entry, name }) => {
        const disabled = entry.get('disabled');
        return disabled !== undefined && mayBe(disabled) && !isOnEverywhere(chain, name, gateway.overrides)
          ? [disabled]
          : [];
      }),
    ),
};

/** Whether each route that forwards switches the filter on, by itself or by what it stands in. */
function isOnEverywhere(chain: Chain, name: string, overrides: readonly Override[]): boolean {
  if (chain.unseenRoutes !== undefined || chain.routes.length === 0) return false;
  const switching = new Set(
    overrides
      .filter((one) => one.name === name && !one.isDisabled && !mayBe(one.settings.get('disabled')))
      .map(({ owner }) => owner.identity),
  );
  const isOn = (view: View) => switching.has(view.identity);
  return chain.routes.every(
    (configuration) =>
      isOn(configuration) ||
      configuration
        .list('virtual_hosts')
        .every(
          (host) =>
            isOn(host) ||
            (host.get('matcher') === undefined &&
              host.list('routes').every((route) => isOn(route) || !forwards(route))),
        ),
  );
}

const checkOptional: Rule = {
  id: 'check-optional',
  severity: 'error',
  effect: 'leaves the check out, without a word, where Envoy does not know its settings',
  fix: 'no is_optional at the ext_authz filter',
  find: (gateway) =>
    gateway.listeners
      .flatMap(({ chains }) => chains)
      .flatMap(({ filters }) => filters.filter(isCheckFilter))
      .flatMap(({ entry }) => {
        const optional = entry.get('is_optional');
        return optional !== undefined && mayBe(optional) ? [optional] : [];
      }),
};

export const CHAIN_RULES: readonly Rule[] = [
  checkMissing,
  tcpProxy,
  filterBehindCheck,
  answersBeforeCheck,
  checkedTwice,
  checkConditional,
  checkSampled,
  checkOff,
  checkOptional,
];
