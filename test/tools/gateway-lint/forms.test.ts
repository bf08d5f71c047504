/** Checks that the linter finds a setting in every form that a gateway accepts. */
import { describe, expect, it } from '@jest/globals';
import { parse, stringify } from 'yaml';
import { cleanBase, exchanged, found, rulesIn } from '../../support/docs/lint-rule-cases.ts';

const clean = cleanBase('envoy');
const edited = (passage: string, by: string) => rulesIn(exchanged(clean, passage, by));
const FAILURE = 'failure_mode_allow: false';

/** Names in camel case, which protobuf's JSON form accepts too. */
function camelCased(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(camelCased);
  if (typeof value !== 'object' || value === null) return value;
  const camel = (name: string) =>
    /[.@]/.test(name) ? name : name.replace(/_([a-z0-9])/g, (_, c: string) => c.toUpperCase());
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [camel(name), camelCased(one)]));
}

describe('a value', () => {
  it.each([
    'true',
    'yes',
    'On',
    'TRUE',
    '"true"',
    "'yes'",
    '!!bool true',
    '1',
    '{{ .Values.open }}',
    '%OPEN%',
    '[true]',
    '&a { value: *a }',
  ])('%s is not known to be false', (value) => {
    const written = /^[{%]/.test(value) ? `"${value}"` : value;
    expect(edited(FAILURE, `failure_mode_allow: ${written}`)).toEqual(['fails-open']);
  });

  it.each(['false', 'no', 'Off', '"false"', 'null', '~', ''])('%s is false', (value) => {
    expect(edited(FAILURE, `failure_mode_allow: ${value}`)).toEqual([]);
  });

  it.each([
    ['use_remote_address: true', 'use_remote_address: { value: true }'],
    ['timeout: 0.5s', 'timeout: { seconds: 1, nanos: 500000000 }'],
    ['path_with_escaped_slashes_action: REJECT_REQUEST', 'path_with_escaped_slashes_action: 2'],
    ['max_request_bytes: 1048576', 'max_request_bytes: 0x100000'],
    ['max_request_bytes: 1048576', 'max_request_bytes: "1048576"'],
    ['code: ServiceUnavailable', 'code: 503'],
  ])('instead of %s: %s', (passage, by) => {
    expect(edited(passage, by)).toEqual([]);
  });

  it.each([
    ['use_remote_address: true', 'use_remote_address: { value: false }', 'remote-address-unused'],
    ['timeout: 0.5s', 'timeout: { seconds: 60 }', 'check-time-out'],
    ['timeout: 0.5s', 'timeout: 0s', 'check-time-out'],
    ['action: REJECT_REQUEST\n', 'action: 1\n', 'escaped-slashes'],
    ['max_request_bytes: 1048576', 'max_request_bytes: 0x1000000', 'body-limit'],
    ['max_request_bytes: 1048576', 'max_request_bytes: 01048576', 'body-limit'],
    [FAILURE, 'filter_enabled: { default_value: { numerator: 0100 } }', 'check-sampled'],
    [FAILURE, 'filter_enabled: { default_value: { numerator: { value: 0100 } } }', 'check-sampled'],
    ['transport_api_version: V3', 'transport_api_version: AUTO', 'transport-version'],
  ])('instead of %s: %s is %s', (passage, by, rule) => {
    expect(edited(passage, by)).toEqual([rule]);
  });
});

describe('a name', () => {
  const all = JSON.stringify(camelCased(parse(clean)), undefined, 1);

  it('in camel case is the same', () => {
    expect(found(all)).toEqual([]);
    const open = exchanged(all, '"failureModeAllow": false', '"failureModeAllow": true');
    const line = open.split('\n').findIndex((text) => text.includes('"failureModeAllow"')) + 1;
    expect(found(open)).toEqual([{ rule: 'fails-open', line }]);
    expect(rulesIn(exchanged(all, '"normalizePath": true,', ''))).toEqual(['path-not-normalized']);
  });

  it('counts by its last value, and twice is once too often', () => {
    const twice = `${FAILURE}\n                      failure_mode_allow: true`;
    expect(edited(FAILURE, twice).toSorted()).toEqual(['fails-open', 'setting-twice']);
    const camel = `failure_mode_allow: true\n                      failureModeAllow: false`;
    expect(edited(FAILURE, camel)).toEqual(['setting-twice']);
  });
});

describe('a name with the tag !ignore', () => {
  it('is not there, as for Envoy', () => {
    expect(edited('normalize_path: true', '!ignore normalize_path: true')).toEqual(['path-not-normalized']);
    expect(edited('normalize_path: true', '!<!ignore> normalize_path: true')).toEqual([
      'path-not-normalized',
    ]);
    expect(edited(FAILURE, '!ignore failure_mode_allow: true')).toEqual([]);
    expect(edited(FAILURE, `!ignore failure_mode_allow: true\n                      ${FAILURE}`)).toEqual([]);
  });

  it('does not make it a manifest', () => {
    const text = exchanged(clean, 'normalize_path: true', '!ignore normalize_path: true');
    expect(rulesIn(`${text}\n!ignore kind: Pod\n`)).toEqual(['path-not-normalized']);
  });

  it('is not there where the names of all are aliases', () => {
    const text = exchanged(clean, 'normalize_path: true', '!ignore normalize_path: true');
    const aliased = text.replace(/^static_resources:/m, '*all :').replace(/^admin:/m, '*own :');
    const names = 'node: { metadata: { a: &all static_resources, b: &own admin } }';
    expect(rulesIn(`${names}\n${aliased}`)).toEqual(['path-not-normalized']);
  });

  it('is there in a manifest, which others read', () => {
    const mesh = `kind: IstioOperator\napiVersion: install.istio.io/v1alpha1\nspec: { meshConfig: { extensionProviders: [{ name: a, envoyExtAuthzGrpc: { !ignore failOpen: true } }] } }\n`;
    expect(rulesIn(mesh)).toContain('fails-open');
  });
});

describe('an anchor', () => {
  it('may stand for a name', () => {
    const text = exchanged(clean, FAILURE, '*open : true');
    expect(rulesIn(`node: { metadata: { a: &open failure_mode_allow } }\n${text}`)).toEqual(['fails-open']);
    const twice = exchanged(clean, FAILURE, `${FAILURE}\n                      *open : false`);
    expect(rulesIn(`node: { metadata: { a: &open failure_mode_allow } }\n${twice}`)).toEqual([
      'setting-twice',
    ]);
  });

  const open = 'x-open: &open { failure_mode_allow: true }\nstatic_resources:\n';

  it('is followed, and its finding stands where the setting does', () => {
    const merged = exchanged(exchanged(clean, FAILURE, '<<: *open'), 'static_resources:\n', open);
    expect(found(merged)).toEqual([{ rule: 'fails-open', line: 1 }]);
    const several = merged.replace('<<: *open', '<<: [{}, *open]');
    expect(rulesIn(several)).toEqual(['fails-open']);
    expect(rulesIn(merged.replace('<<: *open', `<<: *open\n                      ${FAILURE}`))).toEqual([]);
    const value = exchanged(
      exchanged(clean, FAILURE, 'failure_mode_allow: *yes'),
      'static_resources:\n',
      'x: &yes true\nstatic_resources:\n',
    );
    expect(rulesIn(value)).toEqual(['fails-open']);
  });

  it('that two listeners share is one finding', () => {
    const [before = '', rest = ''] = clean.split('      filter_chains:\n');
    const [chains = '', after = ''] = rest.split('  clusters:\n');
    const shared = exchanged(chains, FAILURE, 'failure_mode_allow: true');
    const second = '    - name: second\n      filter_chains: *chains\n';
    const text = `${before}      filter_chains: &chains\n${shared}${second}  clusters:\n${after}`;
    expect(rulesIn(text)).toEqual(['fails-open']);
    expect(found(text).length).toBe(1);
  });

  it('in a circle, or that unfolds to millions, ends', () => {
    const circle = 'x: &a { b: *a, <<: *a }\nstatic_resources: &s { listeners: [*s], <<: *s }\n';
    expect(found(circle)).toEqual([]);
    const levels = Array.from({ length: 40 }, (_, i) => `l${i + 1}: &l${i + 1} { a: *l${i}, b: *l${i} }`);
    const bomb = `l0: &l0 { failure_mode_allow: true }\n${levels.join('\n')}\nresources:\n  - "@type": type.googleapis.com/envoy.config.route.v3.RouteConfiguration\n    virtual_hosts: [*l40]\n`;
    expect(found(bomb)).toEqual([]);
    const merges = levels.map((line) => line.replace(/a: (\*\w+), b: (\*\w+)/, '<<: [$1, $2]'));
    expect(found(bomb.replace(levels.join('\n'), merges.join('\n')))).toEqual([]);
  });
});

describe('settings within other messages', () => {
  const base = parse(clean);
  const manager = () =>
    structuredClone(base.static_resources.listeners[0].filter_chains[0].filters[0].typed_config);
  const withManager = (change: (one: ReturnType<typeof manager>) => void) => {
    const copy = structuredClone(base);
    const [listener] = copy.static_resources.listeners;
    change(listener.filter_chains[0].filters[0].typed_config);
    return stringify(copy);
  };

  it('as a TypedStruct, of either name', () => {
    for (const name of ['xds.type.v3.TypedStruct', 'udpa.type.v1.TypedStruct']) {
      const text = withManager(({ http_filters }) => {
        const { '@type': type_url, ...value } = http_filters[1].typed_config;
        http_filters[1] = {
          name: 'guard',
          typed_config: {
            '@type': `type.googleapis.com/${name}`,
            type_url,
            value: { ...value, failure_mode_allow: true },
          },
        };
      });
      expect(rulesIn(text)).toEqual(['fails-open']);
    }
  });

  it('whatever the filter is called, and in a chain of a second listener or of none', () => {
    const guard = (one: ReturnType<typeof manager>) => {
      one.http_filters[1].name = 'somebody';
      one.http_filters[1].typed_config.failure_mode_allow = true;
      return one;
    };
    const filter = { name: 'x', typed_config: guard(manager()) };
    const listeners = [
      { default_filter_chain: { filters: [filter] } },
      { filter_chains: [{ filters: [] }, { filters: [filter] }] },
      { api_listener: { api_listener: filter.typed_config } },
    ];
    for (const one of listeners) {
      const copy = structuredClone(base);
      copy.static_resources.listeners.push(one);
      expect(rulesIn(stringify(copy, { aliasDuplicateObjects: false }))).toEqual(['fails-open']);
    }
  });

  it('takes a filter for what its settings are, not for its name', () => {
    const text = withManager(({ http_filters }) => {
      http_filters[2].typed_config = {
        '@type': 'type.googleapis.com/envoy.extensions.filters.http.lua.v3.Lua',
      };
    });
    expect(rulesIn(text).toSorted()).toEqual(['decision-not-required', 'filter-behind-check']);
  });

  it('in a filter that a Composite chooses', () => {
    const text = withManager(({ http_filters }) => {
      const action = {
        name: 'composite-action',
        typed_config: {
          '@type': 'type.googleapis.com/envoy.extensions.filters.http.composite.v3.ExecuteFilterAction',
          typed_config: {
            ...http_filters[1],
            typed_config: { ...http_filters[1].typed_config, failure_mode_allow: true },
          },
        },
      };
      http_filters[1] = {
        name: 'composite',
        typed_config: {
          '@type': 'type.googleapis.com/envoy.extensions.common.matching.v3.ExtensionWithMatcher',
          extension_config: {
            name: 'composite',
            typed_config: {
              '@type': 'type.googleapis.com/envoy.extensions.filters.http.composite.v3.Composite',
            },
          },
          xds_matcher: { on_no_match: { action } },
        },
      };
    });
    expect(rulesIn(text).toSorted()).toEqual(['check-conditional', 'fails-open']);
  });

  it('in each of several ext_authz filters', () => {
    const text = withManager(({ http_filters }) => {
      const other = structuredClone(http_filters[1]);
      other.typed_config.grpc_service.envoy_grpc.cluster_name = 'upstream';
      other.typed_config.failure_mode_allow = true;
      http_filters.splice(2, 0, other);
    });
    expect(rulesIn(text)).toEqual(['fails-open']);
  });
});

describe('what a route says', () => {
  const off = {
    '@type': 'type.googleapis.com/envoy.extensions.filters.http.ext_authz.v3.ExtAuthzPerRoute',
    disabled: true,
  };
  const filterConfig = (config: object) => ({
    '@type': 'type.googleapis.com/envoy.config.route.v3.FilterConfig',
    ...config,
  });
  const struct = (value: object) => ({
    '@type': 'type.googleapis.com/xds.type.v3.TypedStruct',
    type_url: off['@type'],
    value,
  });
  const name = 'envoy.filters.http.ext_authz';
  const routes = (part: object) =>
    JSON.stringify({
      resources: [{ '@type': 'type.googleapis.com/envoy.config.route.v3.RouteConfiguration', ...part }],
    });

  it.each([
    ['a type', off],
    ['a quoted value', { ...off, disabled: 'true' }],
    ['FilterConfig', filterConfig({ disabled: true })],
    ['FilterConfig around settings', filterConfig({ config: off })],
    ['a TypedStruct', struct({ disabled: true })],
    ['FilterConfig around a TypedStruct', filterConfig({ config: struct({ disabled: true }) })],
  ])('by %s, wherever it stands', (_what, entry) => {
    const here = { typed_per_filter_config: { [name]: entry } };
    const camel = { typedPerFilterConfig: { [name]: entry } };
    const weighted = { route: { weighted_clusters: { clusters: [{ name: 'a', weight: 1, ...here }] } } };
    const action = {
      name: 'route',
      typed_config: { '@type': 'type.googleapis.com/envoy.config.route.v3.Route', ...here },
    };
    for (const part of [
      here,
      camel,
      { virtual_hosts: [here] },
      { virtual_hosts: [{ routes: [{ match: { prefix: '/' }, route: {}, ...here }] }] },
      { virtual_hosts: [{ routes: [weighted] }] },
      { virtual_hosts: [{ matcher: { matcher_list: { matchers: [{ on_match: { action } }] } } }] },
      { virtual_hosts: [{ matcher: { on_no_match: { action } } }] },
    ]) {
      expect(rulesIn(routes(part))).toEqual(['route-unchecked']);
    }
  });

  it('by FilterConfig under the name that the filter has here', () => {
    const renamed = exchanged(clean, '- name: envoy.filters.http.ext_authz', '- name: guard');
    const closed = 'route: { cluster: upstream }';
    const entry = '{ "@type": type.googleapis.com/envoy.config.route.v3.FilterConfig, disabled: true }';
    const text = exchanged(
      renamed,
      closed,
      `${closed}\n                          typed_per_filter_config: { guard: ${entry} }`,
    );
    expect(rulesIn(text)).toEqual(['route-unchecked']);
  });

  it('with another verifier, or another way to ask, for itself', () => {
    const entry = (check_settings: object) => ({ '@type': off['@type'], check_settings });
    const rules = (check_settings: object) =>
      rulesIn(routes({ typed_per_filter_config: { [name]: entry(check_settings) } }));
    const service = { timeout: '0.5s', google_grpc: { target_uri: 'verifier.example:9191' } };
    expect(rules({ grpc_service: service })).toEqual(['verifier-plaintext']);
    expect(rules({ grpc_service: { ...service, google_grpc: { target_uri: 'unix:/run/v.sock' } } })).toEqual(
      [],
    );
    expect(rules({ grpc_service: { envoy_grpc: { cluster_name: 'a' } } })).toEqual(['check-time-out']);
    expect(rules({ http_service: {} })).toEqual(['http-service']);
    expect(rules({ with_request_body: { pack_as_bytes: true, allow_partial_message: true } })).toEqual([
      'partial-body',
    ]);
    expect(rules({ with_request_body: { max_request_bytes: 9 } })).toEqual(['body-not-packed']);
  });

  it('for rbac: nothing, where the check is made', () => {
    const closed = 'route: { cluster: upstream }';
    const entry = '{ "@type": type.googleapis.com/envoy.extensions.filters.http.rbac.v3.RBACPerRoute }';
    const by = `${closed}\n                          typed_per_filter_config: { envoy.filters.http.rbac: ${entry} }`;
    expect(edited(closed, by)).toEqual(['decision-not-required']);
  });
});

describe('rules of rbac', () => {
  const decided = 'permissions: [{ header: { name: x-proofgate-decision-id, present_match: true } }]';
  const policies = (more: string) =>
    edited('                          decided:\n', `${more}                          decided:\n`);

  it.each([
    ['permissions: [{ header: { name: x-proofgate-decision-id, present_match: false } }]'],
    ['permissions: [{ header: { name: x-other, present_match: true } }]'],
    [
      'permissions: [{ header: { name: x-proofgate-decision-id, present_match: true, treat_missing_header_as_empty: true } }]',
    ],
    ['permissions: [{ header: { name: x-proofgate-decision-id, present_match: true } }, { any: true }]'],
    [
      'permissions: [{ or_rules: { rules: [{ any: true }, { header: { name: x-proofgate-decision-id, present_match: true } }] } }]',
    ],
    ['permissions: [{ not_rule: { header: { name: x-proofgate-decision-id, present_match: true } } }]'],
  ])('that let more through: %s', (by) => {
    expect(edited(decided, by)).toEqual(['decision-not-required']);
  });

  it('count for nothing beside a matcher, for which Envoy leaves them out', () => {
    const rules = '                      rules:\n';
    expect(edited(rules, `                      matcher: {}\n${rules}`)).toEqual(['decision-not-required']);
    const websockets = 'stat_prefix: ingress\n                upgrade_configs: [{ upgrade_type: websocket }]';
    const closed = exchanged(
      exchanged(clean, 'stat_prefix: ingress', websockets),
      decided,
      'permissions: [{ and_rules: { rules: [{ header: { name: x-proofgate-decision-id, present_match: true } }, { header: { name: upgrade, present_match: true, invert_match: true } }] } }]',
    );
    expect(rulesIn(closed)).toEqual([]);
    expect(
      rulesIn(exchanged(closed, rules, `                      matcher: {}\n${rules}`)).toSorted(),
    ).toEqual(['decision-not-required', 'upgrades-allowed']);
  });

  it('of a route count for nothing beside a matcher', () => {
    const route = 'route: { cluster: upstream }';
    const policy = `{ ${decided}, principals: [{ any: true }] }`;
    const own = (more: string) =>
      edited(
        route,
        `${route}\n                          typed_per_filter_config: { envoy.filters.http.rbac: { "@type": type.googleapis.com/envoy.extensions.filters.http.rbac.v3.RBACPerRoute, rbac: { ${more}rules: { policies: { decided: ${policy} } } } } }`,
      );
    expect(own('')).toEqual([]);
    expect(own('matcher: {}, ')).toEqual(['decision-not-required']);
  });

  it('count policy by policy, and only when they allow', () => {
    expect(
      policies(
        '                          open: { permissions: [{ any: true }], principals: [{ any: true }] }\n',
      ),
    ).toEqual(['decision-not-required']);
    expect(
      edited(
        '                      rules:\n',
        '                      rules:\n                        action: LOG\n',
      ),
    ).toEqual(['decision-not-required']);
    const both =
      'permissions: [{ and_rules: { rules: [{ any: true }, { header: { name: X-Proofgate-Decision-Id, present_match: true } }] } }]';
    expect(edited(decided, both)).toEqual([]);
  });
});

describe('what is in front of the check', () => {
  const filter = '- name: envoy.filters.http.header_mutation\n';

  it.each([
    ['switched off', `${filter}                    disabled: true\n`],
    ['switched off by a template', `${filter}                    disabled: "{{ .off }}"\n`],
  ])('removes nothing when it is %s', (_what, by) => {
    expect(edited(filter, by).toSorted()).toEqual(['context-headers-kept', 'trailers-kept']);
  });

  it('removes nothing behind the check', () => {
    const [before = '', rest = ''] = clean.split(
      '                  - name: envoy.filters.http.header_mutation\n',
    );
    const [mutation = '', after = ''] = rest.split(
      '                  - name: envoy.filters.http.ext_authz\n',
    );
    const [check = '', more = ''] = after.split('                  - name: envoy.filters.http.rbac\n');
    const text = [
      `${before}                  - name: envoy.filters.http.ext_authz\n${check}`,
      `                  - name: envoy.filters.http.header_mutation\n${mutation}`,
      `                  - name: envoy.filters.http.rbac\n${more}`,
    ].join('');
    expect(rulesIn(text).toSorted()).toEqual([
      'context-headers-kept',
      'filter-behind-check',
      'trailers-kept',
    ]);
  });

  it('may be the connection manager itself', () => {
    const names = [...clean.matchAll(/- remove: (x-proofgate-[a-z-]+)/g)].map(
      ([, name]) => `{ remove: ${name} }`,
    );
    const type =
      'type.googleapis.com/envoy.extensions.http.early_header_mutation.header_mutation.v3.HeaderMutation';
    const early = `early_header_mutation_extensions: [{ name: early, typed_config: { "@type": ${type}, mutations: [${names.join(', ')}] } }]`;
    const without = clean.replaceAll(/ *- remove: x-proofgate-[a-z-]+\n/g, '');
    expect(rulesIn(without)).toEqual(['context-headers-kept']);
    expect(
      rulesIn(exchanged(without, 'stat_prefix: ingress', `stat_prefix: ingress\n                ${early}`)),
    ).toEqual([]);
  });
});

describe('a text', () => {
  it.each([
    ['with carriage returns', (text: string) => text.replaceAll('\n', '\r\n')],
    ['with a byte order mark', (text: string) => `\uFEFF${text}`],
    ['behind another document', (text: string) => `name: something else\n---\n${text}`],
    ['behind an empty document', (text: string) => `---\n---\n${text}`],
    ['in one line of JSON', (text: string) => JSON.stringify(parse(text))],
    ['in a ConfigMap', (text: string) => configMap('|', text)],
    ['in a ConfigMap, with a comment', (text: string) => configMap('|- # the file', text)],
    [
      'in a ConfigMap, quoted',
      (text: string) =>
        stringify(
          { apiVersion: 'v1', kind: 'ConfigMap', data: { 'envoy.yaml': text } },
          { defaultStringType: 'QUOTE_DOUBLE' },
        ),
    ],
  ])('%s', (_what, written) => {
    const open = exchanged(clean, FAILURE, 'failure_mode_allow: true');
    expect(rulesIn(written(clean))).toEqual([]);
    expect(rulesIn(written(open))).toEqual(['fails-open']);
    const lines = written(open).split('\n');
    const [{ line } = { line: 0 }] = found(written(open));
    if (lines.length > 80 && !written(open).includes('envoy.yaml": "'))
      expect(lines[line - 1]).toMatch(/failure_mode_allow: true/);
  });
});

function configMap(header: string, text: string): string {
  const indented = text.replace(/^(?=.)/gm, '    ');
  return `apiVersion: v1\nkind: ConfigMap\ndata:\n  notes.txt: "no YAML: ["\n  envoy.yaml: ${header}\n${indented}`;
}
