/**
 * The npm package: what is in it, what it depends on, its types, and the examples, compiled and run in an empty folder that has
 * the package installed. It also compiles the code of docs/operate/middleware.md and packages/middleware/README.md.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { http1Client } from '../../../src/tools/conformance/wire/http1.ts';
import { blocksOf } from '../../support/docs/blocks.ts';
import { checkoutPath } from '../../support/harness/checkout.ts';
import { type Child, startChild } from '../../support/harness/child.ts';
import { packWorkspace } from '../../support/harness/workspaces.ts';
import { KINDS } from '../../support/points/middleware-apps.ts';
import { derivedKeyCaller } from '../../support/site/callers.ts';
import { AUTHORITY, ROUTES } from '../../support/site/routes.ts';
import { signedRequest, withHeader } from '../../support/site/signed-request.ts';
import { AUTH_SITE, createSite, type Site } from '../../support/site/site.ts';
import { waitFor } from '../../support/wait.ts';

/** Of the application, not of the package. */
const OF_THE_APPLICATION = [
  'express',
  'fastify',
  'hono',
  '@hono/node-server',
  '@types/express',
  '@types/node',
];
/** All that it needs at run time: no framework, no gRPC, no database, no command line. */
const DEPENDENCIES = ['ioredis', 'lru-cache', 'prom-client', 'sodium-native', 'typebox', 'undici'];
/** Against code that comes in by mistake. */
const MAX_PACKED_BYTES = 280_000;
const MAX_INSTALLED_PACKAGES = 40;

let folder: string;
let packed: string;
const inProject = (...path: readonly string[]) => join(folder, 'project', ...path);
const installed = (...path: readonly string[]) =>
  inProject('node_modules', '@proofgate', 'middleware', ...path);
const run = (command: string, args: readonly string[], cwd: string) =>
  execFileSync(command, [...args], { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'pg-middleware-'));
  mkdirSync(inProject());
  writeFileSync(inProject('package.json'), '{ "type": "module", "private": true }');
  packed = packWorkspace('@proofgate/middleware', folder);
  run(
    'npm',
    ['install', '--prefer-offline', '--no-audit', '--no-fund', '--ignore-scripts', packed],
    inProject(),
  );
  for (const name of OF_THE_APPLICATION) {
    mkdirSync(dirname(inProject('node_modules', name)), { recursive: true });
    symlinkSync(checkoutPath('node_modules', name), inProject('node_modules', name));
  }
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** @returns what the compiler complains about */
function compile(files: readonly string[], more: readonly string[] = []): string {
  const tsc = checkoutPath('node_modules', 'typescript', 'bin', 'tsc');
  const options = [
    '--strict',
    '--target',
    'es2023',
    '--module',
    'nodenext',
    '--types',
    'node',
    '--outDir',
    'built',
  ];
  const args = [tsc, ...options, ...more, ...files];
  return spawnSync(process.execPath, args, { cwd: inProject(), encoding: 'utf8' }).stdout;
}

