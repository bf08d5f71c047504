/** Headers that only the verifier may write: none from callers, none from the API under the names of a denial. */
import { clientPolicies } from '../client-policies.ts';
import { forwards, isCheckFilter } from '../exposure.ts';
import type { Chain, Gateway, HttpFilter, Rule } from '../gateway.ts';
import { CONTEXT_HEADERS, DENIAL_HEADERS, isVendorHeader, matches } from '../header-names.ts';
import { mayBe, typed } from '../read-filters.ts';
import { httpRouteRules, ofKind, viewsOf } from '../settings.ts';
import { everyMapping, type View } from '../view.ts';
import { chainsOf } from './chain.ts';

function checkedChains(gateway: Gateway): readonly Chain[] {
  return chainsOf(gateway).filter(({ filters }) => filters.some(isCheckFilter));
}

/** Filters in front of the check that change headers for every request. */
function mutationsBefore({ filters }: Chain): readonly HttpFilter[] {
  const check = filters.findIndex(isCheckFilter);
  return filters
    .slice(0, check)
    .filter(
      ({ condition, entry, kind }) =>
        kind === 'header_mutation' && condition === undefined && !mayBe(entry.get('disabled')),
    );
}

/** What `remove` and `remove_on_match` take away of a list of names. */
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

const contextHeadersKept: Rule = {
  id: 'context-headers-kept',
  severity: 'error',
  effect: "passes on callers' own x-proofgate-… headers, on routes that skip the check at least",
  fix: 'header_mutation in front of ext_authz that removes each, as envoy.yaml does (Envoy Gateway: earlyRequestHeaders.remove)',
  find: (gateway) => [
    ...checkedChains(gateway).flatMap((chain) => {
      const filters = mutationsBefore(chain);
      const lists = filters.flatMap(({ settings }) => settings?.at('mutations', 'request_mutations') ?? []);
      const mutations = [...lists.flatMap((list) => list.items()), ...earlyMutations(chain)];
      if (remaining(mutations, CONTEXT_HEADERS).length === 0) return [];
      return [lists[0] ?? filters[0]?.entry ?? chain.manager.get('http_filters') ?? chain.manager];
    }),
    ...checkedChains(gateway).flatMap((chain) => {
      const names = new Set(mutationsBefore(chain).map(({ name }) => name));
      return gateway.overrides
        .filter(({ isDisabled, name }) => isDisabled && names.has(name))
        .map(({ entry }) => entry);
    }),
    ...viewsOf(clientPolicies(gateway)).flatMap((spec) => {
      const early = spec.at('headers', 'early_request_headers');
      const removed = new Set(early?.list('remove').map(({ text }) => text?.toLowerCase()));
      return CONTEXT_HEADERS.every((name) => removed.has(name)) ? [] : [early?.get('remove') ?? spec];
    }),
  ],
};

const trailersKept: Rule = {
  id: 'trailers-kept',
  severity: 'warning',
  effect: 'passes on trailers, which are in no Check and which some HTTP/2 APIs merge into the headers',
  fix: 'request_trailers_mutations: [{ remove_on_match: { key_matcher: { safe_regex: { regex: ".*" } } } }]',
  find: (gateway) =>
    checkedChains(gateway).flatMap((chain) => {
      const filters = mutationsBefore(chain);
      const lists = filters.flatMap(
        ({ settings }) => settings?.at('mutations', 'request_trailers_mutations') ?? [],
      );
      const names = ['x-any-trailer', ...CONTEXT_HEADERS];
      if (
        remaining(
          lists.flatMap((list) => list.items()),
          names,
        ).length === 0
      )
        return [];
      return [
        lists[0] ??
          filters[0]?.settings?.get('mutations') ??
          chain.manager.get('http_filters') ??
          chain.manager,
      ];
    }),
};

