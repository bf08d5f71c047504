/** Runs the image's program with only the image's files, as its user, with its environment. */
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { chmod, chown, readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { stringify } from 'yaml';
import { HOME, NODE, USER } from '../../scripts/image/contents.mjs';
import { readText } from '../support/docs/markdown.ts';
import { bundleContent, edited, newTestKeys } from '../support/fixtures/bundle-content.ts';
import { type Child, startChild } from '../support/harness/child.ts';
import { freePort } from '../support/harness/free-port.ts';
import type { BuiltImage } from '../support/image/built.ts';
import {
  containerCommand,
  ENTRYPOINT,
  ENVIRONMENT,
  evaluateInContainer,
  runInContainer,
} from '../support/image/container.ts';
import { httpGet, remainingMs, waitFor } from '../support/wait.ts';

const STOP_MS = 20_000;

export function containerTests(image: () => BuiltImage): void {
  let volume: string;

  beforeAll(async () => {
    volume = mkdtempSync(join(tmpdir(), 'pg-volume-'));
    await chown(volume, USER.id, USER.id);
    await chmod(volume, 0o700);
  });
  afterAll(() => rmSync(volume, { recursive: true, force: true }));

  /** Output of the command; expects success. */
  const proofgate = (...args: readonly string[]) => {
    const { status, stderr, stdout } = runInContainer(image(), args, [volume]);
    expect({ args, status, stderr }).toEqual({
      args,
      status: 0,
      stderr: expect.not.stringContaining('error'),
    });
    return stdout;
  };

  it('says its version, on Node.js 22', () => {
    const { version } = JSON.parse(readText('package.json'));
    expect(proofgate('--version').trim()).toBe(version);
    expect(evaluateInContainer(image(), 'console.log(process.version)').stdout).toMatch(/^v22\./);
  });

  it('says its version to any user: a pod may name one', () => {
    const [program = '', ...args] = containerCommand(image(), [], 10_001);
    return startChild({ command: program, args: [...args, ...ENTRYPOINT, '--version'] }).exited.then(
      (status) => expect(status).toEqual({ code: 0, signal: null }),
    );
  });

  it('leaves no folder behind where temporary ones are made', () => {
    const temporary = join(volume, 'temporary');
    mkdirSync(temporary);
    const [program = '', ...args] = containerCommand(image(), []);
    const env = { PATH: process.env.PATH, TMPDIR: temporary };
    expect(spawnSync(program, [...args, ...ENTRYPOINT, '--version'], { env }).status).toBe(0);
    expect(readdirSync(temporary)).toEqual([]);
  });

  it('has a root that it cannot write to, and no shell', () => {
    const script = `
      import { accessSync, constants, writeFileSync } from 'node:fs';
      import { spawnSync } from 'node:child_process';
      const writes = ['/x', '/${HOME}/x', '/${HOME}/dist/cli/main.js', '/etc/passwd'].map((path) => {
        try { writeFileSync(path, 'x', { flag: 'a' }); return 'written'; } catch (error) { return error.code; }
      });
      console.log(JSON.stringify({ writes, shell: spawnSync('sh', ['-c', 'true']).error?.code, uid: process.getuid() }));
    `;
    const { writes, ...others } = JSON.parse(evaluateInContainer(image(), script).stdout);
    expect(others).toEqual({ shell: 'ENOENT', uid: USER.id });
    for (const code of writes) expect(['EROFS', 'EACCES']).toContain(code);
  });

  it('finds every module that its own import', () => {
    const dist = join(image().root, HOME, 'dist');
    const modules = readdirSync(dist, { recursive: true, encoding: 'utf8' }).filter((file) =>
      file.endsWith('.js'),
    );
    // Those two run when they are loaded: the program itself, and a thread's first module. The console is a browser's.
    const running = ['cli/main.js', 'control/declaration/comparison-worker.js'];
    const loaded = modules
      .filter((file) => !running.includes(file) && !file.startsWith('console/'))
      .map((file) => `/${HOME}/dist/${file}`);
    const script = `for (const file of ${JSON.stringify(loaded)}) await import(file); console.log('all');`;
    const { stderr, stdout } = evaluateInContainer(image(), script);
    expect({ stdout, stderr }).toEqual({ stdout: 'all\n', stderr: '' });
    expect(loaded.length).toBeGreaterThan(300);
  });

  it.each<readonly [name: string, args: (at: (name: string) => string) => readonly string[]]>([
    [
      'verifier',
      (at) => [
        ...[
          'verifier',
          '--listen',
          `unix:${at('verifier.sock')}`,
          '--external-origin',
          'https://api.example',
        ],
        ...['--http-listen', `unix:${at('http.sock')}`, '--http-profile', 'caddy'],
      ],
    ],
    [
      'proxy',
      (at) => [
        ...['proxy', '--listen', `unix:${at('proxy.sock')}`, '--upstream', 'http://127.0.0.1:1'],
        // The image has no /tmp.
        ...['--spool-dir', at('')],
      ],
    ],
  ])('is a %s that gets ready as process 1, and ends on a signal', async (name, argsOf) => {
    const folder = join(volume, name);
    mkdirSync(folder);
    const at = (file: string) => join(folder, file);
    mkdirSync(at('state'));
    for (const owned of [folder, at('state')]) await chown(owned, USER.id, USER.id);
    proofgate('keygen', '--out', at('signer.pem'), '--public-out', at('signer.jwk.json'));
    const setBySigning = [{ at: '/revision' }, { at: '/issued_at' }, { at: '/expires_at' }];
    const content = { ...bundleContent(newTestKeys()), single_verifier: true };
    writeFileSync(at('bundle.yaml'), stringify(edited(content, ...setBySigning)));
    proofgate('bundle', 'sign', at('bundle.yaml'), '--key', at('signer.pem'), '--out', at('bundle'));
    const point = startAsFirst(image(), volume, [
      ...[...argsOf(at), '--auth-site', String(content.auth_site), '--bundle', at('bundle')],
      ...['--bundle-key', at('signer.jwk.json'), '--state-dir', at('state'), '--replay', 'memory'],
      ...['--admin-listen', '127.0.0.1:0'],
    ]);
    await expectReadyAndStop(point);
  });

  it('is a Control on SQLite that gets ready as process 1, and ends on a signal', async () => {
    const data = join(volume, 'control');
    mkdirSync(data, { mode: 0o700 });
    await chown(data, USER.id, USER.id);
    const listen = ['--listen', `127.0.0.1:${await freePort()}`, '--admin-listen', '127.0.0.1:0'];
    await expectReadyAndStop(startAsFirst(image(), volume, ['control', '--data-dir', data, ...listen]));
    expect((await readFile(join(data, 'bootstrap-token'), 'utf8')).trim().length).toBeGreaterThan(20);
  });
}

/** Starts the program as PID 1 of a PID namespace. The kernel delivers only signals that PID 1 handles. */
function startAsFirst(image: BuiltImage, volume: string, args: readonly string[]): Child {
  const command = [...containerCommand(image, [volume]), `/${NODE}`, `/${HOME}/bin/proofgate`, ...args];
  return startChild({
    command: 'unshare',
    args: ['--pid', '--fork', '--kill-child', ...command],
    env: ENVIRONMENT_HERE,
  });
}

/** The root does not have this machine's certificates. */
const ENVIRONMENT_HERE = { ...ENVIRONMENT, PATH: process.env.PATH, NODE_EXTRA_CA_CERTS: undefined };

async function expectReadyAndStop(child: Child): Promise<void> {
  const [line] = await child.waitForLine(/^.*"msg":"listening".*$/);
  const { admin_listen: admin, pid } = JSON.parse(line);
  await waitFor('it to be ready', async () =>
    (await httpGet(`http://${admin}/readyz`)).status === 200 ? true : undefined,
  );
  expect(pid ?? 1).toBe(1);
  process.kill(await firstBelow(child.pid), 'SIGTERM');
  const timer = setTimeout(() => void child.stop(0), remainingMs(STOP_MS));
  const status = await child.exited;
  clearTimeout(timer);
  expect(status).toEqual({ code: 0, signal: null });
}

/** The child process that unshare(1) started and waits for. */
async function firstBelow(pid: number): Promise<number> {
  const children = await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8');
  const [first] = children.split(' ').filter(Boolean).map(Number);
  if (first === undefined) throw new Error('it has no child');
  return first;
}
