/** `traefik lint`: the shipped files are clean, and each change that weakens the check is found, at its place, and nothing else. */
import { readFileSync } from 'node:fs';
import { describe, expect, it } from '@jest/globals';
import { lintTraefik } from '../../../src/tools/gateway-lint/traefik/lint-traefik.ts';
import { TRAEFIK_RULES } from '../../../src/tools/gateway-lint/traefik/rules.ts';
import { exchanged } from '../../support/docs/lint-rule-cases.ts';

const shippedFile = (name: string) =>
  readFileSync(new URL(`../../../deploy/traefik/${name}`, import.meta.url), 'utf8');
const install = shippedFile('traefik.yaml');
const routing = shippedFile('proofgate.yaml');
const shipped = install + routing;

/** Rule and text of the line, such as `aliases-kept web:`. */
function found(text: string, allowedRules: readonly string[] = []): readonly string[] {
  const report = lintTraefik(text, { allowedRules });
  if (report === undefined) throw new Error('nothing was recognised');
  const lines = text.split('\n');
  return report.findings.map(({ place, rule }) => `${rule} ${lines[place.line - 1]?.trim()}`);
}

const PATTERN = '(?i)^(authorization|signature|signature-input|dpop|x[^a-z0-9]proofgate[^a-z0-9].*)$';
const RULE = 'rule: Host(`api.shop.example`) && Header(`X-Forwarded-Host`, `api.shop.example`)';
const CHECK = 'forwardAuth:';
const CHAIN = '[proofgate-visible-target, proofgate-no-upgrade, proofgate-check, proofgate-responses]';
/** A middleware of the routing configuration, behind the check. */
const behind = (settings: string): readonly [string, string][] => [
  [CHAIN, '[proofgate-visible-target, proofgate-no-upgrade, proofgate-check, more, proofgate-responses]'],
  ['    proofgate-responses:\n', `    more:\n      ${settings}\n    proofgate-responses:\n`],
];

/** A middleware of the routing configuration, in front of the check. */
const before = (settings: string): readonly [string, string][] => [
  [CHAIN, '[proofgate-visible-target, proofgate-no-upgrade, more, proofgate-check, proofgate-responses]'],
  ['    proofgate-responses:\n', `    more:\n      ${settings}\n    proofgate-responses:\n`],
];

it.each([
  'stripPrefix: { prefixes: [/a] }',
  'stripPrefixRegex: { regex: [/a] }',
  'replacePath: { path: /a }',
  'replacePathRegex: { regex: ^/a, replacement: /b }',
  'addPrefix: { prefix: /a }',
  'headers: { customRequestHeaders: { X-Tenant: shop } }',
])('finds %s before the check, where one proof would do for two services', (settings) => {
  const text = before(settings).reduce((text, [from, to]) => exchanged(text, from, to), shipped);
  expect(found(text)).toEqual(['change-before-check api:']);
});

it('finds nothing where a header is only removed before the check', () => {
  const settings = 'headers: { customRequestHeaders: { X-Tenant: "" } }';
  expect(found(before(settings).reduce((text, [from, to]) => exchanged(text, from, to), shipped))).toEqual(
    [],
  );
});

