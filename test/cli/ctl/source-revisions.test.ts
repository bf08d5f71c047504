/** Verbs for a source with several revisions at once, against a small server in place of Control that keeps their states. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { runInProcess } from '../in-process.ts';
import { expectCliError } from '../run-cli.ts';

let directory: string;
let server: Server;
let states: Map<number, string>;
const acts: string[] = [];

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'pg-ctl-source-'));
  await writeFile(join(directory, 'token'), 'x'.repeat(47), { mode: 0o600 });
  acts.length = 0;
  server = createServer(({ method, url = '' }, response) => {
    const [, revision, verb] = /revisions\/(\d+)\/(\w+)$/.exec(url) ?? [];
    if (method === 'POST') {
      acts.push(`${verb} ${revision}`);
      states.set(Number(revision), verb === 'retire' ? 'retired' : `${verb}ed`);
    }
    const revisions = [...states].map(([number, state]) => ({ revision: number, state }));
    const body =
      method === 'POST' ? { state: states.get(Number(revision)) } : { source_id: 'tas_1', revisions };
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body));
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
  const token = join(directory, 'token');
  return runInProcess(['ctl', ...args, '--control-url', `http://127.0.0.1:${port}`, '--token-file', token]);
}

it('retire ends every revision, the active one last', async () => {
  states = new Map([
    [1, 'retired'],
    [2, 'active'],
    [3, 'draft'],
    [4, 'publishing'],
  ]);
  expect((await ctl('retire', 'tas_1')).exitCode).toBe(0);
  expect(acts).toEqual(['retire 4', 'retire 2']);
});

it('retire of a source without one says so', async () => {
  states = new Map([[1, 'draft']]);
  expectCliError(await ctl('retire', 'tas_1'), 'source_state_conflict', 3);
});

it.each(['activating', 'publishing'])('suspend is refused while a revision is %s', async (state) => {
  states = new Map([
    [1, 'active'],
    [2, state],
  ]);
  expectCliError(await ctl('suspend', 'tas_1'), 'source_state_conflict', 3);
  expect(acts).toEqual([]);
});

it('suspend acts on the active revision', async () => {
  states = new Map([[1, 'active']]);
  expect((await ctl('suspend', 'tas_1')).exitCode).toBe(0);
  expect(acts).toEqual(['suspend 1']);
});
