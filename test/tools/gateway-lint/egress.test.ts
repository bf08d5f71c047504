/** Checks that envoy/egress.yaml is clean for an egress Envoy, and that each rule finds its fault in it. */
import { readFileSync } from 'node:fs';
import { expect, it } from '@jest/globals';
import { EGRESS_RULES } from '../../../src/tools/gateway-lint/egress/egress-rules.ts';
import { lintEgress } from '../../../src/tools/gateway-lint/egress/lint-egress.ts';
import { exchanged } from '../../support/docs/lint-rule-cases.ts';

const textOf = (file: string) => readFileSync(new URL(`../../../${file}`, import.meta.url), 'utf8');
const shipped = textOf('envoy/egress.yaml');
const istio = textOf('envoy/istio/egress.yaml');

/** Each finding: its rule, and the line that it points to. */
function found(text: string): readonly string[] {
  const lines = text.split('\n');
  const report = lintEgress(text, { allowedRules: [] });
  if (report === undefined) throw new Error('nothing was recognised');
  return report.findings.map(({ place, rule }) => `${rule} ${lines[place.line - 1]?.trim()}`);
}

it.each([
  ['envoy/egress.yaml', shipped],
  ['envoy/istio/egress.yaml', istio],
])('finds nothing in %s', (_file, text) => {
  expect(found(text)).toEqual([]);
});

const ROUTE = 'route: { cluster: api, timeout: 60s }';
const ROUTER = '                  - name: envoy.filters.http.router\n';
const route = (member: string) => [ROUTE, `route: { cluster: api, ${member} }`] as const;
const filterBehind = (name: string) =>
  [ROUTER, `                  - name: envoy.filters.http.${name}\n${ROUTER}`] as const;
const TLS = / {6}# WHY: passport and proof go to[\s\S]*?(?= {6}# HTTP\/2 where)/.exec(shipped)?.[0] ?? '';

const FAULTS: readonly (readonly [finding: string, from: string, to: string])[] = [
  ['fails-open failure_mode_allow: true', 'failure_mode_allow: false', 'failure_mode_allow: true'],
  ['signature-dropped validate_mutations: false', 'validate_mutations: true', 'validate_mutations: false'],
  [
    'signature-dropped decoder_header_mutation_rules: { disallow_all: true }',
    'validate_mutations: true\n',
    'validate_mutations: true\n                      decoder_header_mutation_rules: { disallow_all: true }\n',
  ],
  ['body-not-signed pack_as_bytes: false', 'pack_as_bytes: true', 'pack_as_bytes: false'],
  [
    'body-not-signed allow_partial_message: true',
    'allow_partial_message: false',
    'allow_partial_message: true',
  ],
  ['headers-not-signed encode_raw_headers: false', 'encode_raw_headers: true', 'encode_raw_headers: false'],
  ['changed-after-signing - name: envoy.filters.http.lua', ...filterBehind('lua')],
  ['changed-after-signing - name: envoy.filters.http.header_mutation', ...filterBehind('header_mutation')],
  ['changed-after-signing route: { cluster: api, prefix_rewrite: /v2 }', ...route('prefix_rewrite: /v2')],
  [
    'changed-after-signing route: { cluster: api, host_rewrite_literal: api.example }',
    ...route('host_rewrite_literal: api.example'),
  ],
  [
    'changed-after-signing request_headers_to_remove: [x-tenant]',
    '                      domains: [api.shop.example]\n',
    '                      domains: [api.shop.example]\n                      request_headers_to_remove: [x-tenant]\n',
  ],
  ['changed-after-signing clear_route_cache: true', 'clear_route_cache: false', 'clear_route_cache: true'],
  [
    'sent-twice route: { cluster: api, retry_policy: { retry_on: 5xx } }',
    ...route('retry_policy: { retry_on: 5xx }'),
  ],
  [
    'sent-twice route: { cluster: api, hedge_policy: { hedge_on_per_try_timeout: true } }',
    ...route('hedge_policy: { hedge_on_per_try_timeout: true }'),
  ],
  [
    'mirrored route: { cluster: api, request_mirror_policies: [{ cluster: other }] }',
    ...route('request_mirror_policies: [{ cluster: other }]'),
  ],
  ['target-chosen type: ORIGINAL_DST', 'type: STRICT_DNS', 'type: ORIGINAL_DST'],
  [
    'target-chosen route: { cluster_header: x-to, timeout: 60s }',
    ROUTE,
    'route: { cluster_header: x-to, timeout: 60s }',
  ],
  ['upstream-plaintext load_assignment:', TLS, ''],
  [
    'upstream-unverified common_tls_context:',
    '              match_typed_subject_alt_names:\n                - { san_type: DNS, matcher: { exact: api.shop.example } }\n',
    '',
  ],
  [
    'signer-shared load_assignment:',
    'pipe: { path: /run/proofgate/signer.sock }',
    'socket_address: { address: 10.0.0.7, port_value: 9191 }',
  ],
  [
    'egress-exposed address:',
    'socket_address: { address: 127.0.0.1, port_value: 10001 }',
    'socket_address: { address: 0.0.0.0, port_value: 10001 }',
  ],
  [
    'upgrades-allowed - upgrade_type: websocket',
    '                stat_prefix: egress\n',
    '                stat_prefix: egress\n                upgrade_configs:\n                  - upgrade_type: websocket\n',
  ],
  [
    'admin-exposed address:',
    'socket_address: { address: 127.0.0.1, port_value: 9902 }',
    'socket_address: { address: 0.0.0.0, port_value: 9902 }',
  ],
  ['credentials-logged host: "%REQ(AUTHORIZATION)%"', '%REQ(:AUTHORITY)%', '%REQ(AUTHORIZATION)%'],
  [
    'not-signed disabled: true',
    '                  - name: envoy.filters.http.ext_authz\n',
    '                  - name: envoy.filters.http.ext_authz\n                    disabled: true\n',
  ],
  [
    'not-in-file envoy_grpc: { cluster_name: elsewhere }',
    'cluster_name: signer }',
    'cluster_name: elsewhere }',
  ],
];

