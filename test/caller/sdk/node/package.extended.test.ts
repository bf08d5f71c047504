/** The npm package `@proofgate/client`, installed into an empty project: no dependencies, and types with which the documents compile. */
import { execFileSync, spawnSync } from 'node:child_process';
import {
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
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { blocksOf } from '../../../support/docs/blocks.ts';
import { checkoutPath } from '../../../support/harness/checkout.ts';
import { packWorkspace } from '../../../support/harness/workspaces.ts';

const MAX_PACKED_BYTES = 100_000;

let folder: string;
let packed: string;
const inProject = (...path: readonly string[]) => join(folder, 'project', ...path);
const installed = (...path: readonly string[]) => inProject('node_modules', '@proofgate', 'client', ...path);
const run = (command: string, args: readonly string[], cwd: string) =>
  execFileSync(command, [...args], { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'pg-client-'));
  mkdirSync(inProject());
  writeFileSync(inProject('package.json'), '{ "type": "module", "private": true }');
  packed = packWorkspace('@proofgate/client', folder);
  run('npm', ['install', '--offline', '--no-audit', '--no-fund', packed], inProject());
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

it('is small, of the version of the project, and installs nothing else', () => {
  const { version } = JSON.parse(readFileSync(checkoutPath('package.json'), 'utf8'));
  const manifest = JSON.parse(readFileSync(installed('package.json'), 'utf8'));
  expect(manifest).toMatchObject({ name: '@proofgate/client', version, dependencies: {} });
  expect(manifest.private).toBeUndefined();
  expect(statSync(packed).size).toBeLessThan(MAX_PACKED_BYTES);
  const lock = JSON.parse(readFileSync(inProject('package-lock.json'), 'utf8'));
  expect(Object.keys(lock.packages)).toEqual(['', 'node_modules/@proofgate/client']);
});

it('has every module that its modules load', () => {
  const modules = readdirSync(installed('dist'), { recursive: true, encoding: 'utf8' });
  const loaded = modules
    .filter((file) => file.endsWith('.js'))
    .map((file) => `await import(${JSON.stringify(installed('dist', file))});`);
  expect(loaded.length).toBeGreaterThan(20);
  run(process.execPath, ['--input-type=module', '--eval', loaded.join('\n')], inProject());
});

it('has types with which the documented code compiles, and which fit undici', () => {
  const types = inProject('node_modules', '@types');
  mkdirSync(types);
  symlinkSync(checkoutPath('node_modules', '@types', 'node'), join(types, 'node'));
  symlinkSync(checkoutPath('node_modules', 'undici-types'), inProject('node_modules', 'undici-types'));
  symlinkSync(checkoutPath('node_modules', 'undici'), inProject('node_modules', 'undici'));
  const documented = ['docs/tutorials/signing.md', 'sdk/node/README.md']
    .flatMap(blocksOf)
    .filter(({ language }) => language === 'ts');
  const texts = [...documented.map(({ text }) => text), COMPOSED];
  const files = texts.map((text, at) => {
    writeFileSync(inProject(`documented-${at}.ts`), text);
    return `documented-${at}.ts`;
  });
  expect(files.length).toBe(4);
  const tsc = checkoutPath('node_modules', 'typescript', 'bin', 'tsc');
  const options = ['--strict', '--noEmit', '--target', 'es2023', '--module', 'nodenext', '--types', 'node'];
  expect(
    spawnSync(process.execPath, [tsc, ...options, ...files], { cwd: inProject(), encoding: 'utf8' }).stdout,
  ).toBe('');
});

const COMPOSED = `import { Signer } from '@proofgate/client';
import { Agent, interceptors } from 'undici';
const signer = await Signer.open({ keyFile: 'key.pem' });
export const agent = new Agent().compose(signer.interceptor(), interceptors.retry());
`;
