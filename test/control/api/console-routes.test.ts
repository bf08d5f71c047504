/** Tests how Control serves the console: paths, caching, headers and hosts. A small build stands in for the real one. */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { brotliCompressSync, gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { registerConsoleRoutes } from '../../../src/control/api/routes/console-routes.ts';
import { type Answer, ApiFixture } from '../../support/control/api-fixture.ts';

const ROOT_HOST = 'control.shop.example';
const PREFIX_HOST = 'shop.example:8443';
const SCRIPT = 'console.log("console");\n'.repeat(20);
const INDEX = `<!doctype html><base href="{{base}}"><meta name="csp-nonce" content="{{nonce}}"><script src="assets/app-1a.js"></script>`;

let directory: string;
let fixture: ApiFixture;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'proofgate-console-'));
  await mkdir(join(directory, 'assets'));
  await writeFile(join(directory, 'index.html'), INDEX);
  const script = join(directory, 'assets', 'app-1a.js');
  await writeFile(script, SCRIPT);
  await writeFile(`${script}.br`, brotliCompressSync(SCRIPT));
  await writeFile(`${script}.gz`, gzipSync(SCRIPT));
  fixture = await ApiFixture.open({
    extend: (app) =>
      registerConsoleRoutes(app, {
        directory,
        publicUrls: [`https://${ROOT_HOST}`, `https://${PREFIX_HOST}/a'b&c`],
      }),
  });
});
afterAll(async () => {
  await fixture.close();
  await rm(directory, { recursive: true });
});

function get(path: string, headers: { readonly [name: string]: string } = {}): Promise<Answer> {
  return fixture.call('GET', path, { token: '', headers: { host: ROOT_HOST, ...headers } });
}

/** The nonce of a page, which its policy must name too. */
function nonceIn({ text, headers }: Answer): string {
  const nonce = /name="csp-nonce" content="([A-Za-z0-9+/]{22}==)"/.exec(text)?.[1] ?? 'none';
  expect(headers['content-security-policy']).toContain(`style-src 'self' 'nonce-${nonce}'`);
  return nonce;
}

describe('the page', () => {
  test.each(['/console/', '/console/sites/shop.eu-1/keys?state=active', '/console/a/b/c', '/console//'])(
    'answers %s',
    async (path) => {
      const answer = await get(path);
      expect(answer.status).toBe(200);
      expect(answer.text).toContain('<base href="/console/">');
      expect(answer.headers).toMatchObject({
        'content-type': 'text/html; charset=utf-8',
        'cache-control': 'no-store',
        'x-frame-options': 'DENY',
        'x-content-type-options': 'nosniff',
        'referrer-policy': 'same-origin',
        'cross-origin-opener-policy': 'same-origin',
        'permissions-policy': expect.stringContaining('camera=()'),
      });
      const policy = answer.headers['content-security-policy'];
      for (const directive of ["default-src 'none'", "script-src 'self';", "frame-ancestors 'none'"]) {
        expect(policy).toContain(directive);
      }
      expect(policy).not.toContain('unsafe');
    },
  );

  test('has another nonce each time', async () => {
    const nonces = [nonceIn(await get('/console/')), nonceIn(await get('/console/'))];
    expect(new Set(nonces).size).toBe(2);
  });

  test('has the path of its public URL, as HTML text', async () => {
    const answer = await get('/console/sites', { host: PREFIX_HOST });
    expect(answer.text).toContain('<base href="/a&#39;b&amp;c/console/">');
  });

  test('has no place for the path that was asked for', async () => {
    const answer = await get('/console/%22%3E%3Cscript%3Ealert(1)%3C/script%3E{{base}}$&');
    expect(answer.text.replace(nonceIn(answer), '')).toBe(
      INDEX.replace('{{base}}', '/console/').replace('{{nonce}}', ''),
    );
  });

  test.each([
    ['/', ROOT_HOST, '/console/'],
    ['/console', ROOT_HOST, '/console/'],
    ['/?next=//evil.example', ROOT_HOST, '/console/'],
    ['/', PREFIX_HOST, "/a'b&c/console/"],
  ])('is where %s of %s redirects to', async (path, host, location) => {
    expect(await get(path, { host })).toMatchObject({ status: 302, headers: { location } });
  });
});

describe('an asset', () => {
  test.each([
    ['br', 'br', brotliCompressSync(SCRIPT)],
    ['gzip, deflate', 'gzip', gzipSync(SCRIPT)],
    ['identity', undefined, Buffer.from(SCRIPT)],
  ])('for accept-encoding %s', async (accepted, encoding, bytes) => {
    const answer = await get('/console/assets/app-1a.js', { 'accept-encoding': accepted });
    expect(answer.status).toBe(200);
    expect(answer.headers).toMatchObject({
      'content-type': expect.stringMatching(/^(?:text|application)\/javascript/),
      'content-length': String(bytes.length),
      'cache-control': 'public, max-age=31536000, immutable',
      vary: 'accept-encoding',
      'x-content-type-options': 'nosniff',
    });
    expect(answer.headers['content-encoding']).toBe(encoding);
  });

  test.each(['gone.js', '..', '..%2Findex.html', '%2e%2e%2f%2e%2e%2fetc%2fpasswd', '..%5Cindex.html', '%00'])(
    'that does not exist: %s',
    async (file) => {
      const answer = await get(`/console/assets/${file}`);
      expect(answer).toMatchObject({ status: 404, code: 'not_found' });
      expect(answer.headers['cache-control']).toBe('no-store');
      expect(answer.text).not.toContain('<');
    },
  );
});

test.each(['/', '/console', '/console/', '/console/assets/app-1a.js'])(
  '%s is for hosts of the public URLs only',
  async (path) => {
    for (const host of ['evil.example', `${ROOT_HOST}.evil.example`, `${ROOT_HOST}:8443`, '127.0.0.1']) {
      expect(await get(path, { host })).toMatchObject({ status: 421, code: 'host_unknown' });
    }
    // No proxy is trusted to say the host.
    const forwarded = { host: 'evil.example', 'x-forwarded-host': ROOT_HOST };
    expect(await get(path, forwarded)).toMatchObject({ status: 421 });
  },
);

test('no path takes anything but GET and HEAD, and none is in the API document', async () => {
  for (const path of ['/console/', '/console/sites', '/console/assets/app-1a.js']) {
    const answer = await fixture.call('POST', path, { token: '', headers: { host: ROOT_HOST } });
    expect(answer).toMatchObject({ status: 405, headers: { allow: 'GET, HEAD' } });
  }
  expect((await get('/openapi.json')).text).not.toContain('/console');
});

test('without a build there is no route', async () => {
  const bare = await ApiFixture.open({
    extend: async (app) => {
      const publicUrls = [`https://${ROOT_HOST}`] as const;
      expect(await registerConsoleRoutes(app, { directory: join(directory, 'none'), publicUrls })).toBe(
        false,
      );
    },
  });
  expect((await bare.call('GET', '/console/')).status).toBe(404);
  await bare.close();
});