it.each(FAULTS)('finds %s', (finding, from, to) => {
  expect(found(exchanged(shipped, from, to))).toContain(finding);
});

const ISTIO_ROUTE = '    - route: [{ destination: { host: api.shop.example, port: { number: 80 } } }]\n';
const patch = (operation: string, value: string) =>
  `    - applyTo: HTTP_FILTER\n      match: { context: SIDECAR_OUTBOUND }\n      patch:\n        operation: ${operation}\n        value: ${value}\n`;
const lua =
  '{ name: lua, typed_config: { "@type": type.googleapis.com/envoy.extensions.filters.http.lua.v3.Lua } }';
const SIGNER_PATCH = '    - applyTo: HTTP_FILTER\n';
const HOST_PATCH = '    - applyTo: VIRTUAL_HOST\n';

const ISTIO_FAULTS: readonly (readonly [finding: string, from: string, to: string])[] = [
  ['sent-twice - route: [{', '      retries: { attempts: 0 }\n', ''],
  ['sent-twice retries: { attempts: 2 }', 'retries: { attempts: 0 }', 'retries: { attempts: 2 }'],
  ['mirrored mirror: { host: other }', ISTIO_ROUTE, `${ISTIO_ROUTE}      mirror: { host: other }\n`],
  ['changed-after-signing rewrite: { uri: / }', ISTIO_ROUTE, `${ISTIO_ROUTE}      rewrite: { uri: / }\n`],
  [
    'changed-after-signing headers: { request: { remove: [x-tenant] } }',
    ISTIO_ROUTE,
    `${ISTIO_ROUTE}      headers: { request: { remove: [x-tenant] } }\n`,
  ],
  [`changed-after-signing value: ${lua}`, HOST_PATCH, `${patch('INSERT_BEFORE', lua)}${HOST_PATCH}`],
  ['fails-open failure_mode_allow: true', 'failure_mode_allow: false', 'failure_mode_allow: true'],
  ['headers-not-signed encode_raw_headers: false', 'encode_raw_headers: true', 'encode_raw_headers: false'],
  ['upstream-unverified tls: {', ', subjectAltNames: [api.shop.example]', ''],
  ['upstream-plaintext tls: {', 'mode: SIMPLE, ', 'mode: DISABLE, '],
  ['upstream-plaintext routeConfiguration: {', '  host: api.shop.example\n', '  host: www.shop.example\n'],
  [
    'signer-shared load_assignment:',
    'pipe: { path: /run/proofgate/signer.sock }',
    'socket_address: { address: 10.0.0.7, port_value: 9191 }',
  ],
  ['not-signed disabled: true', '              check_settings: {}\n', '              disabled: true\n'],
  ['not-signed disabled: true', 'name: "api.shop.example:80"', 'name: api.shop.example'],
  ['unsigned-allowed header:', String.raw`(?i)api\.shop\.example`, String.raw`(?i)www\.shop\.example`],
  [
    'unsigned-allowed header:',
    'name: ":authority"\n',
    'name: ":authority"\n                          invert_match: true\n',
  ],
  ['not-signed disabled: true', istio.slice(istio.indexOf(HOST_PATCH)), ''],
];

