/** `bundle break-glass`: what it reads of marks and of `/readyz`, what it refuses, and what it writes. */
import { mkdir, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { openBreakGlass } from '../../src/bundle/compile/break-glass-statement.ts';
import { openAdminListener, type ReadinessCheck } from '../../src/process/admin/admin-server.ts';
import { readPublicKeyFile } from '../../src/process/files/public-key-file.ts';
import { FileMark, MARK_FILE } from '../../src/verifier/loading/state/high-water-mark.ts';
import { runInProcess } from '../support/cli/in-process.ts';
import { AUTH_SITE } from '../support/fixtures/bundle-content.ts';
import { errorCode } from '../support/harness/proofgate-command.ts';

const HEAD = 'h'.repeat(42).concat('A');
const OTHER_HEAD = 'o'.repeat(42).concat('A');

let folder = '';
const at = (name: string) => join(folder, name);
const closing: (() => Promise<unknown>)[] = [];

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'proofgate-break-glass-'));
  await runInProcess(['keygen', '--out', at('offline.pem'), '--public-out', at('offline.jwk.json')]);
});
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
  await rm(folder, { recursive: true, force: true });
});

const run = (...args: readonly string[]) =>
  runInProcess([
    ...['bundle', 'break-glass', '--auth-site', AUTH_SITE, '--key', at('offline.pem')],
    ...['--out', at('break-glass.jws'), '--output', 'json', ...args],
  ]);

/** A state directory with a mark. @returns its flags */
async function marked(name: string, revision: number, head = HEAD, authSite = AUTH_SITE) {
  await mkdir(at(name));
  await new FileMark({ stateDirectory: at(name), authSite }).raise({ revision, head });
  return ['--state-dir', at(name)];
}

/** The admin listener of a verifier. @returns its flags */
async function ready(checks: readonly ReadinessCheck[]) {
  const metrics = async () => ({ contentType: 'text/plain', text: '' });
  const admin = await openAdminListener({ host: '127.0.0.1', port: 0, readiness: () => checks, metrics });
  closing.push(() => admin.close());
  return ['--readyz', `http://${admin.address}/readyz`];
}

const holding = (revision: number, head = HEAD, authSite = AUTH_SITE): readonly ReadinessCheck[] => [
  { name: 'bundle', problem: undefined, bundle: { authSite, revision, head } },
  { name: 'freshness', problem: 'the bundle is too old' },
];

async function serving(listener: RequestListener) {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  closing.push(
    () =>
      new Promise((resolve) => {
        server.close(resolve);
        server.closeAllConnections();
      }),
  );
  const { port } = server.address() as AddressInfo;
  return ['--readyz', `http://127.0.0.1:${port}/readyz`];
}

/** The written statement, verified; undefined without a file. */
async function written(name = 'break-glass.jws') {
  const bytes = await readFile(at(name)).catch(() => undefined);
  const keys = [await readPublicKeyFile(at('offline.jwk.json'))];
  const options = { file: name, authSite: AUTH_SITE, signers: { keys, threshold: 1 } };
  return bytes && openBreakGlass(bytes, options);
}

const nowSeconds = () => Math.floor(Date.now() / 1000);

it('states the one revision that all hold, from marks and from verifiers that are not ready', async () => {
  const began = nowSeconds();
  const instances = [...(await marked('one', 7)), ...(await marked('two', 7)), ...(await ready(holding(7)))];
  const { exitCode, stderr, stdout } = await run('--for', '90m', ...instances);
  expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' });
  const statement = await written();
  expect(statement).toMatchObject({ revision: 7, head: HEAD });
  const { fromSeconds = 0, untilSeconds = 0 } = statement ?? {};
  expect(untilSeconds - fromSeconds).toBe(90 * 60);
  expect(fromSeconds).toBeGreaterThanOrEqual(began);
  expect(fromSeconds).toBeLessThanOrEqual(nowSeconds());
  expect(JSON.parse(stdout)).toMatchObject({ auth_site: AUTH_SITE, revision: 7, head: HEAD });
  expect((await stat(at('break-glass.jws'))).mode & 0o777 & 0o133).toBe(0);
});

it('replaces an earlier statement', async () => {
  const instance = await marked('one', 7);
  expect((await run('--for', '1h', ...instance)).exitCode).toBe(0);
  await new FileMark({ stateDirectory: at('one'), authSite: AUTH_SITE }).raise({
    revision: 8,
    head: OTHER_HEAD,
  });
  expect((await run('--for', '1h', ...instance)).exitCode).toBe(0);
  expect(await written()).toMatchObject({ revision: 8, head: OTHER_HEAD });
});

