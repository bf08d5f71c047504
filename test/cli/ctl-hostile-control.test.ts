/** Tests `ctl` against a Control, or an impostor in its place, that sends hostile answers to the operator. */
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { runInProcess } from '../support/cli/in-process.ts';
import { expectCliError } from '../support/cli/run-cli.ts';
import { newSigningKey } from '../support/fixtures/bundle-content.ts';

let directory: string;
let server: Server;
let answers: (asked: number) => object;
let asked = 0;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'pg-ctl-hostile-'));
  await writeFile(join(directory, 'token'), 'x'.repeat(47), { mode: 0o600 });
  asked = 0;
  server = createServer((_request, response) => {
    asked += 1;
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(answers(asked)));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
});
afterEach(async () => {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
  await rm(directory, { recursive: true });
});

function ctl(...args: readonly string[]) {
  const { port } = server.address() as AddressInfo;
  const url = `http://127.0.0.1:${port}`;
  return runInProcess(['ctl', ...args, '--control-url', url, '--token-file', join(directory, 'token')]);
}

const one = newSigningKey().publicKey;
const other = newSigningKey().publicKey;
const listed = (more: object = {}) => ({
  ...{ signing_key_id: 'sk_1', purpose: 'bundle', state: 'active', thumbprint: one.thumbprint, jwk: one.jwk },
  ...more,
});

it('keys to pin are written as they are compared', async () => {
  answers = () => ({ items: [listed(), listed({ purpose: 'freshness' })] });
  const run = await ctl('signing-keys', '--site', 's', '--out-dir', directory);
  expect(run).toMatchObject({ exitCode: 0, stdout: expect.stringContaining(one.thumbprint) });
  const written: unknown = JSON.parse(await readFile(join(directory, 'bundle-1.jwk.json'), 'utf8'));
  expect(written).toEqual(one.jwk);
});

it.each([
  ['another key under a thumbprint that people trust', { jwk: other.jwk }],
  ['a private key', { jwk: { ...one.jwk, d: 'A'.repeat(43) } }],
  ['no key', { jwk: { kty: 'oct', k: 'AAAA' } }],
  ['a purpose that leads elsewhere', { purpose: '../bundle' }],
  ['a state that acts in a terminal', { state: '\u001b[31m' }],
  ['an ID that acts in a terminal', { signing_key_id: '\u001b[31m' }],
])('%s: nothing is written', async (_what, more) => {
  answers = () => ({ items: [listed(), listed(more)] });
  expectCliError(await ctl('signing-keys', '--site', 's', '--out-dir', directory), 'answer_unexpected', 5);
  expect(await readdir(directory)).toEqual(['token']);
});

it.each<[what: string, answer: (asked: number) => object, most: number]>([
  ['the same page again and again', () => ({ items: [{}], next_cursor: 'AAAA' }), 2],
  ['empty pages', (count) => ({ items: [], next_cursor: `A${count}` }), 1000],
])('a list of %s has an end', async (_what, answer, most) => {
  answers = answer;
  expectCliError(await ctl('get', 'sites'), 'answer_unexpected', 5);
  expect(asked).toBe(most);
});

it('a list without items is no list', async () => {
  answers = () => ({});
  expectCliError(await ctl('get', 'signing-keys', '--site', 's'), 'answer_unexpected', 5);
});

const ACTING = '\u001b[31m\u2028\n.';
it.each<[verb: string, args: readonly string[], answer: object]>([
  ['get', ['sites'], { items: [{ site_id: 's', display_name: ACTING }] }],
  ['apply', ['--dry-run', '-f', 'site.json'], { steps: [{ verb: 'create', kind: 'client', name: ACTING }] }],
  ['detach', ['tgt_1', '--yes'], { state: ACTING }],
])('%s shows names that act in a terminal as text', async (verb, args, answer) => {
  answers = () => answer;
  const file = join(directory, 'site.json');
  await writeFile(file, JSON.stringify({ site: { site_id: 's' } }));
  const { exitCode, stdout } = await ctl(verb, ...args.map((arg) => (arg === 'site.json' ? file : arg)));
  expect(exitCode).toBe(0);
  expect(stdout).toContain('\\u{1b}[31m\\u{2028}\\u{a}.');
});