it.each(ISTIO_FAULTS)('finds with Istio: %s', (finding, from, to) => {
  expect(found(exchanged(istio, from, to)).join('\n')).toContain(finding);
});

const dump = textOf('test/gateways/dumps/egress-istio.json');
const [ALLOWED_NAME = ''] = /"match_subject_alt_names": \[\s*\{\s*"exact"/.exec(dump) ?? [];

it.each([
  ['sent-twice', '"timeout": "60s"', '"timeout": "60s", "retry_policy": {}'],
  ['mirrored', '"timeout": "60s"', '"timeout": "60s", "request_mirror_policies": [{ "cluster": "other" }]'],
  ['target-chosen', '"type": "STRICT_DNS"', '"type": "ORIGINAL_DST"'],
  ['upstream-unverified', ALLOWED_NAME, ALLOWED_NAME.replace('match_subject_alt_names', 'other')],
  ['upgrades-allowed', '"name": "upgrade"', '"name": "other"'],
  ['not-signed', '"proofgate.signer": {', '"proofgate.other": {'],
  [
    'signer-shared',
    '"pipe": {',
    '"socket_address": { "address": "10.0.0.7", "port_value": 9191 }, "other": {',
  ],
])("finds %s in a sidecar's config_dump, and leaves the rest of it alone", (rule, from, to) => {
  const [finding = '', ...others] = found(exchanged(dump, from, to));
  expect([finding.split(' ', 1), others]).toEqual([[rule], []]);
});

it("finds another host in the filter of a sidecar's config_dump that requires a signature", () => {
  const other = exchanged(dump, String.raw`(?i)api\\.shop\\.example`, '(?i)unrelated');
  const rules = found(other).map((finding) => finding.split(' ', 1)[0]);
  expect(rules).toEqual(['unsigned-allowed', 'upgrades-allowed']);
});

it('lets an EnvoyFilter change requests in front of the signer', () => {
  const [before = '', ...rest] = istio.split(SIGNER_PATCH);
  for (const operation of ['INSERT_FIRST', 'INSERT_BEFORE'])
    expect(found([`${before}${patch(operation, lua)}`, ...rest].join(SIGNER_PATCH))).toEqual([]);
});

it('finds nothing that signs', () => {
  const [, service = ''] = /(apiVersion: \S+\nkind: VirtualService\n[\s\S]*?)---\n/.exec(istio) ?? [];
  expect(found(service)).toEqual([expect.stringMatching(/^nothing-signed /)]);
});

it('has a fault for each rule, and one line for effect and fix', () => {
  const faults = [...FAULTS, ...ISTIO_FAULTS].map(([finding]) => finding.split(' ', 1)[0]);
  const rules = new Set([...faults, 'nothing-signed']);
  expect(rules).toEqual(new Set(EGRESS_RULES.map(({ id }) => id)));
  for (const { effect, fix } of EGRESS_RULES)
    for (const text of [effect, fix]) expect(text).toMatch(/^\S.*[^.\s]$/);
});
