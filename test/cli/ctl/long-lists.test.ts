/** Tests `ctl` on lists of many pages: a real Control over HTTP, which refuses a page in the middle as its rate limit does. */
import { writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, beforeEach, expect, it } from '@jest/globals';
import { runCli } from '../../../src/cli/program.ts';
import { ApiProblem } from '../../../src/control/domain/api-problem.ts';
import { newVersion } from '../../../src/control/resource/change.ts';
import { Output } from '../../../src/process/program/output.ts';
import { runInProcess } from '../../support/cli/in-process.ts';
import { expectCliError } from '../../support/cli/run-cli.ts';
import { ApiFixture } from '../../support/control/api-fixture.ts';

const EVENTS = 1600;
let fixture: ApiFixture;
let tokenFile: string;
let answered: { readonly path: string; readonly status: number }[] = [];

beforeAll(async () => {
  fixture = await ApiFixture.open({
    prepare: (app) => {
      app.addHook('onResponse', async (request, reply) => {
        answered.push({ path: request.url, status: reply.statusCode });
      });
      // How many requests a second a machine sends depends on the machine.
      app.addHook('preHandler', async ({ url }) => {
        if (url.startsWith('/v1/audit-events') && answered.length === 2)
          throw new ApiProblem('rate_limited', undefined, { retryAfterSeconds: 1 });
      });
    },
  });
  tokenFile = join(fixture.directory, 'token');
  await writeFile(tokenFile, fixture.root, { mode: 0o600 });
  await fixture.store.writeUnaudited(undefined, async ({ audit, environments }) => {
    for (let second = 0; second < 4; second++) {
      const entries = Array.from({ length: EVENTS / 4 }, (_, index) => ({
        kind: index % 2 === 0 ? 'proofgate.control.fleet.create' : 'proofgate.control.fleet.delete',
        actor: index % 4 === 0 ? 'oidc:https://login.example|ada' : 'bootstrap',
        resource: { kind: 'fleet', id: `flt_${second}_${index}` },
        place: {},
      }));
      await audit.appendAll(entries as never, fixture.ms + second * 3_600_000);
    }
    for (let index = 0; index < 300; index++) {
      const row = { id: `env_${String(index).padStart(26, '0')}`, name: `name-${index}` };
      await environments.add({ ...row, ...newVersion(fixture.ms) });
    }
  });
});
afterAll(() => fixture.close());
beforeEach(() => {
  answered = [];
});

function connection(): readonly string[] {
  return ['--control-url', `http://127.0.0.1:${fixture.port}`, '--token-file', tokenFile];
}

function get(...args: readonly string[]) {
  return runInProcess(['ctl', 'get', ...args, ...connection()]);
}

function linesOf(stdout: string): readonly { readonly [member: string]: unknown }[] {
  return stdout
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line));
}

it('exports the whole audit trail, waiting as Control says', async () => {
  const { exitCode, stdout, stderr } = await get('audit', '--output', 'jsonl');
  expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' });
  const events = linesOf(stdout);
  expect(events).toHaveLength(EVENTS);
  expect(new Set(events.map(({ audit_event_id: id }) => id)).size).toBe(EVENTS);
  expect(answered.filter(({ status }) => status === 429)).toHaveLength(1);
});

it('shows the newest events alone, and a period whole', async () => {
  const shown = linesOf((await get('audit', '--output', 'json')).stdout)[0]?.items;
  expect(shown).toHaveLength(200);
  const at = (hour: number) => new Date(fixture.ms + hour * 3_600_000).toISOString();
  const period = await get('audit', '--since', at(1), '--until', at(3), '--output', 'json');
  expect(linesOf(period.stdout)[0]?.items).toHaveLength(EVENTS / 2);
});

it.each([
  [['--actor', 'oidc:https://login.example|ada'], EVENTS / 4],
  [['--kind', 'fleet.delete'], EVENTS / 2],
  [['--resource', 'flt_2_7'], 1],
  [['--until', '400000h'], 0],
])('audit %j selects at Control', async (filter, count) => {
  const { exitCode, stdout } = await get('audit', ...filter, '--output', 'jsonl');
  expect({ exitCode, count: linesOf(stdout).length }).toEqual({ exitCode: 0, count });
});

it('looks a name up by one request', async () => {
  const { stdout } = await get('environment', 'name-250', '--output', 'json');
  expect(linesOf(stdout)).toMatchObject([{ name: 'name-250' }]);
  const paths = answered.filter(({ status }) => status === 200).map(({ path }) => path);
  expect(paths).toEqual([
    '/v1/environments?name=name-250&limit=200',
    `/v1/environments/env_${'250'.padStart(26, '0')}`,
  ]);
});

it('shows on a terminal how many items were read', async () => {
  const stdout = new PassThrough();
  const stderr = Object.assign(new PassThrough(), { isTTY: true });
  const shown = Promise.all([text(stdout), text(stderr)]);
  const output = new Output(stdout, stderr, {});
  const args = ['ctl', 'get', 'environments', ...connection()];
  expect(await runCli(args, { env: {}, output, version: '0.0.0' })).toBe(0);
  stdout.end();
  stderr.end();
  const [table, progress] = await shown;
  expect(table).toContain('name-299');
  expect(progress).toContain('200');
});

it.each([
  ['targets', '--actor', 'bootstrap'],
  ['clients', '--state', 'active'],
  ['audit', '--client', 'billing'],
])('%s %s: a filter that selects nothing there', async (...args) => {
  expectCliError(await get(args[0], '--site', 'shop', ...args.slice(1)), 'filter_unused', 2);
});

it.each(['yesterday', '2026-13-01T00:00:00Z'])('--since %s is no time', async (since) => {
  expectCliError(await get('audit', '--since', since), 'bad_time', 2);
});

it('a limit that does not end soon is an error', async () => {
  const server = createServer((_request, response) => {
    const headers = { 'content-type': 'application/problem+json', 'retry-after': '3600' };
    response.writeHead(429, headers).end(JSON.stringify({ code: 'rate_limited', title: 'too many' }));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const args = [
    'ctl',
    'get',
    'sites',
    '--control-url',
    `http://127.0.0.1:${port}`,
    '--token-file',
    tokenFile,
  ];
  expectCliError(await runInProcess(args), 'rate_limited', 5);
  await new Promise((resolve) => server.close(resolve));
});