it('finds nothing in deploy/traefik/, joined, apart, nor with its optional blocks', () => {
  expect(found(shipped)).toEqual([]);
  expect(found(`${install}---\n${routing}`)).toEqual([]);
  expect(found(install)).toEqual([]);
  const tls = shipped.replaceAll(/#[|+] /g, '').replace('http://127.0.0.1:9193', 'https://10.0.0.7:9193');
  expect(found(tls)).toEqual([]);
});

it('finds routers without the check in the routing configuration alone', () => {
  expect(found(routing)).toEqual(['route-unchecked api:']);
});

describe('finds', () => {
  it.each<[expected: string, changes: readonly (readonly [from: string, to: string])[]]>([
    [
      'forward-header-trusted trustForwardHeader: true',
      [['trustForwardHeader: false', 'trustForwardHeader: true']],
    ],
    [`forward-header-trusted ${CHECK}`, [['        trustForwardHeader: false\n', '']]],
    [
      'headers-hidden authRequestHeaders: [Authorization]',
      [
        [
          '        forwardBody: true',
          '        authRequestHeaders: [Authorization]\n        forwardBody: true',
        ],
      ],
    ],
    [`answer-not-copied ${CHECK}`, [[`        authResponseHeadersRegex: ${PATTERN}\n`, '']]],
    ['answer-not-copied authResponseHeadersRegex: ^X-Proofgate-', [[PATTERN, '^X-Proofgate-']]],
    ['answer-not-copied authResponseHeadersRegex: (', [[PATTERN, '(']]],
    [`answer-not-copied authResponseHeadersRegex: ${PATTERN.replace('|dpop', '')}`, [['|dpop', '']]],
    ['body-not-forwarded forwardBody: false', [['forwardBody: true', 'forwardBody: false']]],
    [`body-unlimited ${CHECK}`, [['        maxBodySize: 1048576\n', '']]],
    ['body-unlimited maxBodySize: -1', [['maxBodySize: 1048576', 'maxBodySize: -1']]],
    [
      'verifier-plaintext address: http://10.0.0.7:9193/check/all-proofs',
      [['http://127.0.0.1:9193', 'http://10.0.0.7:9193']],
    ],
    [
      'verifier-plaintext address: http://127.0.0.1.evil.example/check/all-proofs',
      [['http://127.0.0.1:9193', 'http://127.0.0.1.evil.example']],
    ],
    [
      'verifier-plaintext address: https://10.0.0.7:9193/check/all-proofs',
      [
        ['http://127.0.0.1:9193', 'https://10.0.0.7:9193'],
        ['        maxBodySize:', '        tls: { insecureSkipVerify: true }\n        maxBodySize:'],
      ],
    ],
    ['forwarded-headers-insecure insecure: true', [['insecure: false', 'insecure: true']]],
    ['forwarded-headers-insecure Insecure: yes', [['insecure: false', 'Insecure: yes']]],
    [
      'forwarded-headers-insecure trustedIPs: [10.0.0.0/8, 0.0.0.0/0]',
      [['trustedIPs: []', 'trustedIPs: [10.0.0.0/8, 0.0.0.0/0]']],
    ],
    [
      'tcp-router all: { rule: HostSNI(`*`), service: api }',
      [
        [
          'http:\n  routers:\n',
          'tcp:\n  routers:\n    all: { rule: HostSNI(`*`), service: api }\nhttp:\n  routers:\n',
        ],
      ],
    ],
    [
      'checked-twice api:',
      [['      service: api\n', '      middlewares: [proofgate-check]\n      service: api\n']],
    ],
    ['aliases-kept web:', [['      aliasHeadersStrategy: reject\n', '']]],
    [
      'aliases-kept aliasHeadersStrategy: keep',
      [['aliasHeadersStrategy: reject', 'aliasHeadersStrategy: keep']],
    ],
    ['escaped-slashes encodedCharacters:', [['        allowEncodedSlash: false\n', '']]],
    ['path-not-normalized sanitizePath: false', [['sanitizePath: true', 'sanitizePath: false']]],
    [
      'credentials-logged headers: { names: { Authorization: keep } }',
      [['    queryParameters:', '    headers: { names: { Authorization: keep } }\n    queryParameters:']],
    ],
    [
      'credentials-logged headers: { defaultMode: keep }',
      [['    queryParameters:', '    headers: { defaultMode: keep }\n    queryParameters:']],
    ],
    ['route-unchecked api:', [['      middlewares: [proofgate@file]\n', '']]],
    ['route-unchecked api:', [['      entryPoints: [web]\n', '      entryPoints: [web, other]\n']]],
    [
      'route-unchecked api:',
      [[CHAIN, '[proofgate-visible-target, proofgate-no-upgrade, proofgate, proofgate-responses]']],
    ],
    ['change-behind-check api:', behind('stripPrefix: { prefixes: [/v1] }')],
    ['change-behind-check api:', behind('replacePathRegex: { regex: a, replacement: b }')],
    [
      'change-behind-check api:',
      behind('headers: { customRequestHeaders: { Upgrade: "", X-Proofgate-Subject: root } }'),
    ],
    ['change-behind-check api:', behind('retry: { attempts: 2 }')],
    [
      'change-behind-check api:',
      [
        ['      service: api\n', '      middlewares: [prefix]\n      service: api\n'],
        [
          '    proofgate-responses:\n',
          '    prefix:\n      addPrefix: { prefix: /v2 }\n    proofgate-responses:\n',
        ],
      ],
    ],
    ['upgrades-allowed api:', [[CHAIN, '[proofgate-visible-target, proofgate-check, proofgate-responses]']]],
    ['host-open api:', [[RULE, 'rule: Host(`api.shop.example`)']]],
    ['target-spaces api:', [[CHAIN, '[proofgate-no-upgrade, proofgate-check, proofgate-responses]']]],
    [
      'target-spaces api:',
      [[CHAIN, '[proofgate-no-upgrade, proofgate-check, proofgate-visible-target, proofgate-responses]']],
    ],
    ['target-spaces api:', [['regex: (?s)^.*[^!-~].*$', 'regex: "^.*[^!-~]$"']]],
    ['target-spaces api:', [['regex: (?s)^.*[^!-~].*$', 'regex: "^.*$"']]],
    ['upstream-retried api:', [['        serversTransport: deliver-once\n', '']]],
    ['upstream-retried api:', [['      maxIdleConnsPerHost: -1\n', '']]],
    ['upstream-retried api:', [['maxIdleConnsPerHost: -1', 'maxIdleConnsPerHost: 1']]],
    [
      'upstream-retried api:',
      [
        ['      disableHTTP2: true\n', ''],
        ['http://127.0.0.1:8081', 'https://127.0.0.1:8081'],
      ],
    ],
    ['upstream-retried service: api@docker', [['      service: api\n', '      service: api@docker\n']]],
    [
      'upstream-retried errors: { status: ["500"] }',
      [
        ['      service: api\n', '      service: both\n'],
        [
          '  services:\n',
          '  services:\n    both:\n      failover:\n        service: api\n        fallback: api\n        errors: { status: ["500"] }\n',
        ],
      ],
    ],
    [
      'mirrored mirroring:',
      [
        ['      service: api\n', '      service: both\n'],
        [
          '  services:\n',
          '  services:\n    both:\n      mirroring:\n        service: api\n        mirrors: [{ name: other, percent: 10 }]\n',
        ],
      ],
    ],
    ['host-open api:', [[RULE, 'rule: PathPrefix(`/`) || Header(`X-Forwarded-Host`, `api.shop.example`)']]],
    ['host-open api:', [[RULE, 'rule: "!Header(`X-Forwarded-Host`, `api.shop.example`)"']]],
  ])('%s', (expected, changes) => {
    const text = changes.reduce((so, [from, to]) => exchanged(so, from, to), shipped);
    expect(found(text)).toEqual([expected]);
    expect(found(text, [expected.split(' ')[0] ?? ''])).toEqual([]);
  });
});

it('reads a Middleware of Kubernetes', () => {
  const manifest = `kind: Middleware\nspec:\n  forwardAuth:\n    address: http://verifier.proofgate.svc/check\n    authResponseHeadersRegex: ${PATTERN}\n    trustForwardHeader: false\n    forwardBody: true\n    maxBodySize: 1048576\n`;
  expect(found(manifest)).toEqual(['verifier-plaintext address: http://verifier.proofgate.svc/check']);
});

it('reads a ServersTransport of Kubernetes', () => {
  const manifest = (spec: string) => `kind: ServersTransport\nmetadata: { name: once }\nspec: ${spec}\n`;
  expect(found(manifest('{ maxIdleConnsPerHost: -1, disableHTTP2: true }'))).toEqual([]);
  expect(found(manifest('{ maxIdleConnsPerHost: -1 }'))).toEqual([
    'upstream-retried spec: { maxIdleConnsPerHost: -1 }',
  ]);
});

it('follows weighted services, and accepts the transport of the install configuration for an API in plain text', () => {
  const weighted = exchanged(
    exchanged(shipped, '      service: api\n', '      service: all@file\n'),
    '  services:\n',
    '  services:\n    all: { weighted: { services: [{ name: api, weight: 1 }] } }\n',
  );
  expect(found(weighted)).toEqual([]);
  const usual = exchanged(shipped, '        serversTransport: deliver-once\n', '');
  expect(found(`serversTransport: { maxIdleConnsPerHost: -1 }\n${usual}`)).toEqual([]);
});

it('finds a router of another entry point, but not one of Traefik itself', () => {
  const second = exchanged(
    shipped,
    '    api:\n      # WHY',
    '    public:\n      rule: PathPrefix(`/`)\n      entryPoints: [public]\n      service: api\n    ping:\n      rule: PathPrefix(`/ping`)\n      entryPoints: [public]\n      service: ping@internal\n    api:\n      # WHY',
  );
  expect(found(second)).toEqual(['route-unchecked public:']);
  const allowed = exchanged(second, '    public:\n', '    public: # proofgate: allow route-unchecked\n');
  expect(found(allowed)).toEqual([]);
});

it('recognises no other file, and no file twice around in a circle', () => {
  expect(lintTraefik('kind: Service\nspec: {}\n', { allowedRules: [] })).toBeUndefined();
  const circle = exchanged(shipped, CHAIN, '[proofgate]');
  expect(found(circle)).toEqual(['route-unchecked api:']);
});

it('has a case for every rule', () => {
  const ids = TRAEFIK_RULES.map(({ id }) => id);
  const source = readFileSync(new URL('traefik.test.ts', import.meta.url), 'utf8');
  expect(ids.filter((id) => !source.includes(`'${id} `) && !source.includes(`\`${id} `))).toEqual([]);
  expect(new Set(ids).size).toBe(ids.length);
});
