/** Checks that the shipped nginx configuration is clean, that each rule finds its fault in it, and how files are read. */
import { readFileSync } from 'node:fs';
import { describe, expect, it } from '@jest/globals';
import { UnreadableText } from '../../../src/tools/gateway-lint/gateway/source-file.ts';
import { everyDirective, readNginx } from '../../../src/tools/gateway-lint/nginx/configuration.ts';
import { lintNginx } from '../../../src/tools/gateway-lint/nginx/lint-nginx.ts';
import { NGINX_RULES } from '../../../src/tools/gateway-lint/nginx/rules.ts';
import { exchanged } from '../../support/docs/lint-rule-cases.ts';

const shipped = readFileSync(new URL('../../../deploy/nginx/nginx.conf', import.meta.url), 'utf8');

/** Each finding: its rule, and the line that it points to. */
function found(text: string): readonly string[] {
  const lines = text.split('\n');
  const report = lintNginx(text, { allowedRules: [] });
  if (report === undefined) throw new Error('nothing was recognised');
  return report.findings.map(
    ({ place, rule }) => `${rule} ${lines[place.line - 1]?.trim().replace(/ *[{;].*/, '')}`,
  );
}

it('finds nothing in deploy/nginx/nginx.conf, nor with TLS', () => {
  expect(found(shipped)).toEqual([]);
  expect(found(shipped.replaceAll('#| ', ''))).toEqual([]);
  expect(lintNginx(shipped, { allowedRules: [] })?.allowed).toBe(1);
});

it('needs no replaced proofs where the verifier accepts transcripts alone', () => {
  const older = shipped
    .replace('/check/all-proofs;', '/check;')
    .replaceAll(/ +proxy_set_header (?:Signature|Signature-Input|DPoP) .+\n/g, '');
  expect(older.length).toBeLessThan(shipped.length - 100);
  expect(found(older)).toEqual([]);
});

const CHECKED = '            auth_request /proofgate-check;\n';
const added = (line: string) => [CHECKED, `${CHECKED}            ${line}\n`] as const;

const inServer = (line: string) =>
  ['        server_name api.example;\n', `        server_name api.example;\n        ${line}\n`] as const;

const inHttp = (line: string) => ['http {\n', `http {\n    ${line}\n`] as const;

