/** Verbs that cannot be taken back ask on a terminal, and need `--yes` without one. */
import { spawn } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough, Readable } from 'node:stream';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import type { CliContext } from '../../../src/process/program/output.ts';
import { runInProcess } from '../../support/cli/in-process.ts';
import { expectCliError } from '../../support/cli/run-cli.ts';
import { proofgateCommand } from '../../support/harness/program.ts';

let directory: string;
let server: Server;
/** Steps of a declaration. */
let steps: readonly object[] = [];
/** Requests that change something, `PUT` with `dry_run=true` left out. */
let writes: string[] = [];

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'pg-ctl-confirm-'));
  await writeFile(join(directory, 'token'), 'x'.repeat(47), { mode: 0o600 });
  const clients = ['a', 'b'].map((id) => ({ client_id: id, display_name: id }));
  await writeFile(join(directory, 'site.json'), JSON.stringify({ site: { site_id: 'shop' }, clients }));
  server = createServer(({ method, url = '' }, response) => {
    if (method !== 'GET' && !url.includes('dry_run=true')) writes.push(`${method} ${url}`);
    const body = { steps, state: 'done', revoked_key_ids: ['dk_1'], name: 'old \u001b[31m cluster' };
    response.writeHead(200, { 'content-type': 'application/json', etag: '"1"' }).end(JSON.stringify(body));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
});
afterEach(() => {
  steps = [];
  writes = [];
});
afterAll(async () => {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
  await rm(directory, { recursive: true });
});

const lineOf = (words: readonly string[]) => {
  const { port } = server.address() as AddressInfo;
  const connection = ['--control-url', `http://127.0.0.1:${port}`, '--token-file', join(directory, 'token')];
  const given = words.map((word) => (word === 'site.json' ? join(directory, word) : word));
  return ['ctl', ...given, ...connection];
};
const ctl = (words: readonly string[], terminal?: CliContext['terminal']) =>
  runInProcess(lineOf(words), {}, terminal);

/** A terminal at which somebody types, and then ends the input. */
function typing(text: string) {
  const output = new PassThrough();
  return {
    input: Readable.from(text === '' ? [] : [text]),
    output,
    asked: () => String(output.read() ?? ''),
  };
}

const removals = (count: number) =>
  Array.from({ length: count }, (_, index) => ({
    verb: 'remove',
    kind: 'client',
    name: `c${index}`,
    changes: [],
  }));

const VERBS: readonly (readonly [words: readonly string[], steps: readonly object[]])[] = [
  [['delete', 'environment', 'env_1'], []],
  [['detach', 'tgt_1'], []],
  [['disable-bootstrap-token'], []],
  [['end-sessions', 'oidc:https://login.example|ada'], []],
  [['raise-floor', 'shop', '--above', '7'], []],
  [['retire', 'tas_1'], []],
  [['revoke', 'dk_1'], []],
  [['apply', '-f', 'site.json', '--prune'], removals(3)],
];

describe.each(VERBS)('ctl %s', (words, planned) => {
  it('without a terminal: one line, and nothing is done', async () => {
    steps = planned;
    expectCliError(await ctl(words), 'yes_required', 2);
    expect(writes).toEqual([]);
  });

  it.each(['n\n', '\n', '', 'yes, please\n', 'no\ny\n'])(
    'on a terminal, %j: nothing is done',
    async (typed) => {
      steps = planned;
      const terminal = typing(typed);
      expectCliError(await ctl(words, terminal), 'not_confirmed', 3);
      expect(writes).toEqual([]);
      expect(terminal.asked()).toMatch(/^This [\x20-\x7e]+\. Continue\? \[y\/N\] $/);
    },
  );

  it.each(['y\n', 'Y\n', 'yes\n', 'y'])('on a terminal, %j: it is done', async (typed) => {
    steps = planned;
    expect((await ctl(words, typing(typed))).exitCode).toBe(0);
    expect(writes).toHaveLength(1);
  });

  it('with --yes: it is done without a question', async () => {
    steps = planned;
    const terminal = typing('n\n');
    expect((await ctl([...words, '--yes'], terminal)).exitCode).toBe(0);
    expect(terminal.asked()).toBe('');
    expect(writes).toHaveLength(1);
  });
});

describe('ctl apply --prune', () => {
  const create = { verb: 'create', kind: 'client', name: 'a', changes: [] };

  // The file has two clients.
  it.each([
    ['half of the clients', removals(2)],
    ['one of three', removals(1)],
    ['a grant', [{ verb: 'remove', kind: 'grant', name: 'a orders', changes: [] }]],
  ])('does not ask about %s', async (_what, planned) => {
    steps = planned;
    expect((await ctl(['apply', '-f', 'site.json', '--prune'])).exitCode).toBe(0);
    expect(writes).toHaveLength(1);
  });

  it.each([
    ['two, when one of the file is new', [create, ...removals(2)]],
    ['the only route', [{ verb: 'remove', kind: 'route', name: 'r', changes: [] }]],
  ])('asks about %s', async (_what, planned) => {
    steps = planned;
    expectCliError(await ctl(['apply', '-f', 'site.json', '--prune']), 'yes_required', 2);
    expect(writes).toEqual([]);
  });

  it('shows what it would do without a question', async () => {
    steps = removals(3);
    expect((await ctl(['apply', '-f', 'site.json', '--prune', '--dry-run'])).exitCode).toBe(0);
    expect(writes).toEqual([]);
  });
});

/** Runs the command on a terminal of its own. */
function onTerminal(
  words: readonly string[],
  typed: string,
): Promise<{ exitCode: number | null; text: string }> {
  const { args, command } = proofgateCommand(lineOf(words));
  const script = 'import pty, sys; sys.exit(pty.spawn(sys.argv[1:]) >> 8)';
  const child = spawn('python3', ['-c', script, command, ...args], { env: { PATH: process.env.PATH } });
  let text = '';
  child.stdout.on('data', (chunk: Buffer) => {
    const before = text;
    text += chunk.toString();
    if (!before.includes('[y/N]') && text.includes('[y/N]')) child.stdin.write(typed);
  });
  return new Promise((resolve) => {
    child.on('close', (exitCode) => resolve({ exitCode, text }));
  });
}

it.each([
  ['y\r', 0, 1],
  ['n\r', 3, 0],
  // End of input.
  ['\u0004', 3, 0],
])(
  'a real terminal, %j: exit %i',
  async (typed, exitCode, count) => {
    const run = await onTerminal(['revoke', 'dk_1'], typed);
    expect(run.text).toContain('Continue? [y/N]');
    expect(run.exitCode).toBe(exitCode);
    expect(writes).toHaveLength(count);
  },
  60_000,
);
