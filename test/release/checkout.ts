/**
 * A separate checkout for making releases: a repository with this checkout's files, committed, so that tests cover uncommitted
 * changes.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import { cpSync, existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { describe, it } from '@jest/globals';
import { whyNoSession } from '../docs/sessions/run-session.ts';
import { SESSIONS } from '../docs/sessions/sessions.ts';
import { checkoutPath } from '../support/harness/checkout.ts';

export interface ReleaseCheckout {
  readonly root: string;
  /** The signing key of the session's release, readable by its owner only. */
  readonly keyFile: string;
  readonly publicKeyFile: string;
  /** Runs `scripts/release/release.mjs` there. */
  release(...args: readonly string[]): Run;
  /** Changes its node_modules, so that they no longer match the lock file. */
  installOtherCompiler(): void;
  remove(): void;
}

export interface Run {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

const DAY = '2026-01-02T03:04:05Z';

const TOOLS = [
  ['helm', 'bin', 'helm'],
  ['sdk-python', 'packages'],
].map((path) => checkoutPath('.cache', ...path));

/** Whether the tools are there, and the session that makes the release can run. */
export function canRelease(): boolean {
  return TOOLS.every((path) => existsSync(path)) && whyNoSession(SESSIONS.release) === undefined;
}

/** A skipped test states the reason in its name. */
export function describeRelease(name: string, tests: () => void): void {
  if (canRelease()) describe(name, tests);
  else it.skip(`${name} (skips: needs make helm-tools sdk-tools, and namespaces)`, () => {});
}

export function runScript(
  root: string,
  script: string,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Run {
  const { status, stderr, stdout } = spawnSync(process.execPath, [join(root, script), ...args], {
    cwd: root,
    env: { ...process.env, ...env },
    encoding: 'utf8',
  });
  return { status, stderr, stdout };
}

/** @param keys the folder of the signing key and of its public key */
export function makeReleaseCheckout(keys: string): ReleaseCheckout {
  const folder = mkdtempSync(join(tmpdir(), 'pg-release-'));
  const root = join(folder, 'checkout');
  for (const file of git(checkoutPath(), 'ls-files', '--cached', '--others', '--exclude-standard')) {
    const from = checkoutPath(file);
    if (!existsSync(from)) continue;
    mkdirSync(dirname(join(root, file)), { recursive: true });
    cpSync(from, join(root, file));
  }
  for (const shared of ['node_modules', '.cache']) symlinkSync(checkoutPath(shared), join(root, shared));
  git(root, 'init', '--quiet');
  writeFileSync(join(root, '.git', 'info', 'exclude'), 'node_modules\n.cache\n');
  commit(root);
  return {
    root,
    keyFile: join(keys, 'release-key.pem'),
    publicKeyFile: join(keys, 'release-key.pub.pem'),
    release: (...args) => runScript(root, 'scripts/release/release.mjs', args),
    installOtherCompiler: () => {
      const compiler = join(root, 'node_modules', 'typescript', 'bin', 'tsc');
      rmSync(join(root, 'node_modules'));
      mkdirSync(dirname(compiler), { recursive: true });
      const writes = "require('node:fs').mkdirSync('dist/cli', { recursive: true });";
      writeFileSync(compiler, `${writes} require('node:fs').writeFileSync('dist/cli/main.js', 'another');\n`);
    },
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}

export function writeKeys(folder: string, name: string) {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519');
  const keyFile = join(folder, `${name}.pem`);
  const publicKeyFile = join(folder, `${name}.pub.pem`);
  writeFileSync(keyFile, privateKey.export({ type: 'pkcs8', format: 'pem' }), { mode: 0o600 });
  writeFileSync(publicKeyFile, publicKey.export({ type: 'spki', format: 'pem' }));
  return { keyFile, publicKeyFile };
}

function commit(root: string): void {
  git(root, 'add', '--all');
  git(root, 'commit', '--quiet', '--message', 'Of a test');
}

function git(cwd: string, ...args: readonly string[]): readonly string[] {
  const who = { name: 'Tester', email: 'tester@shop.example' };
  const env = {
    ...process.env,
    GIT_AUTHOR_NAME: who.name,
    GIT_AUTHOR_EMAIL: who.email,
    GIT_COMMITTER_NAME: who.name,
    GIT_COMMITTER_EMAIL: who.email,
    GIT_AUTHOR_DATE: DAY,
    GIT_COMMITTER_DATE: DAY,
  };
  return execFileSync('git', [...args], { cwd, env, encoding: 'utf8', maxBuffer: 2 ** 26 })
    .split('\n')
    .filter(Boolean);
}