const FAULTS: readonly (readonly [finding: string, edit: readonly [from: string, to: string]])[] = [
  ['satisfy-any satisfy any', added('satisfy any;')],
  [
    'satisfy-any satisfy any',
    ['        server_name api.example;\n', '        server_name api.example;\n        satisfy any;\n'],
  ],
  ['target-rewritten rewrite ^/a(.*) /b$1 break', added('rewrite ^/a(.*) /b$1 break;')],
  ['target-rewritten if ($arg_a)', added('if ($arg_a) { rewrite ^ /b break; }')],
  ['target-rewritten if ($http_x_a)', inServer('if ($http_x_a) { rewrite ^ /admin break; }')],
  ['answers-before-check if ($http_x_a)', inServer('if ($http_x_a) { return 200 ok; }')],
  ['proxy-pass-uri if ($http_x_a)', added('if ($http_x_a) { proxy_pass http://api/admin; }')],
  [
    'location-unchecked location /open',
    inServer('location /open { if ($http_x_a) { proxy_pass http://api; } }'),
  ],
  [
    'location-unchecked location /open',
    inServer('location /open { limit_except GET { proxy_pass http://api; } }'),
  ],
  ['error-page-forwards if ($http_x_a)', added('if ($http_x_a) { error_page 403 = /healthz; }')],
  [
    'headers-not-replaced location /',
    [
      'proxy_set_header X-Proofgate-Subject $proofgate_subject;',
      'set $mine $http_x_subject; proxy_set_header X-Proofgate-Subject $mine;',
    ],
  ],
  [
    'headers-not-replaced location /',
    ['$proofgate_subject $upstream_http_x_proofgate_subject;', '$proofgate_subject $http_x_subject;'],
  ],
  ['not-in-file include snippets/api.conf', added('include snippets/api.conf;')],
  ['not-in-file include snippets/api.conf', inServer('include snippets/api.conf;')],
  ['target-rewritten try_files $uri @api', added('try_files $uri @api;')],
  [
    'target-rewritten rewrite ^ /v1',
    ['        server_name api.example;\n', '        server_name api.example;\n        rewrite ^ /v1;\n'],
  ],
  [
    'proxy-pass-uri proxy_pass http://api/',
    ['            proxy_pass http://api;', '            proxy_pass http://api/;'],
  ],
  [
    'proxy-pass-uri proxy_pass http://api/v2',
    ['            proxy_pass http://api;', '            proxy_pass http://api/v2;'],
  ],
  [
    'proxy-pass-uri proxy_pass http://api$uri',
    ['            proxy_pass http://api;', '            proxy_pass http://api$uri;'],
  ],
  [
    'proxy-pass-uri proxy_pass http://api?a=b',
    ['            proxy_pass http://api;', '            proxy_pass http://api?a=b;'],
  ],
  [
    'proxy-pass-uri proxy_pass http://unix:/run/api.sock:/',
    ['            proxy_pass http://api;', '            proxy_pass http://unix:/run/api.sock:/;'],
  ],
  [
    'error-page-forwards error_page 403 = /healthz',
    ['error_page 403 = @proofgate_403;', 'error_page 403 = /healthz;'],
  ],
  ['answer-cached proxy_cache api', added('proxy_cache api;')],
  ['answer-cached proxy_store on', added('proxy_store on;')],
  [
    'answer-cached proxy_cache api',
    ['        proxy_http_version 1.1;\n', '        proxy_http_version 1.1;\n        proxy_cache api;\n'],
  ],
  ['answers-before-check return 200 ok', added('return 200 ok;')],
  [
    'answers-before-check return 302 /other',
    added('if ($arg_a) {\n                return 302 /other;\n            }'),
  ],
  ['headers-not-replaced location /', ['            proxy_set_header X-Proofgate-Passport "";\n', '']],
  ['headers-not-replaced location /', ['            proxy_set_header DPoP $proofgate_dpop;\n', '']],
  [
    'headers-not-replaced location /',
    ['proxy_set_header Signature $proofgate_signature;', 'proxy_set_header Signature $http_signature;'],
  ],
  [
    'headers-not-replaced location /',
    [
      'proxy_set_header Authorization $proofgate_authorization;',
      'proxy_set_header Authorization $http_authorization;',
    ],
  ],
  [
    'headers-not-replaced location /',
    ['proxy_set_header X-Proofgate-Passport "";', 'proxy_set_header X-Proofgate-Passport "a$http_x_b";'],
  ],
  ['accel-redirect location /', ['            proxy_ignore_headers X-Accel-Redirect;\n', '']],
  [
    'upstream-retried location /',
    [
      '            proxy_pass http://api;\n            # WHY: after the check, one proof must not reach the API twice.\n            proxy_next_upstream off;\n',
      '            proxy_pass http://api;\n',
    ],
  ],
  [
    'upstream-retried location /',
    [
      'one proof must not reach the API twice.\n            proxy_next_upstream off;',
      'one proof must not reach the API twice.\n            proxy_next_upstream error timeout;',
    ],
  ],
  [
    'upstream-retried location /rpc',
    added('}\n location /rpc { grpc_pass grpc://api; auth_request /proofgate-check;'),
  ],
  ['request-changed proxy_method GET', added('proxy_method GET;')],
  ['request-changed proxy_method $arg_method', inServer('proxy_method $arg_method;')],
  ['request-changed proxy_set_body $arg_body', added('proxy_set_body $arg_body;')],
  ['request-changed proxy_method POST', inHttp('proxy_method POST;')],
  ['mirrored post_action /copy', added('post_action /copy;')],
  ['mirrored post_action /copy', inHttp('post_action /copy;')],
  ['mirrored if ($http_x_a)', added('if ($http_x_a) { post_action /copy; }')],
  ['mirrored mirror /copy', added('mirror /copy;')],
  [
    'mirrored mirror /copy',
    ['        server_name api.example;\n', '        server_name api.example;\n        mirror /copy;\n'],
  ],
  [
    'check-cached proxy_cache decisions',
    ['            proxy_cache off;', '            proxy_cache decisions;'],
  ],
  [
    'check-exposed location = /proofgate-check',
    ['        location = /proofgate-check {\n            internal;', '        location = /proofgate-check {'],
  ],
  ['location-unchecked location /', [CHECKED, '            auth_request off;\n']],
  ['location-unchecked location = /healthz', ['        # proofgate: allow location-unchecked\n', '']],
];

