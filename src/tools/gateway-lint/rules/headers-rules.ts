/**
 * Rules about headers that only the verifier may write: none may come from callers, and the API must not send those of
 * a denial.
 */
import {
  allChains,
  checkedChains,
  filtersBeforeCheck,
  forwards,
  overridesOf,
  runsAlways,
} from '../gateway/chains.ts';
import { clientPolicies } from '../gateway/envoy-gateway.ts';
import type { Chain, Gateway, HttpFilter, Rule } from '../gateway/gateway.ts';
import { routeRules, specsOf, where } from '../gateway/gateway-queries.ts';
import {
  CONTEXT_HEADERS,
  DENIAL_HEADERS,
  HTTP_LENGTH_HEADER,
  isVendorHeader,
  matches,
} from '../gateway/header-names.ts';
import { typed } from '../gateway/read-filters.ts';
import { everyMapping, type View } from '../gateway/view.ts';

/** Filters before the check that change headers of every request. */
function mutationsBefore(chain: Chain): readonly HttpFilter[] {
  return filtersBeforeCheck(chain).filter((one) => one.kind === 'header_mutation' && runsAlways(one));
}

/** A list of mutations of these filters. */
function mutationLists(filters: readonly HttpFilter[], name: string): readonly View[] {
  return filters.flatMap(({ settings }) => settings?.at('mutations', name) ?? []);
}

/** Names that `remove` and `remove_on_match` do not remove. */
function remaining(mutations: readonly View[], names: readonly string[]): readonly string[] {
  return names.filter(
    (name) =>
      !mutations.some((mutation) => {
        const matcher = mutation.at('remove_on_match', 'key_matcher');
        const removed = mutation.get('remove')?.text?.toLowerCase();
        return removed === name || (matcher !== undefined && matches(matcher, name));
      }),
  );
}

function earlyMutations({ manager }: Chain): readonly View[] {
  return manager
    .list('early_header_mutation_extensions')
    .flatMap((extension) => typed(extension.get('typed_config'))?.settings.list('mutations') ?? []);
}

function keptContextHeaders(chain: Chain): readonly View[] {
  const filters = mutationsBefore(chain);
  const lists = mutationLists(filters, 'request_mutations');
  const mutations = [...lists.flatMap((list) => list.items()), ...earlyMutations(chain)];
  if (remaining(mutations, CONTEXT_HEADERS).length === 0) return [];
  return [lists[0] ?? filters[0]?.entry ?? chain.manager.get('http_filters') ?? chain.manager];
}

/** Headers that a ClientTrafficPolicy, or the default without one, keeps. */
function keptByPolicy(spec: View): readonly View[] {
  const early = spec.at('headers', 'early_request_headers');
  const removed = new Set(early?.list('remove').map(({ text }) => text?.toLowerCase()));
  return CONTEXT_HEADERS.every((name) => removed.has(name)) ? [] : [early?.get('remove') ?? spec];
}

function keptTrailers(chain: Chain): readonly View[] {
  const filters = mutationsBefore(chain);
  const lists = mutationLists(filters, 'request_trailers_mutations');
  const mutations = lists.flatMap((list) => list.items());
  if (remaining(mutations, ['x-any-trailer', ...CONTEXT_HEADERS]).length === 0) return [];
  const holder = filters[0]?.settings?.get('mutations');
  return [lists[0] ?? holder ?? chain.manager.get('http_filters') ?? chain.manager];
}

/** Names in HeaderValueOptions. */
function addedNames(options: readonly View[]): readonly View[] {
  return where(options, 'header.key', isVendorHeader);
}

/** Settings of all filters of a kind, and of their overrides by routes. */
function settingsOf(gateway: Gateway, wanted: string): readonly View[] {
  const filters = [...allChains(gateway).flatMap((chain) => chain.filters), ...gateway.overrides];
  return filters.flatMap(({ kind, settings }) => (kind === wanted ? (settings ?? []) : []));
}

/** Settings of everything that changes headers: filters, their overrides by routes, and parts that run before filters. */
function mutationSettings(gateway: Gateway): readonly View[] {
  const early = allChains(gateway).flatMap(({ manager }) => manager.list('early_header_mutation_extensions'));
  return everyMapping([...settingsOf(gateway, 'header_mutation'), ...early]);
}