const contextHeaderWritten: Rule = {
  id: 'context-header-written',
  severity: 'error',
  effect: 'writes a header that the API takes for the word of the verifier',
  fix: 'no x-proofgate-… in what the gateway adds or sets',
  find: (gateway) => [
    ...gateway.routeParts.flatMap((part) => part.list('request_headers_to_add')).flatMap(addedName),
    ...everyMapping(mutationSettings(gateway))
      .flatMap((view) => view.get('append') ?? [])
      .flatMap(addedName),
    ...settingsOf(gateway, 'local_ratelimit')
      .flatMap((view) => view.list('request_headers_to_add_when_not_enforced'))
      .flatMap(addedName),
    ...kubernetesModifiers(gateway).flatMap((modifier) =>
      ['set', 'add', 'add_if_absent'].flatMap((verb) => writtenBy(modifier.get(verb))),
    ),
    ...ofKind(gateway, 'HTTPRouteFilter')
      .flatMap(({ spec }) => spec.at('credential_injection', 'header') ?? [])
      .filter(isVendorHeader),
  ],
};

/** Of all that changes headers: filters, what routes make of them, what runs before the filters. */
function mutationSettings(gateway: Gateway): readonly View[] {
  const chains = gateway.listeners.flatMap((listener) => listener.chains);
  return [
    ...settingsOf(gateway, 'header_mutation'),
    ...chains.flatMap(({ manager }) => manager.list('early_header_mutation_extensions')),
  ];
}

/** Of all filters of a kind, also those that patches put in, and what routes make of them. */
function settingsOf({ insertedFilters, listeners, overrides }: Gateway, wanted: string): readonly View[] {
  const filters = [
    ...listeners.flatMap(({ chains }) => chains).flatMap((chain) => chain.filters),
    ...insertedFilters.map(({ filter }) => filter),
  ];
  return [...filters, ...overrides].flatMap(({ kind, settings }) =>
    kind === wanted ? (settings ?? []) : [],
  );
}

/** Of a HeaderValueOption. */
function addedName(option: View): readonly View[] {
  const key = option.at('header', 'key');
  return key !== undefined && isVendorHeader(key) ? [key] : [];
}

/** Lists of `name` and `value` (Gateway API), or mappings (Istio). */
function writtenBy(headers: View | undefined): readonly View[] {
  if (headers === undefined) return [];
  const listed = headers.items().flatMap((item) => item.get('name') ?? []);
  const mapped = headers.isMapping ? headers.members() : [];
  return [
    ...listed.filter(isVendorHeader),
    ...mapped.flatMap(({ name, view }) => (isVendorHeader(name) ? [view] : [])),
  ];
}

function kubernetesModifiers(gateway: Gateway): readonly View[] {
  const filters = httpRouteRules(gateway).flatMap((rule) => [
    ...rule.list('filters'),
    ...rule.list('backend_refs').flatMap((backend) => backend.list('filters')),
  ]);
  const istio = ofKind(gateway, 'VirtualService').flatMap(({ spec }) =>
    spec.list('http').flatMap((route) => [route, ...route.list('route')]),
  );
  return [
    ...filters.flatMap((filter) => filter.get('request_header_modifier') ?? []),
    ...istio.flatMap((route) => route.at('headers', 'request') ?? []),
    ...ofKind(gateway, 'ClientTrafficPolicy').flatMap(
      ({ spec }) => spec.at('headers', 'early_request_headers') ?? [],
    ),
  ];
}

const denialHeadersKept: Rule = {
  id: 'denial-headers-kept',
  severity: 'warning',
  effect: "passes on the API's own answers as if they were the verifier's denials",
  fix: 'response_headers_to_remove: [x-proofgate-reason, x-proofgate-decision-id]',
  find: (gateway) =>
    checkedChains(gateway)
      .flatMap(({ routes }) => routes)
      .flatMap((configuration) =>
        configuration
          .list('virtual_hosts')
          .filter((host) => host.get('matcher') !== undefined || host.list('routes').some(forwards))
          .flatMap((host) => {
            const removed = [configuration, host].flatMap((part) => part.list('response_headers_to_remove'));
            const names = new Set(removed.map(({ text }) => text?.toLowerCase()));
            const isKept = DENIAL_HEADERS.some((name) => !names.has(name));
            return isKept ? [host.get('response_headers_to_remove') ?? host] : [];
          }),
      ),
};

export const HEADER_RULES: readonly Rule[] = [
  contextHeadersKept,
  trailersKept,
  contextHeaderWritten,
  denialHeadersKept,
];
