/** Routes that skip the check, and the second look at what it allowed. */
import { isDecision } from '../decision-removals.ts';
import { forwards, isCheckFilter } from '../exposure.ts';
import type { Chain, Gateway, HttpFilter, Override, Rule } from '../gateway.ts';
import { requiresDecision } from '../rbac.ts';
import { mayBe, typed } from '../read-filters.ts';
import { externalAuths, httpRouteRules, ofKind } from '../settings.ts';
import type { View } from '../view.ts';
import { chainsOf } from './chain.ts';

/** Entries for ext_authz: by type, or for `FilterConfig` alone by the filter's name. */
function checkOverrides({ listeners, overrides }: Gateway): readonly Override[] {
  const filters = listeners
    .flatMap(({ chains }) => chains)
    .flatMap((chain) => chain.filters.filter(isCheckFilter));
  const names = new Set(filters.map(({ name }) => name));
  return overrides.filter(
    ({ kind, name }) =>
      kind === 'ext_authz' || (kind === undefined && (names.has(name) || name.includes('ext_authz'))),
  );
}

function switchedOff({ entry, isDisabled, settings }: Override): View | undefined {
  if (isDisabled) return entry.get('disabled') ?? entry;
  const disabled = settings.get('disabled');
  return disabled !== undefined && mayBe(disabled) ? disabled : undefined;
}

const routeUnchecked: Rule = {
  id: 'route-unchecked',
  severity: 'error',
  effect: 'forwards what matches here without asking the verifier',
  fix: 'take it away; where it is meant (health, CORS preflight), allow it by a comment',
  find: (gateway) => [
    ...checkOverrides(gateway)
      .filter(({ owner }) => forwards(owner))
      .flatMap((override) => switchedOff(override) ?? []),
    ...uncheckedRules(gateway),
  ],
};

/** Of Gateway API's routes, when others in the file ask. */
function uncheckedRules(gateway: Gateway): readonly View[] {
  if (externalAuths(gateway).length === 0) return [];
  return httpRouteRules(gateway).filter((rule) => {
    const filters = rule.list('filters');
    const isAnswered = filters.some((filter) => filter.get('request_redirect') !== undefined);
    return !isAnswered && !filters.some((filter) => filter.get('external_auth') !== undefined);
  });
}

const decisionNotRequired: Rule = {
  id: 'decision-not-required',
  severity: 'warning',
  effect: 'forwards what no decision was made about: for Envoy an empty answer of the Check is an allow',
  fix: 'envoy.filters.http.rbac behind ext_authz that wants x-proofgate-decision-id, as envoy.yaml has it',
  find: (gateway) => [
    ...chainsOf(gateway)
      .filter(({ filters }) => filters.some(isCheckFilter))
      .flatMap((chain) => undecided(chain, gateway)),
    ...gateway.decisionRemovals,
    ...undecidedOverrides(
      overridesOf(gateway.insertedFilters.map(({ filter }) => filter).filter(isDecision), gateway),
      gateway,
    ),
  ],
};

function overridesOf(filters: readonly HttpFilter[], { overrides }: Gateway): readonly Override[] {
  const names = new Set(filters.map(({ name }) => name));
  return overrides.filter(({ name }) => names.has(name));
}

/** Where the check is asked, and nothing is required of its answer. */
function undecidedOverrides(overrides: readonly Override[], gateway: Gateway): readonly View[] {
  const open = new Set(
    checkOverrides(gateway)
      .filter((one) => switchedOff(one) !== undefined)
      .map(({ owner }) => owner.identity),
  );
  return overrides
    .filter((one) => !keepsDecision(one) && !open.has(one.owner.identity) && forwards(one.owner))
    .map(({ entry }) => entry);
}

function undecided({ filters, routes, unseenRoutes }: Chain, gateway: Gateway): readonly View[] {
  const check = filters.findIndex(isCheckFilter);
  const rbac = filters
    .slice(check + 1)
    .filter(
      ({ condition, entry, kind }) =>
        kind === 'rbac' && condition === undefined && !mayBe(entry.get('disabled')),
    );
  const place = rbac[0]?.entry ?? filters[check]?.entry;
  const overrides = overridesOf(rbac, gateway);
  const isRequired = rbac.some(({ settings }) => requiresDecision(settings));
  const isRequiredBy = (view: View) =>
    overrides.some((one) => one.owner.identity === view.identity && keepsDecision(one));
  const everywhere =
    isRequired ||
    (unseenRoutes === undefined &&
      routes.length > 0 &&
      routes.every((one) => isRequiredBy(one) || one.list('virtual_hosts').every(isRequiredBy)));
  if (!everywhere) return place === undefined ? [] : [place];
  return undecidedOverrides(overrides, gateway);
}

function keepsDecision({ isDisabled, settings }: Override): boolean {
  return !isDisabled && requiresDecision(settings.get('rbac'));
}

const callerChoosesTarget: Rule = {
  id: 'caller-chooses-target',
  severity: 'error',
  effect: 'lets a header of the caller, which nobody has signed, choose where a checked request goes',
  fix: 'name clusters and hosts in the configuration',
  find: (gateway) => [
    ...gateway.routeParts.flatMap((part) => part.get('cluster_header') ?? []),
    ...gateway.routeParts.flatMap((part) => part.get('host_rewrite_header') ?? []),
    ...gateway.clusters.flatMap((cluster) => {
      const byHeader = cluster.at('original_dst_lb_config', 'use_http_header');
      return byHeader !== undefined && mayBe(byHeader) ? [byHeader] : [];
    }),
    ...ofKind(gateway, 'HTTPRouteFilter').flatMap(({ spec }) => hostFromHeader(spec)),
    ...(mayCopyHeaders(gateway)
      ? gateway.clusters.flatMap((cluster) => cluster.at('original_dst_lb_config', 'metadata_key') ?? [])
      : []),
    ...gateway.routeParts.filter((part) => CHOOSES_CLUSTER.test(typed(part)?.type ?? '')),
  ],
};

/** Envoy Gateway's way of saying `host_rewrite_header`. */
function hostFromHeader(spec: View): readonly View[] {
  const hostname = spec.at('url_rewrite', 'hostname');
  const header = hostname?.get('header');
  if (header !== undefined) return [header];
  const type = hostname?.get('type');
  return type?.isOneOf('Header') ? [type] : [];
}

/** Extensions that compute a cluster's name. Those by a matcher or priority take names of the configuration, as routes do. */
const CHOOSES_CLUSTER = /\.router\.cluster_specifiers?\.(?!(?:matcher|priority_group)\.)/;

/** Filters that may make metadata of what a caller sends. */
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

/** Also where no filters are seen. */
function mayCopyHeaders({ insertedFilters, listeners }: Gateway): boolean {
  const filters = [
    ...listeners.flatMap(({ chains }) => chains).flatMap((chain) => chain.filters),
    ...insertedFilters.map(({ filter }) => filter),
  ];
  return listeners.length === 0 || filters.some(({ kind }) => COPYING.has(kind));
}

export const DECISION_RULES: readonly Rule[] = [routeUnchecked, decisionNotRequired, callerChoosesTarget];