/** `set` and `add` in manifests: routes of Gateway API and Istio, and policies of Envoy Gateway. */
function manifestModifiers(gateway: Gateway): readonly View[] {
  const rules = routeRules(gateway).flatMap((rule) => [rule, ...rule.list('backend_refs')]);
  const istio = specsOf(gateway, 'VirtualService').flatMap((spec) => spec.list('http'));
  return [
    ...where(
      rules.flatMap((one) => one.list('filters')),
      'request_header_modifier',
    ),
    ...where(
      istio.flatMap((route) => [route, ...route.list('route')]),
      'headers.request',
    ),
    ...where(specsOf(gateway, 'ClientTrafficPolicy'), 'headers.early_request_headers'),
  ];
}

/** Lists of `name` and `value` (Gateway API), or mappings (Istio). */
function writtenBy(headers: View): readonly View[] {
  const mapped = headers.isMapping ? headers.members() : [];
  return [
    ...where(headers.items(), 'name', isVendorHeader),
    ...mapped.filter(({ name }) => isVendorHeader(name)).map(({ view }) => view),
  ];
}

function keptDenialHeaders(configuration: View): readonly View[] {
  return configuration
    .list('virtual_hosts')
    .filter((host) => host.get('matcher') !== undefined || host.list('routes').some(forwards))
    .filter((host) => {
      const removed = [configuration, host].flatMap((part) => part.list('response_headers_to_remove'));
      const names = new Set(removed.map(({ text }) => text?.toLowerCase()));
      return DENIAL_HEADERS.some((name) => !names.has(name));
    })
    .map((host) => host.get('response_headers_to_remove') ?? host);
}

export const HEADER_RULES: readonly Rule[] = [
  {
    id: 'context-headers-kept',
    severity: 'error',
    effect: "passes on callers' own x-proofgate-… headers, at least on routes that skip the check",
    fix: 'header_mutation in front of ext_authz that removes each, as envoy.yaml does (Envoy Gateway: earlyRequestHeaders.remove)',
    find: (gateway) => [
      ...checkedChains(gateway).flatMap(keptContextHeaders),
      ...checkedChains(gateway)
        .flatMap((chain) => overridesOf(mutationsBefore(chain), gateway.overrides))
        .filter(({ isDisabled }) => isDisabled)
        .map(({ entry }) => entry),
      ...clientPolicies(gateway).flatMap(keptByPolicy),
    ],
  },
  {
    id: 'trailers-kept',
    severity: 'warning',
    effect: 'passes on trailers, which are in no Check and which some HTTP/2 APIs merge into the headers',
    fix: 'request_trailers_mutations: [{ remove_on_match: { key_matcher: { safe_regex: { regex: ".*" } } } }]',
    find: (gateway) => checkedChains(gateway).flatMap(keptTrailers),
  },
  {
    id: 'context-header-written',
    severity: 'error',
    effect: 'writes a header that the API trusts as written by the verifier',
    fix: 'no x-proofgate-… in what the gateway adds or sets',
    find: (gateway) => [
      ...addedNames(gateway.routeParts.flatMap((part) => part.list('request_headers_to_add'))),
      ...addedNames(where(mutationSettings(gateway), 'append')).filter(
        ({ text }) => text !== HTTP_LENGTH_HEADER,
      ),
      ...addedNames(
        settingsOf(gateway, 'local_ratelimit').flatMap((view) =>
          view.list('request_headers_to_add_when_not_enforced'),
        ),
      ),
      ...['set', 'add', 'add_if_absent']
        .flatMap((verb) => where(manifestModifiers(gateway), verb))
        .flatMap(writtenBy),
      ...where(specsOf(gateway, 'HTTPRouteFilter'), 'credential_injection.header', isVendorHeader),
    ],
  },
  {
    id: 'denial-headers-kept',
    severity: 'warning',
    effect: "passes on the API's own answers as if they were denials of the verifier",
    fix: 'response_headers_to_remove: [x-proofgate-reason, x-proofgate-decision-id]',
    find: (gateway) => checkedChains(gateway).flatMap(({ routes }) => routes.flatMap(keptDenialHeaders)),
  },
];
