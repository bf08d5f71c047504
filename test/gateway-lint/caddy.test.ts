/** `caddy lint`: the shipped Caddyfile is clean, as Caddy itself adapts it, and each change that weakens the check is found. */
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { describe, expect, it } from '@jest/globals';
import { lintCaddy } from '../../src/gateway-lint/caddy/lint-caddy.ts';
import { CADDY_RULES } from '../../src/gateway-lint/caddy/rules.ts';
import { checkoutPath } from '../e2e/harness/checkout.ts';
import { exchanged } from './rule-cases.ts';

const CADDY = checkoutPath('.cache', 'proxies', 'bin', 'caddy');
const shipped = readFileSync(checkoutPath('caddy', 'Caddyfile'), 'utf8');
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
const IN_ROUTE = /(\troute \{\n[\s\S]*\n\t\}\n)\}/;

described('caddy lint', () => {
  it('finds nothing in caddy/Caddyfile', () => {
    expect(found(shipped)).toEqual([]);
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
    ['headers-not-replaced', ['		request_header -X-Proofgate-Signature\n', '']],
    ['connection-kept', ['		request_header -Connection\n', '']],
    ['target-spaces', ['		respond @target 400\n', '']],
    [
      'forwarded-headers-trusted',
      ['	servers {\n', '	servers {\n		trusted_proxies static private_ranges\n'],
    ],
    ['route-unchecked', [CHECK, CHECK.replace('unix//', '/v1/* unix//')]],
    ['route-unchecked', [`	route {\n`, `	handle /open/* {\nreverse_proxy 127.0.0.1:8081\n}\n	route {\n`]],
  ];
  it.each(FAULTS)('finds %s: %j', (rule, [from, to]) => {
    expect(found(exchanged(shipped, from, to))).toContain(rule);
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

it('recognises nothing elsewhere', () => {
  expect(lintCaddy('{"apps":{}}', { allowedRules: [] })).toBeUndefined();
  expect(CADDY_RULES.map(({ id }) => id)).toHaveLength(new Set(CADDY_RULES.map(({ id }) => id)).size);
});
