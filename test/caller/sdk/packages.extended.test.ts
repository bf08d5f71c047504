/** Packs the SDKs for Python, Go and Java, installs each into an empty project, and runs an example there. Checks their READMEs. */
import { execFile } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { generateSigningKey } from '../../../src/protocol/signing.ts';
import { writeEnrolledKey } from '../../support/caller/key-files.ts';
import {
  GO_ENV,
  MISSING_GO,
  MISSING_JAVA,
  MISSING_PYTHON,
  PREPARE_TIMEOUT_MS,
  PYTHON_PACKAGES,
} from '../../support/caller/sdk-drivers.ts';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
const folder = mkdtempSync(join(tmpdir(), 'pg-sdk-packages-'));
const packages = join(folder, 'packages');
const run = promisify(execFile);

const received: IncomingHttpHeaders[] = [];
const server: Server = createServer((request, response) => {
  received.push(request.headers);
  request.resume().on('end', () => response.end('ok'));
});

function pythonEnv(...paths: readonly string[]): NodeJS.ProcessEnv {
  return { ...process.env, PYTHONDONTWRITEBYTECODE: '1', PYTHONPATH: paths.join(':') };
}

beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
});
afterAll(async () => {
  await new Promise((resolve) => server.close(resolve));
  rmSync(folder, { recursive: true });
});

function origin(): string {
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

function keyFile(): string {
  const profile = { audience: 'urn:orders', origins: [origin()], signed_headers: [], body: 'bound' };
  return writeEnrolledKey(folder, 'key', {
    key: generateSigningKey('Ed25519').privateKey,
    ...{ authSite: 'shop-eu', key_id: 'dk_1', issuer: 'https://control.shop.example', subject: 'client:a' },
    ...{ trust_domain: 'shop.example', expiresAt: '2099-01-01T00:00:00Z' },
    profiles: [
      { ...profile, route_id: 'read', method: 'GET', path_template: '/v1/orders/{id}' },
      { ...profile, route_id: 'create', method: 'POST', path_template: '/v1/orders' },
    ],
  });
}

const describePython = MISSING_PYTHON === undefined ? describe : describe.skip;

describePython('packages', () => {
  beforeAll(async () => {
    const env = pythonEnv(PYTHON_PACKAGES);
    await run('python3', ['scripts/sdk/pack.py', packages], { cwd: ROOT, env });
  });

  it('have the version of the project, and the same bytes again', async () => {
    expect(readdirSync(packages).sort()).toEqual([
      `proofgate-${version}-py3-none-any.whl`,
      `proofgate-${version}.tar.gz`,
      `proofgate-go-${version}.zip`,
      `proofgate-java-${version}.zip`,
    ]);
    const again = join(folder, 'again');
    await run('python3', ['scripts/sdk/pack.py', again], { cwd: ROOT, env: pythonEnv(PYTHON_PACKAGES) });
    for (const name of readdirSync(packages)) {
      expect(readFileSync(join(again, name)).equals(readFileSync(join(packages, name)))).toBe(true);
    }
  });

  it.each([`proofgate-${version}-py3-none-any.whl`, `proofgate-${version}.tar.gz`])(
    'install into an empty project: %s',
    async (name) => {
      const target = join(folder, `installed-${name}`);
      const options = ['--no-deps', '--no-index', '--no-build-isolation', '--quiet'];
      const install = ['-m', 'pip', 'install', ...options, '--target', target, join(packages, name)];
      await run('python3', install, { env: pythonEnv(PYTHON_PACKAGES) });
      // Without its folder, so that the SDK is found where it was installed.
      cpSync(join(ROOT, 'sdk/python/examples/with_httpx.py'), join(target, 'app.py'));
      received.length = 0;
      const app = [join(target, 'app.py'), keyFile(), origin()];
      const { stdout } = await run('python3', app, { cwd: folder, env: pythonEnv(target, PYTHON_PACKAGES) });
      expect(stdout).toBe('200 200\n');
      expect(received.map((headers) => typeof headers['x-proofgate-signature'])).toEqual([
        'string',
        'string',
      ]);
    },
  );

  (MISSING_GO === undefined ? it : it.skip)(
    'install into an empty project: the Go module',
    async () => {
      const app = join(folder, 'go-app');
      mkdirSync(app);
      await run('python3', ['-m', 'zipfile', '-e', join(packages, `proofgate-go-${version}.zip`), folder]);
      const module = join(folder, `proofgate.example/proofgate@v${version}`);
      cpSync(join(module, 'examples/orders/main.go'), join(app, 'main.go'));
      const go = (...args: readonly string[]) => run('go', args, { cwd: app, env: GO_ENV });
      await go('mod', 'init', 'app');
      await go('mod', 'edit', '-replace', `proofgate.example/proofgate=${module}`);
      await go('mod', 'edit', '-require', `proofgate.example/proofgate@v${version}`);
      received.length = 0;
      const { stdout } = await go('run', '.', keyFile(), origin());
      expect(stdout).toBe('200 200\n');
      expect(received.map((headers) => typeof headers['x-proofgate-signature'])).toEqual([
        'string',
        'string',
      ]);
    },
    PREPARE_TIMEOUT_MS,
  );

  (MISSING_JAVA === undefined ? it : it.skip)(
    'install into an empty project: the Java project, on the JDK alone',
    async () => {
      const zip = join(packages, `proofgate-java-${version}.zip`);
      await run('python3', ['-m', 'zipfile', '-e', zip, folder]);
      const project = join(folder, `proofgate-java-${version}`);
      const sources = readdirSync(join(project, 'src/main/java/example/proofgate'))
        .filter((name) => !/^(?:OkHttp|Spring)/.test(name))
        .map((name) => join('src/main/java/example/proofgate', name));
      await run('javac', ['-d', 'classes', ...sources], { cwd: project });
      received.length = 0;
      const app = ['-cp', 'classes', 'examples/WithHttpClient.java', keyFile(), origin()];
      const { stdout } = await run('java', app, { cwd: project });
      expect(stdout).toBe('200 200\n');
      expect(received.map((headers) => typeof headers['x-proofgate-signature'])).toEqual([
        'string',
        'string',
      ]);
    },
    PREPARE_TIMEOUT_MS,
  );
});

describe.each([
  ['sdk/python/README.md', 'sdk/python/examples/with_httpx.py'],
  ['sdk/go/README.md', 'sdk/go/examples/orders/main.go'],
  ['sdk/java/README.md', 'sdk/java/examples/WithHttpClient.java'],
  ['docs/tutorials/signing.md', 'sdk/python/examples/with_httpx.py'],
  ['docs/tutorials/signing.md', 'sdk/go/examples/orders/main.go'],
  ['docs/tutorials/signing.md', 'sdk/java/examples/WithHttpClient.java'],
])('the code of %s', (document, example) => {
  it(`is that of ${example}`, () => {
    const language = { '.py': 'python', '.go': 'go', '.java': 'java' }[extname(example)];
    const text = readFileSync(join(ROOT, document), 'utf8');
    const blocks = [...text.matchAll(new RegExp(`\`\`\`${language}\n([\\s\\S]*?)\`\`\``, 'g'))];
    expect(blocks.length).toBeGreaterThan(0);
    const lines = readFileSync(join(ROOT, example), 'utf8')
      .split('\n')
      .map((line) => line.trim());
    for (const line of blocks.flatMap(([, block = '']) => block.trim().split('\n'))) {
      expect(lines).toContain(line.trim());
    }
  });
});
