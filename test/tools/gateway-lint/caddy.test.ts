/** `caddy lint`: the shipped Caddyfile is clean, as Caddy itself adapts it, and each change that weakens the check is found. */
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { describe, expect, it } from '@jest/globals';
import { lintCaddy } from '../../../src/tools/gateway-lint/caddy/lint-caddy.ts';
import { CADDY_RULES } from '../../../src/tools/gateway-lint/caddy/rules.ts';
import { exchanged } from '../../support/docs/lint-rule-cases.ts';
import { checkoutPath } from '../../support/harness/checkout.ts';

const CADDY = checkoutPath('.cache', 'proxies', 'bin', 'caddy');
const shipped = readFileSync(checkoutPath('deploy', 'caddy', 'Caddyfile'), 'utf8');
const described = existsSync(CADDY) ? describe : describe.skip;

function adapted(caddyfile: string): string {
  const args = ['adapt', '--pretty', '--config', '-', '--adapter', 'caddyfile'];
  return execFileSync(CADDY, args, { input: caddyfile, encoding: 'utf8', stdio: ['pipe', 'pipe', 'ignore'] });
}

/** Rules, and the handlers that they point to. */
function found(caddyfile: string): readonly string[] {
  const text = adapted(caddyfile);
  const report = lintCaddy(text, { allowedRules: [] });
  if (report === undefined) throw new Error('nothing was recognised');
  const lines = text.split('\n');
  for (const { place } of report.findings) expect(lines[place.line - 1]?.[place.column - 1]).toMatch(/["{]/);
  return [...new Set(report.findings.map(({ rule }) => rule))];
}

const CHECK = '		forward_auth unix//run/proofgate/http.sock {\n';
const API = '		reverse_proxy 127.0.0.1:8081 {\n';
const before = (lines: string): readonly [string, string] => [CHECK, `${lines}\n${CHECK}`];
const behind = (lines: string): readonly [string, string] => [API, `${lines}\n${API}`];
/** Routes for an answer of the verifier. */
const onAnswer = (status: string, lines: string): readonly [string, string] => [
  CHECK,
  `${CHECK}@answer status ${status}\nhandle_response @answer {\n${lines}\n}\n`,
];
const TO_API = 'reverse_proxy 127.0.0.1:8081';
const intercepted = (lines: string) => `intercept {\n@e status 5xx\nhandle_response @e {\n${lines}\n}\n}`;
const END = '	}\n}\n';
const atEnd = (text: string, lines: string) => {
  expect(text.endsWith(END)).toBe(true);
  return `${text.slice(0, -2)}${lines}\n}\n`;
};
const IN_ROUTE = /(\troute \{\n[\s\S]*\n\t\}\n)\}/;

described('caddy lint', () => {
  it('finds nothing in deploy/caddy/Caddyfile', () => {
    expect(found(shipped)).toEqual([]);
  });

  it('needs no replaced proofs where the verifier accepts transcripts alone', () => {
    const older = shipped
      .replace('/check/all-proofs', '/check')
      .replace(' Signature Signature-Input DPoP X-', ' X-');
    expect(found(older)).toEqual([]);
  });

  const FAULTS: readonly (readonly [rule: string, edit: readonly [from: string, to: string]])[] = [
    ['change-before-check', before('uri strip_prefix /a')],
    ['change-before-check', before('uri path_regexp ^/a /b')],
    ['change-before-check', before('rewrite /a* /b')],
    ['change-before-check', before('method GET')],
    ['change-before-check', before('request_header X-Tenant shop')],
    ['change-behind-check', behind('uri strip_prefix /a')],
    ['change-behind-check', behind('rewrite /b{uri}')],
    ['change-behind-check', behind('request_header X-Tenant shop')],
    ['change-behind-check', ['header_up Host api.example', 'header_up X-Tenant shop']],
    ['change-behind-check', ['header_up Host api.example', 'rewrite /b']],
    ['upstream-retried', ['				keepalive off\n', '']],
    ['upstream-retried', ['				versions 1.1\n', '']],
    ['upstream-retried', [API, `${API}			lb_retries 1\n`]],
    ['upstream-retried', [API, `${API}			lb_try_duration 1s\n`]],
    ['upstream-retried', [CHECK, `${CHECK}			lb_retries 1\n`]],
    ['checked-twice', before('forward_auth 127.0.0.1:1 {\nuri /check\n}')],
    ['headers-not-replaced', [' X-Proofgate-Subject', '']],
    ['headers-not-replaced', [' Signature Signature-Input DPoP X-', ' Signature DPoP X-']],
    ['headers-not-replaced', [' DPoP X-', ' X-']],
    ['headers-not-replaced', ['		request_header -X-Proofgate-Signature\n', '']],
    ['connection-kept', ['		request_header -Connection\n', '']],
    ['target-spaces', ['		respond @target 400\n', '']],
    [
      'forwarded-headers-trusted',
      ['	servers {\n', '	servers {\n		trusted_proxies static private_ranges\n'],
    ],
    ['route-unchecked', [CHECK, CHECK.replace('unix//', '/v1/* unix//')]],
    ['route-unchecked', onAnswer('4xx', TO_API)],
    ['route-unchecked', onAnswer('4xx', 'vars a b')],
    ['route-unchecked', onAnswer('4xx', '')],
    ['route-unchecked', onAnswer('2xx 403', 'vars a b')],
    ['route-unchecked', onAnswer('4xx', 'respond /closed 403')],
    ['route-unchecked', onAnswer('4xx', 'respond 103')],
    ['route-unchecked', before(intercepted(TO_API))],
    ['route-unchecked', behind(intercepted(TO_API))],
    ['route-unchecked', before(intercepted(intercepted(TO_API)))],
    ['route-unchecked', before('file_server {\npass_thru\n}\nreverse_proxy 127.0.0.1:8081')],
    ['route-unchecked', before('acme_server\nreverse_proxy 127.0.0.1:8081')],
    [
      'route-unchecked',
      ['	respond 421\n}', '	route {\nfile_server {\npass_thru\n}\nreverse_proxy 127.0.0.1:8081\n}\n}'],
    ],
    ['route-unchecked', ['	respond 421\n}', '	route {\nacme_server\nreverse_proxy 127.0.0.1:8081\n}\n}']],
    ['change-before-check', before('request_body {\nset changed\n}')],
    ['change-behind-check', behind('request_body {\nset changed\n}')],
    ['change-behind-check', onAnswer('200', 'rewrite /b')],
    ['change-behind-check', onAnswer('200', 'request_header X-Tenant {http.request.header.X-Other}')],
    ['headers-not-replaced', onAnswer('200', 'vars a b')],
    [
      'upstream-retried',
      [API, `${API}@e status 5xx\nhandle_response @e {\nreverse_proxy 127.0.0.1:8082\n}\n`],
    ],
    ['route-unchecked', [`	route {\n`, `	handle /open/* {\nreverse_proxy 127.0.0.1:8081\n}\n	route {\n`]],
  ];
  it.each(FAULTS)('finds %s: %j', (rule, [from, to]) => {
    expect(found(exchanged(shipped, from, to))).toContain(rule);
  });

  it('finds an API behind an error of the check', () => {
    expect(found(atEnd(shipped, `handle_errors {\n${TO_API}\n}`))).toEqual(['route-unchecked']);
    expect(found(atEnd(shipped, 'handle_errors 5xx {\nrespond "later" 503\n}'))).toEqual([]);
  });

  it('follows a named route', () => {
    const named = (route: string) =>
      exchanged(
        exchanged(shipped, '# Every other host.', `&(named) {\n${route}\n}\n\n# Every other host.`),
        '	respond 421\n}',
        '	invoke named\n}',
      );
    expect(found(named(TO_API))).toEqual(['route-unchecked']);
    expect(found(named(`respond 421`))).toEqual([]);
    const [, route = ''] = IN_ROUTE.exec(shipped) ?? [];
    expect(found(named(route))).toEqual([]);
    expect(found(named(route.replace(' X-Proofgate-Subject', '')))).toEqual(['headers-not-replaced']);
  });

  it.each([
    onAnswer('4xx', 'respond "no" 403'),
    onAnswer('4xx', 'header X-Denied yes\ncopy_response 403'),
    onAnswer('4xx', 'handle /a {\nrespond 403\n}\nhandle {\nerror 404\n}'),
    [CHECK, `${CHECK}@answer status 401\nreplace_status @answer 404\n`] as const,
    before(intercepted('respond 500')),
    behind(intercepted('copy_response')),
    [API, `${API}@e status 404\nhandle_response @e {\nrewrite * /none.html\nfile_server\n}\n`] as const,
  ])('accepts answers to callers: %j to %j', (from, to) => {
    expect(found(exchanged(shipped, from, to))).toEqual([]);
  });

  it.each([
    ['handle', true],
    ['handle_path', false],
  ])('follows %s to the check and the API', (directive, isClean) => {
    const nested = shipped.replace(
      IN_ROUTE,
      (_, route: string) => `\t${directive} /a/* {\n${route}\t}\n\thandle {\n\t\trespond 404\n\t}\n}`,
    );
    expect(nested).not.toBe(shipped);
    expect(found(nested)).toEqual(isClean ? [] : ['change-before-check']);
  });

  it('finds an API beside the check, and not what only answers', () => {
    const handles = (other: string) =>
      shipped.replace(
        IN_ROUTE,
        (_, route: string) => `\thandle /a/* {\n${route}\t}\n\thandle {\n\t\t${other}\n\t}\n}`,
      );
    expect(found(handles('reverse_proxy 127.0.0.1:8081'))).toEqual(['route-unchecked']);
    expect(found(handles('respond "alive" 200'))).toEqual([]);
  });
});

it('finds a cache behind the check, which is a plugin', () => {
  const handle = [
    {
      handler: 'reverse_proxy',
      rewrite: { uri: '/check' },
      handle_response: [{ match: { status_code: [2] } }],
    },
    { handler: 'cache' },
    { handler: 'reverse_proxy' },
  ];
  const text = JSON.stringify({ apps: { http: { servers: { a: { routes: [{ handle }] } } } } });
  expect(lintCaddy(text, { allowedRules: [] })?.findings.map(({ rule }) => rule)).toContain('answer-cached');
});

describe('handlers that are not known', () => {
  const inServer = (server: object) => {
    const text = JSON.stringify({ apps: { http: { servers: { a: server } } } });
    return lintCaddy(text, { allowedRules: [] })?.findings.map(({ rule }) => rule);
  };
  const respond = { handler: 'static_response' };

  it('are findings, such as those with routes of their own', () => {
    const routes = [{ handle: [{ handler: 'reverse_proxy' }] }];
    expect(inServer({ routes: [{ handle: [{ handler: 'plugin', routes }, respond] }] })).toEqual([
      'handler-unknown',
    ]);
    const invoke = { handle: [{ handler: 'invoke', name: 'a' }] };
    expect(inServer({ routes: [invoke] })).toEqual(['handler-unknown']);
    expect(inServer({ routes: [invoke], named_routes: { a: invoke } })).toEqual(['handler-unknown']);
  });

  it('are what more branches lead to than are read', () => {
    const match = [{ path: ['/a'] }];
    const check = {
      handler: 'reverse_proxy',
      rewrite: { uri: '/check' },
      handle_response: [{ match: { status_code: [2] } }],
    };
    const many = Array.from({ length: 12 }, () => ({ match, handle: [check] }));
    expect(inServer({ routes: [...many, { handle: [{ handler: 'reverse_proxy' }] }] })).toEqual([
      'handler-unknown',
    ]);
  });

  it('are not the routes for errors of a subroute, which are read', () => {
    const errors = { routes: [{ handle: [{ handler: 'reverse_proxy' }] }] };
    expect(
      inServer({ routes: [{ handle: [{ handler: 'subroute', routes: [], errors }, respond] }] }),
    ).toEqual(['route-unchecked']);
  });
});

it('recognises nothing elsewhere', () => {
  expect(lintCaddy('{"apps":{}}', { allowedRules: [] })).toBeUndefined();
  expect(CADDY_RULES.map(({ id }) => id)).toHaveLength(new Set(CADDY_RULES.map(({ id }) => id)).size);
});