it.each(FAULTS)('finds %s', (finding, [from, to]) => {
  expect(found(exchanged(shipped, from, to))).toContain(finding);
});

it('finds what the server rewrites around nested locations, and every inherited error page', () => {
  const check = 'auth_request /check;';
  expect(found(`server {\nrewrite ^ /b;\nlocation /a {\nlocation /a/b { ${check} }\n}\n}`)).toEqual([
    'target-rewritten rewrite ^ /b',
  ]);
  const pages = 'error_page 403 = @api;\nerror_page 404 = @none;';
  const text = `server {\n${pages}\nlocation / { ${check} }\nlocation @api { proxy_pass http://api; }\n}`;
  expect(found(text)).toContain('error-page-forwards error_page 403 = @api');
});

it.each([
  ['/open/page', 'location /open', true],
  ['$page', 'location /open', true],
  ['/page?a=b', 'location = /page', true],
  ['/page', 'location ~ ^/p', true],
  ['/page', 'location = /other', false],
  ['/page', 'location /open', false],
])('finds an error page %s of %s: %j', (page, location, isFault) => {
  const server = `error_page 403 = ${page};\nlocation / { auth_request /check; }`;
  const rules = found(`server {\n${server}\n${location} { proxy_pass http://api; }\n}`);
  expect(rules.some((one) => one.startsWith('error-page-forwards'))).toBe(isFault);
});

it('has a fault for each rule', () => {
  const rules = new Set(FAULTS.map(([finding]) => finding.split(' ', 1)[0]));
  expect(rules).toEqual(new Set(NGINX_RULES.map(({ id }) => id)));
});

it('accepts a socket file of the API, and inherited settings', () => {
  expect(
    found(
      exchanged(
        shipped,
        '            proxy_pass http://api;',
        '            proxy_pass http://unix:/run/api.sock;',
      ),
    ),
  ).toEqual([]);
  const moved = exchanged(
    exchanged(shipped, CHECKED, ''),
    '        proxy_http_version 1.1;',
    '        proxy_http_version 1.1;\n        auth_request /proofgate-check;',
  );
  // Now it is checked too, and its URI would be another than the checked one.
  expect(found(moved)).toEqual([
    'accel-redirect location = /healthz',
    'headers-not-replaced location = /healthz',
    'upstream-retried location = /healthz',
    'proxy-pass-uri proxy_pass http://api/healthz',
  ]);
});

describe('reading', () => {
  const read = (text: string) =>
    everyDirective(readNginx(text) ?? []).map(({ name, values }) => [name, ...values]);

  it('quotes, escapes, variables and comments', () => {
    // biome-ignore lint/suspicious/noTemplateCurlyInString: a variable of nginx
    const text = 'server { # { ;\n return 200 "a;{}\\"b"; set $a \'x # y\'; map ${b}c a\\;b; }';
    expect(read(text)).toEqual([
      ['server'],
      ['return', '200', 'a;{}\\"b'],
      ['set', '$a', 'x # y'],
      // biome-ignore lint/suspicious/noTemplateCurlyInString: a variable of nginx
      ['map', '${b}c', 'a\\;b'],
    ]);
  });

  it.each([
    'server {',
    'server { } }',
    'server { listen 80 }',
    '; server {}',
    'server { return "a; }',
    'listen 80',
  ])('refuses %j', (text) => {
    expect(() => readNginx(text)).toThrow(UnreadableText);
  });

  it('knows no other files', () => {
    expect(readNginx('')).toBeUndefined();
    expect(readNginx('a b;')).toBeUndefined();
  });
});
