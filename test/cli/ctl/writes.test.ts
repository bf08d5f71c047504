/** Writes of `ctl` that go wrong between Control and the operator, against a small server in place of Control. */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { runInProcess } from '../../support/cli/in-process.ts';
import { expectCliError } from '../../support/cli/run-cli.ts';

let directory: string;
let server: Server;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'pg-ctl-writes-'));
  await writeFile(join(directory, 'token'), 'x'.repeat(47), { mode: 0o600 });
});
afterEach(async () => {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
  await rm(directory, { recursive: true });
});

async function ctl(args: readonly string[], control: RequestListener) {
  server = createServer(control);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const connection = ['--control-url', `http://127.0.0.1:${port}`, '--token-file', join(directory, 'token')];
  return runInProcess(['ctl', ...args, ...connection]);
}

const JSON_BODY = { 'content-type': 'application/json' };

it.each([
  ['delete', 'environment', 'env_1', '--yes'],
  ['rename', 'environment', 'env_1', 'production'],
  ['draft', 'tas_1', '--audience', 'shop'],
])('%s changes nothing that somebody else has changed since it was read', async (...args) => {
  let version = 1;
  const written: unknown[] = [];
  const run = await ctl(args, ({ headers, method }, response) => {
    if (method === 'GET') {
      const body = { revisions: [{ revision: 2, state: 'draft' }] };
      response.writeHead(200, { ...JSON_BODY, etag: `"${version}"` }).end(JSON.stringify(body));
      version += 1;
      return;
    }
    const ifMatch = headers['if-match'];
    if (ifMatch === undefined || ifMatch === `"${version}"`) written.push(method);
    response.writeHead(412, JSON_BODY).end(JSON.stringify({ code: 'precondition_failed', title: 'changed' }));
  });
  expectCliError(run, 'precondition_failed', 3);
  expect(written).toEqual([]);
});

it.each([
  [
    ['create', 'access-token', 'ci', '--role', 'viewer', '--scope', 'installation'],
    'access_token_id',
    'at_1',
  ],
  [['rotate-access-token', 'at_1'], 'access_token_id', 'at_1'],
  [['rotate-target-token', 'tgt_1'], 'target_id', 'tgt_1'],
])(
  '%j: a token whose file cannot be written is lost, and another can be issued',
  async (args, member, id) => {
    const folder = join(directory, 'folder');
    await mkdir(folder);
    const run = await ctl([...args, '--out', join(folder, 'file')], (_request, response) => {
      const body = JSON.stringify({ [member]: id, token: 'secret' });
      void rm(folder, { recursive: true }).then(() => response.writeHead(201, JSON_BODY).end(body));
    });
    expectCliError(run, 'token_lost', 3);
    const rotate = `proofgate ctl rotate-${member === 'target_id' ? 'target' : 'access'}-token ${id}`;
    expect(run.stderr).toContain(rotate);
    expect(run.stderr).not.toContain('secret');
  },
);

it.each([
  ['several revisions are suspended', [2, 3], [], 'revision_required', undefined],
  ['one of several is named', [2, 3], ['--revision', '2'], undefined, 2],
  ['one is suspended', [2], [], undefined, 2],
  ['none is suspended', [], [], 'source_state_conflict', undefined],
] as const)('resume, where %s', async (_what, suspended, flags, code, resumed) => {
  const written: unknown[] = [];
  const run = await ctl(['resume', 'tas_1', ...flags], ({ method, url }, response) => {
    if (method !== 'GET') written.push(url);
    const revisions = [1, 2, 3].map((revision) => ({
      revision,
      state: suspended.some((one) => one === revision) ? 'suspended' : 'retired',
    }));
    response.writeHead(200, JSON_BODY).end(JSON.stringify({ revisions, state: 'publishing' }));
  });
  if (code === undefined) expect(run.exitCode).toBe(0);
  else expectCliError(run, code, code === 'revision_required' ? 2 : 3);
  if (code === 'revision_required') expect(run.stderr).toMatch(/\b2, 3\b.*--revision/);
  expect(written).toEqual(resumed === undefined ? [] : [`/v1/sources/tas_1/revisions/${resumed}/resume`]);
});
