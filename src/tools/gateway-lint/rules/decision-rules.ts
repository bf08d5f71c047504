/** Rules about routes that skip the check, and about the second filter that enforces its decision. */
import {
  allChains,
  checkedChains,
  filtersBehindCheck,
  forwards,
  isCheckFilter,
  overridesOf,
  runsAlways,
} from '../gateway/chains.ts';
import type { Chain, Gateway, Override, Rule } from '../gateway/gateway.ts';
import { externalAuths, mayBeOn, routeRules, specsOf, where } from '../gateway/gateway-queries.ts';
import { requiresDecision } from '../gateway/rbac.ts';
import { mayBe, typed } from '../gateway/read-filters.ts';
import type { View } from '../gateway/view.ts';

/** Entries for ext_authz: by type, or for a mere `FilterConfig` by the filter's name. */
function checkOverrides(gateway: Gateway): readonly Override[] {
  const filters = allChains(gateway).flatMap((chain) => chain.filters.filter(isCheckFilter));
  const names = new Set(filters.map(({ name }) => name));
  return gateway.overrides.filter(
    ({ kind, name }) =>
      kind === 'ext_authz' || (kind === undefined && (names.has(name) || name.includes('ext_authz'))),
  );
}

function switchedOff({ entry, isDisabled, settings }: Override): View | undefined {
  if (isDisabled) return entry.get('disabled') ?? entry;
  const disabled = settings.get('disabled');
  return disabled !== undefined && mayBe(disabled) ? disabled : undefined;
}

/** Rules of Gateway API's routes without the check, when others in the file have it. */
function uncheckedRules(gateway: Gateway): readonly View[] {
  if (externalAuths(gateway).length === 0) return [];
  const hasFilter = (rule: View, name: string) =>
    rule.list('filters').some((one) => one.get(name) !== undefined);
  return routeRules(gateway).filter(
    (rule) => !hasFilter(rule, 'request_redirect') && !hasFilter(rule, 'external_auth'),
  );
}

/**
 * Where a chain forwards requests without a decision of the verifier: its filter, or the routes with other settings for
 * it.
 */
function undecided(chain: Chain, gateway: Gateway): readonly View[] {
  const { filters, routes, unseenRoutes } = chain;
  const rbac = filtersBehindCheck(chain).filter((filter) => filter.kind === 'rbac' && runsAlways(filter));
  const place = rbac[0]?.entry ?? filters.find(isCheckFilter)?.entry;
  const overrides = overridesOf(rbac, gateway.overrides);
  const isRequiredBy = (view: View) =>
    overrides.some((one) => one.owner.identity === view.identity && keepsDecision(one));
  const isRequiredByRoutes =
    unseenRoutes === undefined &&
    routes.length > 0 &&
    routes.every((one) => isRequiredBy(one) || one.list('virtual_hosts').every(isRequiredBy));
  const isRequired = rbac.some(({ settings }) => requiresDecision(settings));
  if (!isRequired && !isRequiredByRoutes) return place === undefined ? [] : [place];
  return undecidedOverrides(overrides, gateway);
}

/** Overrides of routes with the check. */
function undecidedOverrides(overrides: readonly Override[], gateway: Gateway): readonly View[] {
  const unchecked = checkOverrides(gateway).filter((one) => switchedOff(one) !== undefined);
  const open = new Set(unchecked.map(({ owner }) => owner.identity));
  return overrides
    .filter((one) => !keepsDecision(one) && !open.has(one.owner.identity) && forwards(one.owner))
    .map(({ entry }) => entry);
}

function keepsDecision({ isDisabled, settings }: Override): boolean {
  return !isDisabled && requiresDecision(settings.get('rbac'));
}

/**
 * Extensions that compute a cluster's name. Extensions with a matcher or priority use names from the configuration,
 * like routes.
 */
const CHOOSES_CLUSTER = /\.router\.cluster_specifiers?\.(?!(?:matcher|priority_group)\.)/;

/** Filters that may copy a caller's input to metadata. */
const COPYING = new Set([
  'dynamic_modules',
  'ext_proc',
  'golang',
  'grpc_field_extraction',
  'header_to_metadata',
  'json_to_metadata',
  'lua',
  'payload_to_metadata',
  'proto_message_extraction',
  'wasm',
]);

/** Also true for a file without filters. */
function mayCopyHeaders(gateway: Gateway): boolean {
  const filters = allChains(gateway).flatMap((chain) => chain.filters);
  return gateway.listeners.length === 0 || filters.some(({ kind }) => COPYING.has(kind));
}

export const DECISION_RULES: readonly Rule[] = [
  {
    id: 'route-unchecked',
    severity: 'error',
    effect: 'forwards what matches here without asking the verifier',
    fix: 'remove it; where it is meant (health, CORS preflight), allow it by a comment',
    find: (gateway) => [
      ...checkOverrides(gateway)
        .filter(({ owner }) => forwards(owner))
        .flatMap((override) => switchedOff(override) ?? []),
      ...uncheckedRules(gateway),
    ],
  },
  {
    id: 'decision-not-required',
    severity: 'warning',
    effect: 'forwards requests without a decision: Envoy takes an empty answer of the Check for an allow',
    fix: 'envoy.filters.http.rbac behind ext_authz that requires x-proofgate-decision-id, as envoy.yaml has it',
    find: (gateway) => checkedChains(gateway).flatMap((chain) => undecided(chain, gateway)),
  },
  {
    id: 'caller-chooses-target',
    severity: 'error',
    effect: "lets a caller's unsigned header choose where a checked request goes",
    fix: 'name clusters and hosts in the configuration',
    find: (gateway) => [
      ...where(gateway.routeParts, 'cluster_header'),
      ...where(gateway.routeParts, 'host_rewrite_header'),
      ...where(gateway.clusters, 'original_dst_lb_config.use_http_header', mayBeOn),
      ...where(specsOf(gateway, 'HTTPRouteFilter'), 'url_rewrite.hostname.header'),
      ...(mayCopyHeaders(gateway) ? where(gateway.clusters, 'original_dst_lb_config.metadata_key') : []),
      ...gateway.routeParts.filter((part) => CHOOSES_CLUSTER.test(typed(part)?.type ?? '')),
    ],
  },
];