describe('the package', () => {
  it('is small, and depends on what its modules import and nothing else', () => {
    const {
      dependencies,
      name,
      private: isPrivate,
    } = JSON.parse(readFileSync(installed('package.json'), 'utf8'));
    expect([name, isPrivate, Object.keys(dependencies)]).toEqual([
      '@proofgate/middleware',
      undefined,
      DEPENDENCIES,
    ]);
    expect(statSync(packed).size).toBeLessThan(MAX_PACKED_BYTES);
    const lock = JSON.parse(readFileSync(inProject('package-lock.json'), 'utf8'));
    const names = Object.keys(lock.packages).map((path) => path.split('node_modules/').at(-1) ?? '');
    expect(
      names.filter((each) =>
        /fastify|express|hono|grpc|protobuf|kysely|^pg|libsql|commander|opentelemetry.(?!api$)|^pino/.test(
          each,
        ),
      ),
    ).toEqual([]);
    expect(names.length).toBeLessThan(MAX_INSTALLED_PACKAGES);
  });

  it('has every module that its modules load, and no code of Control or of the command line', () => {
    const modules = readdirSync(installed('dist'), { recursive: true, encoding: 'utf8' }).filter((file) =>
      file.endsWith('.js'),
    );
    const loaded = modules
      .map((file) => `await import(${JSON.stringify(installed('dist', file))});`)
      .join('\n');
    run(process.execPath, ['--input-type=module', '--eval', loaded], inProject());
    expect(modules.length).toBeGreaterThan(100);
    expect(
      modules.filter((file) => /^(?:control|cli|workload|api-contract|gateway-lint)\//.test(file)),
    ).toEqual([]);
  });

  it('has declarations that stand alone', () => {
    writeFileSync(
      inProject('alone.ts'),
      "export * from '@proofgate/middleware';\nexport * as node from '@proofgate/middleware/node';\n",
    );
    expect(compile(['alone.ts'])).toBe('');
  });
});

/** One run of the compiler: it reads the types of the frameworks each time. */
describe('the types', () => {
  const documented = ['docs/operate/middleware.md', 'packages/middleware/README.md'].flatMap(blocksOf);
  const wrong = {
    'option.ts': "void Verifier.open({ ...options, otlpEndpoint: 'x' });",
    'missing.ts': "void Verifier.open({ authSite: 'shop' });",
    'proof.ts': "proof.subject = 'other';",
  };
  const documentedFiles = documented.map((_, at) => `documented-${at}.ts`);
  const examples = KINDS.map((kind) => `${kind}.ts`);
  let faulty: readonly string[];
  beforeAll(() => {
    for (const [at, { text }] of documented.entries()) writeFileSync(inProject(`documented-${at}.ts`), text);
    const names =
      'declare const options: VerifierOptions;\ndeclare const proof: Proof;\nvoid [options, proof];';
    for (const [file, statement] of Object.entries(wrong)) {
      const text = `import { type Proof, Verifier, type VerifierOptions } from '@proofgate/middleware';\n${names}\n${statement}\n`;
      writeFileSync(inProject(file), text);
    }
    for (const file of examples)
      cpSync(checkoutPath('packages', 'middleware', 'examples', file), inProject(file));
    const found = compile([...documentedFiles, ...Object.keys(wrong), ...examples], ['--skipLibCheck']);
    const lines = found.split('\n').filter((line) => /^\S/.test(line));
    faulty = lines.map((line) => line.replace(/\(.*/, ''));
  });

  it('suit the documented code and the examples', () => {
    expect(documented.length).toBe(2);
    expect(faulty.filter((file) => !Object.hasOwn(wrong, file))).toEqual([]);
  });

  it('reject wrong code', () => {
    expect(faulty).toEqual(['missing.ts', 'option.ts', 'proof.ts']);
  });

  describe('an example', exampleTests);
});

function exampleTests(): void {
  let site: Site;
  let bundle: string;
  let child: Child | undefined;
  beforeAll(async () => {
    site = await createSite();
    bundle = await site.makeBundle();
  });
  afterEach(async () => {
    await child?.stop();
  });
  afterAll(() => site.remove());

  it.each(KINDS)('of %s compiles, runs, and lets verified requests pass', async (kind) => {
    const stateDir = mkdtempSync(join(folder, 'state-'));
    const env = {
      AUTH_SITE,
      EXTERNAL_ORIGIN: `http://${AUTHORITY}`,
      BUNDLE: bundle,
      BUNDLE_KEY: site.bundleKeyFile,
      STATE_DIR: stateDir,
      REPLAY: 'memory',
      PORT: '0',
    };
    child = startChild({
      command: process.execPath,
      args: [join('built', `${kind}.js`)],
      cwd: inProject(),
      env,
    });
    const [, port] = await child.waitForLine(/port: (\d+)/);
    const client = http1Client({ host: 'localhost', port: Number(port) });
    const caller = derivedKeyCaller(site);
    const get = () => signedRequest(site, { caller, route: ROUTES.readOrder });
    // The memory store refuses proofs of its first moments.
    const response = await waitFor('a request to pass', async () => {
      const answer = await client.send(get());
      return answer.status === 200 ? answer : undefined;
    });
    expect(JSON.parse(response.body.toString())).toMatchObject({ caller: 'client:billing' });
    const plan = { caller, route: ROUTES.createOrder, body: '{"item":"4711"}' };
    const json = [['content-type', 'application/json']] as const;
    const created = await client.send(signedRequest(site, { ...plan, otherHeaders: json }));
    expect([created.status, created.body.toString()]).toEqual([201, expect.stringContaining('4711')]);
    expect((await client.send(withHeader(get(), 'x-proofgate-signature'))).status).toBe(401);
    expect((await child.stop()).code).toBe(0);
  });
}
