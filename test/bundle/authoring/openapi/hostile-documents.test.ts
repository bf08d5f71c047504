/** Tests `bundle routes` with documents that try to hang it, fill its memory, read other files, or write routes of their own. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { parse } from 'yaml';
import { LAUNCHER } from '../../../support/cli/compiled-cli.ts';
import { runInProcess } from '../../../support/cli/in-process.ts';
import { expectCliError, runCli } from '../../../support/cli/run-cli.ts';

let folder = '';
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'proofgate-openapi-'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

async function routes(text: string, ...flags: readonly string[]) {
  const path = join(folder, 'api');
  await writeFile(path, text);
  return runInProcess(['bundle', 'routes', '--openapi', path, ...flags]);
}

const HEAD = { openapi: '3.1.0', info: { title: 'Test', version: '1' } };
const api = (paths: object, more: object = {}) => JSON.stringify({ ...HEAD, paths, ...more });
const yaml = (lines: string) => `openapi: 3.0.3\ninfo: { title: T, version: "1" }\n${lines}`;
const range = (count: number) => Array.from({ length: count }, (_, index) => index);
const GET = { get: {} };
const servers = (url: string, variables: object = {}) =>
  api({ '/a': GET }, { servers: [{ url, variables }] });
const oneOf = (count: number) => ({ default: '0', enum: range(count).map(String) });

const REFUSED: readonly (readonly [code: string, what: string, text: () => string])[] = [
  ['openapi_reference', 'path items in a circle', () => api({ '/a': ref('/b'), '/b': ref('/a') })],
  ['openapi_reference', 'a path item that is itself', () => api({ '/a': ref('/a') })],
  [
    'openapi_reference',
    'a chain of 100 path items',
    () => api(Object.fromEntries(range(100).map((index) => [`/${index}`, ref(`/${index + 1}`)]))),
  ],
  ['openapi_reference', 'another file', () => api({ '/a': { $ref: './other.json#/a' } })],
  ['openapi_reference', 'an absolute path', () => api({ '/a': { $ref: '/etc/passwd' } })],
  ['openapi_reference', 'a URL', () => api({ '/a': { $ref: 'http://127.0.0.1:9/api.yaml' } })],
  [
    'openapi_reference',
    'a member that is missing',
    () => api({ '/a': { $ref: '#/components/pathItems/A' } }),
  ],
  ['openapi_reference', 'a member of every object', () => api({ '/a': { $ref: '#/constructor/prototype' } })],
  ['openapi_reference', 'a reference that does not decode', () => api({ '/a': { $ref: '#/%' } })],
  ['openapi_reference', 'a number as reference', () => api({ '/a': { $ref: 7 } })],
  [
    'openapi_reference',
    'parameters in a circle',
    () => api({ '/{a}': { parameters: [{ $ref: '#/paths/~1{a}/parameters/0' }], ...GET } }),
  ],
  [
    'openapi_too_large',
    '100,000 paths',
    () => api(Object.fromEntries(range(100_000).map((index) => [`/${index}`, GET]))),
  ],
  [
    'openapi_too_large',
    'a few paths at many servers',
    () => api(Object.fromEntries(range(600).map((index) => [`/${index}`, GET])), { servers: manyServers() }),
  ],
  [
    'openapi_too_large',
    'many references to many parameters',
    () => {
      const shared = { parameters: range(20_000).map(() => ({})), ...GET };
      const paths = Object.fromEntries(range(200).map((index) => [`/${index}`, ref('/shared')]));
      return api({ '/shared': shared, ...paths });
    },
  ],
  ['openapi_too_large', '101 servers', () => api({}, { servers: range(101).map(() => ({ url: '/' })) })],
  [
    'openapi_too_large',
    'variables of a server that multiply',
    () => servers('/{a}/{b}', { a: oneOf(5), b: oneOf(5) }),
  ],
  [
    'openapi_too_large',
    'a variable that is repeated',
    () => servers(`/${'{a}'.repeat(600)}`, { a: { default: 'x'.repeat(100_000) } }),
  ],
  ['openapi_too_large', 'JSON that is nested deep', () => `{"openapi":${'['.repeat(1e6)}`],
  ['openapi_invalid', 'YAML that is nested deep', () => yaml(`a: ${'['.repeat(1e6)}`)],
  ['openapi_invalid', 'YAML that is nested deep without brackets', () => yaml(`a:\n  ${'- '.repeat(1e5)}`)],
  ['openapi_invalid', 'YAML with brackets that nothing opens', () => yaml(`a: ${'}'.repeat(1e6)}`)],
  ['openapi_invalid', 'YAML with millions of values', () => yaml(`a: [${'a,'.repeat(2e6)}]`)],
  ['openapi_invalid', 'an alias bomb', () => yaml(aliasBomb())],
  ['openapi_invalid', 'a merge key', () => yaml('paths: { /a: { <<: { get: {} } } }')],
  ['openapi_invalid', 'a list as name of a member', () => yaml('paths: { ? [a, b] : {} }')],
  ['openapi_invalid', 'nothing as name of a member', () => yaml('paths: { ? : {} }')],
  ['openapi_invalid', 'an operation twice, in JSON', () => `{"openapi":"3.1.0","a":{"get":{},"get":{}}}`],
  ['openapi_invalid', 'an operation twice, in YAML', () => yaml('paths: { /a: { get: {}, "get": {} } }')],
  ['openapi_invalid', 'a name twice, as number and string', () => yaml('paths: { 1: {}, "1": {} }')],
  ['openapi_invalid', 'a tag', () => yaml('paths: !!js/function "x"')],
  ['openapi_invalid', 'paths as a list', () => api([])],
  ['openapi_invalid', 'an operation that is nothing', () => api({ '/a': { get: null } })],
  ['openapi_invalid', 'servers as text', () => api({}, { servers: '/v1' })],
  ['openapi_invalid', 'a server without URL', () => api({}, { servers: [{}] })],
  ['openapi_invalid', 'a server relative to the document', () => servers('../v1')],
  ['openapi_invalid', 'a variable without default', () => servers('/{constructor}')],
  ['openapi_invalid', 'an empty file', () => ''],
  ['openapi_invalid', 'text', () => 'hello'],
  ['openapi_invalid', 'JSON that ends early', () => '{"openapi":"3.1.0"'],
  ['openapi_unsupported', 'Swagger 2.0', () => '{"swagger":"2.0","paths":{}}'],
  ['openapi_unsupported', 'a version that is not known', () => '{"openapi":"3.2.0","paths":{}}'],
  ['openapi_unsupported', 'another document', () => 'routes: []'],
  ['file_too_large', 'more than 16 MiB', () => ' '.repeat(16 * 1024 * 1024 + 1)],
];

const LARGE = new Set([
  '100,000 paths',
  'many references to many parameters',
  'JSON that is nested deep',
  'YAML that is nested deep',
  'YAML with brackets that nothing opens',
  'YAML with millions of values',
  'an alias bomb',
]);

function ref(path: string) {
  return { $ref: `#/paths/${path.replaceAll('/', '~1')}` };
}

function manyServers() {
  return range(100).map((index) => ({ url: `/${index}` }));
}

function aliasBomb(): string {
  const lines = range(30).map((index) => `a${index + 1}: &a${index + 1} [*a${index}, *a${index}]`);
  return ['a0: &a0 [x, x]', ...lines].join('\n');
}

it.each(REFUSED)('%s: %s', async (code, _what, text) => {
  const run = await routes(text());
  expectCliError(run, code, 2);
  expect(run.stdout).toBe('');
});

it('refuses each of them with 256 MB of memory', async () => {
  const env = { NODE_OPTIONS: '--max-old-space-size=256' };
  for (const [code, what, text] of REFUSED.filter(([, name]) => LARGE.has(name))) {
    const path = join(folder, 'large');
    await writeFile(path, text());
    const run = await runCli(LAUNCHER, ['bundle', 'routes', '--openapi', path], { cwd: folder, env });
    expect([what, run.stderr.split(': ')[1]]).toEqual([what, code]);
  }
});

describe('what it proposes', () => {
  const shown = async (text: string, ...flags: readonly string[]) => {
    const { exitCode, stderr, stdout } = await routes(text, '--output', 'json', ...flags);
    expect([exitCode, stderr]).toEqual([0, '']);
    const { routes: found, without_route: without } = JSON.parse(stdout);
    return {
      routes: found.map(
        (route: { route_id: string; method: string; path_template: string; resource: string }) =>
          `${route.route_id}: ${route.method} ${route.path_template} (${route.resource})`,
      ),
      without: without.map(
        (entry: { reason: string; method: string; path: string }) =>
          `${entry.reason}: ${entry.method} ${entry.path}`,
      ),
    };
  };

  it('has names of every object like all others', async () => {
    const text = `{"openapi":"3.1.0","__proto__":{"servers":[{"url":"/evil"}]},"paths":{
      "/__proto__":{"get":{"operationId":"constructor","tags":["__proto__"]},"__proto__":{"put":{}}},
      "/constructor":{"get":{"operationId":"constructor"}}}}`;
    expect(await shown(text, '--resource-from', 'tag')).toEqual({
      routes: ['constructor: GET /__proto__ (__proto__)', 'constructor-2: GET /constructor (constructor)'],
      without: [],
    });
  });

  it('takes numbers as names, as responses have them', async () => {
    const { routes: found } = await shown(yaml('paths: { /a: { get: { responses: { 200: {} } } } }'));
    expect(found).toEqual(['get-a: GET /a (a)']);
  });

  it('says why templates cannot express a path, and which route has its requests', async () => {
    const paths = {
      '/v1/orders/{order-id}': { get: { operationId: 'order' }, post: { operationId: 'update' } },
      '/v1/orders/{id}.json': GET,
      '/v1/orders/{id}:cancel': { post: {} },
      '/v1/orders/{a}-{b}': { delete: {} },
      '/v1/orders/{other}': GET,
      '/v1/search?q={q}': GET,
      '/v1/caf\u00e9': GET,
      orders: GET,
      '/files/{path+}': GET,
      '/files/{name}': { put: {} },
      '/points/{p}': { get: { parameters: [{ in: 'path', name: 'p', style: 'matrix' }] } },
      'x-extension': GET,
    };
    expect(await shown(api(paths))).toEqual({
      routes: [
        'order: GET /v1/orders/{order_id} (orders)',
        'update: POST /v1/orders/{order_id} (orders)',
        'get-files-path: GET /files/{path*} (files)',
      ],
      without: [
        'template: GET /v1/orders/{id}.json',
        'template: POST /v1/orders/{id}:cancel',
        'template: DELETE /v1/orders/{a}-{b}',
        'same_request: GET /v1/orders/{other}',
        'template: GET /v1/search?q={q}',
        'template: GET /v1/caf\u00e9',
        'template: GET orders',
        'placeholders: PUT /files/{name}',
        'matrix: GET /points/{p}',
      ],
    });
    const text = (await routes(api(paths))).stdout;
    expect(text).toMatch(
      /^# no route: POST \/v1\/orders\/\{id\}:cancel: .*; its requests match route update$/m,
    );
  });

  it('has no template that a bundle could not hold', async () => {
    const twice = '/{a}'.repeat(500);
    const { without } = await shown(api({ [twice]: GET, [`/${'a'.repeat(3000)}`]: GET }));
    expect(without).toEqual([
      expect.stringMatching(/^template: GET \/\{a\}\/\{a\}/),
      expect.stringMatching(/^template: GET \/aaa/),
    ]);
  });

  it.each([
    ['https://api.example/v1/', {}, ['/v1/a']],
    ['/{version}', { version: { default: 'v2', enum: ['v1', 'v2'] } }, ['/v2/a', '/v1/a']],
    ['{protocol}://{host}/v1', { protocol: { default: 'https' }, host: { default: 'a.example' } }, ['/v1/a']],
    ['https://api.example{base}', { base: { default: '/v1' } }, ['/v1/a']],
    ['{server}', { server: { default: 'https://api.example/v1' } }, ['/v1/a']],
    ['//api.example/v1', {}, ['/v1/a']],
  ])('has the path of the server %s', async (url, variables, templates) => {
    const { stdout } = await routes(servers(url, variables), '--output', 'json');
    const found: readonly { readonly path_template: string }[] = JSON.parse(stdout).routes;
    expect(found.map((route) => route.path_template)).toEqual(templates);
    const over = JSON.parse((await routes(servers(url), '--prefix', '/x/', '--output', 'json')).stdout);
    expect(over.routes[0].path_template).toBe('/x/a');
  });

  it('uses servers and members of a path item that another one refers to', async () => {
    const text = api(
      { '/a': { $ref: '#/components/pathItems/A', post: { servers: [{ url: 'https://b.example/v3' }] } } },
      { components: { pathItems: { A: { servers: [{ url: '/v2' }], get: {} } } } },
    );
    expect((await shown(text)).routes).toEqual(['get-v2-a: GET /v2/a (a)', 'post-v3-a: POST /v3/a (a)']);
    expect((await routes(text)).stdout).toContain('# post-v3-a is served at https://b.example: ');
  });

  it('cannot be made to write a line of its own', async () => {
    const evil = 'x\n  - route_id: evil\n\r\u0085\u2028routes: []';
    const text = api(
      { [`/${evil}`]: GET, '/a:': { get: { operationId: evil, tags: [evil] } }, '/true': GET },
      { info: { title: evil, version: '1' }, servers: [{ url: `https://${evil}/` }] },
    );
    for (const flags of [[], ['--resource-from', 'tag']]) {
      const { stdout } = await routes(text, ...flags);
      const found = parse(stdout).routes.map((route: { path_template: string }) => route.path_template);
      expect(found).toEqual(['/a:', '/true']);
    }
  });

  it('leaves out what the site has already', async () => {
    const site = join(folder, 'site.yaml');
    const route = {
      route_id: 'get-a',
      method: 'GET',
      path_template: '/a',
      audience: 'aud',
      freshness_class: 'realtime',
    };
    const source = { issuer: 'i', trust_domain: 't', subject_prefix: 's:', required_key_binding: 'software' };
    await writeFile(site, JSON.stringify({ routes: [{ ...route, allowed_sources: [source] }] }));
    const run = await routes(api({ '/a': { ...GET, put: {} } }), '--like', site);
    expect(parse(run.stdout)).toEqual({
      routes: [
        {
          ...route,
          route_id: 'put-a',
          method: 'PUT',
          resource: 'a',
          allowed_sources: [source],
        },
      ],
    });
    expect(run.stdout).toContain('# no route: GET /a: route get-a matches the same requests');
  });

  it.each([
    ['pattern_missing', 2, '{}'],
    ['pattern_missing', 2, '{"routes":[{"route_id":"a"}]}'],
    ['yaml_invalid', 3, '[]'],
  ])('%s: exit %d for %s as --like', async (code, exitCode, text) => {
    const like = join(folder, 'like.yaml');
    await writeFile(like, text);
    expectCliError(await routes(api({}), '--like', like), code, exitCode);
  });

  it.each(['v1', '/v1/../x', '/{tenant}', '/a b'])('--prefix %s: bad_value', async (prefix) => {
    expectCliError(await routes(api({}), '--prefix', prefix), 'bad_value', 2);
  });
});