describe('a lower revision', () => {
  it('is never stated: the highest is, with a note about the others', async () => {
    const instances = [...(await marked('one', 41, OTHER_HEAD)), ...(await ready(holding(42)))];
    const { exitCode, stderr } = await run('--for', '1h', ...instances);
    expect(exitCode).toBe(0);
    expect(stderr).toContain('instances_behind');
    expect(stderr).toContain(at('one'));
    expect(await written()).toMatchObject({ revision: 42, head: HEAD });
  });

  it.each([41, 43])('is refused when asked for: %i of 42', async (asked) => {
    const instances = [...(await marked('one', 41, OTHER_HEAD)), ...(await ready(holding(42)))];
    const result = await run('--for', '1h', '--revision', String(asked), ...instances);
    expect([result.exitCode, errorCode(result)]).toEqual([3, 'revision_not_highest']);
    expect(await written()).toBeUndefined();
  });

  it('may be named where it is the highest', async () => {
    expect((await run('--for', '1h', '--revision', '42', ...(await marked('one', 42)))).exitCode).toBe(0);
  });
});

it.each<[string, number, string, () => Promise<readonly string[]> | readonly string[]]>([
  ['no verifier', 2, 'instance_missing', () => []],
  ['a URL without scheme', 2, 'readyz_url_invalid', () => ['--readyz', '10.0.0.7:9192/readyz']],
  ['a URL with a password', 2, 'readyz_url_invalid', () => ['--readyz', 'http://u:p@127.0.0.1/readyz']],
  ['a closed port', 5, 'instance_unreachable', () => ['--readyz', 'http://127.0.0.1:1/readyz']],
  [
    'another program',
    5,
    'instance_unreachable',
    () => serving((_, response) => response.end('{"status":"ok"}')),
  ],
  [
    'a text that is no JSON',
    5,
    'instance_unreachable',
    () => serving((_, response) => response.end('ready')),
  ],
  [
    'an endless answer',
    5,
    'instance_unreachable',
    () =>
      serving((_, response) => {
        const more = () => {
          while (response.write(' '.repeat(65_536)));
        };
        response.on('drain', more);
        more();
      }),
  ],
  [
    'a redirect',
    5,
    'instance_unreachable',
    () => serving((_, response) => response.writeHead(302, { location: 'http://127.0.0.1:1/' }).end()),
  ],
  [
    'a verifier without a bundle',
    3,
    'instance_without_bundle',
    () => ready([{ name: 'bundle', problem: 'none' }]),
  ],
  ['an older verifier', 3, 'instance_without_bundle', () => ready([{ name: 'bundle', problem: undefined }])],
  ['a verifier with a head that is none', 3, 'instance_without_bundle', () => ready(holding(7, 'head'))],
  ['a verifier of another site', 3, 'instance_of_another_site', () => ready(holding(7, HEAD, 'shop-eu-2'))],
  ['a mark of another site', 3, 'instance_of_another_site', () => marked('one', 7, HEAD, 'shop-eu-2')],
  ['no state directory', 3, 'instance_without_bundle', () => ['--state-dir', at('nowhere')]],
  [
    'a damaged mark',
    3,
    'mark_corrupt',
    async () => {
      const flags = await marked('one', 7);
      await writeFile(join(at('one'), MARK_FILE), '{');
      return flags;
    },
  ],
  [
    'two heads of one revision',
    3,
    'instances_disagree',
    async () => [...(await marked('one', 7)), ...(await ready(holding(7, OTHER_HEAD)))],
  ],
  [
    'one of two that does not answer',
    5,
    'instance_unreachable',
    async () => [...(await marked('one', 7)), '--readyz', 'http://127.0.0.1:1/readyz'],
  ],
])('with %s: exit %i, %s, and no file', async (_what, exitCode, code, flagsOf) => {
  const result = await run('--for', '1h', ...(await flagsOf()));
  expect([result.exitCode, errorCode(result)]).toEqual([exitCode, code]);
  expect(result.stderr.trim().split('\n')).toHaveLength(1);
  expect(await written()).toBeUndefined();
});

it.each([
  [['--for', '25h'], 'out_of_range'],
  [['--for', '0s'], 'out_of_range'],
  [['--for', '3600'], 'bad_duration'],
  [[], 'flag_required'],
  [['--for', '1h', '--revision', '0'], 'out_of_range'],
])('%j is %s', async (flags, code) => {
  const result = await run(...flags, ...(await marked('one', 7)));
  expect([result.exitCode, errorCode(result)]).toEqual([2, code]);
  expect(await written()).toBeUndefined();
});

it('signs for no site that verifiers cannot have', async () => {
  const site = 'a site';
  const instance = await marked('one', 7, HEAD, site);
  const result = await runInProcess([
    ...['bundle', 'break-glass', '--auth-site', site, '--key', at('offline.pem'), '--for', '1h'],
    ...['--out', at('break-glass.jws'), ...instance],
  ]);
  expect([result.exitCode, errorCode(result)]).toEqual([3, 'value_invalid']);
});
