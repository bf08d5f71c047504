/** `proofgate dev`, as a user runs it; the example of docs/tutorials/signing.md. */
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { Signer } from '../../../src/caller/sdk/index.ts';
import { type DevSite, startDev } from '../../support/caller/dev-fixture.ts';
import { runProofgate } from '../../support/harness/proofgate-command.ts';
import { waitFor } from '../../support/wait.ts';

let dev: DevSite;
beforeAll(async () => {
  dev = await startDev();
});
afterAll(() => dev.stop());

const printed = (text: string) =>
  waitFor(text, async () => dev.child.stdoutLines.indexOf(text) + 1 || undefined);

it('prints the address, the key, and how to sign in each language', () => {
  const text = dev.child.stdoutLines.join('\n');
  for (const part of ['Signer.open(', 'proofgate.Auth(', 'proofgate.Transport{', 'proofgate request GET']) {
    expect(text).toContain(part);
  }
  expect(text).toContain(dev.keyFile);
  expect(statSync(dev.keyFile).mode & 0o777).toBe(0o600);
});

it('lets the command line and the SDK call the API, by either name', async () => {
  const url = `${dev.origin}/v1/orders/7?expand=lines`;
  const { exitCode } = await runProofgate(['request', 'GET', url, '--key', dev.keyFile]);
  expect(exitCode).toBe(0);
  await printed(`allowed  GET ${url}`);
  const signer = await Signer.open({ keyFile: dev.keyFile });
  const { status } = await signer.fetch(`http://localhost:${new URL(dev.origin).port}/`, {
    method: 'DELETE',
  });
  expect(status).toBe(200);
  expect(dev.received.at(-1)?.headers['x-proofgate-subject']).toBe('client:dev');
});

it('explains a changed body with the lines that differ, without header values', async () => {
  const url = `${dev.origin}/v1/orders`;
  const signer = await Signer.open({ keyFile: dev.keyFile });
  const secret = { 'x-note': 'between-us' };
  const headers = await signer.sign({
    method: 'POST',
    url,
    body: 'abc',
    headers: secret,
    signHeaders: ['x-note'],
  });
  const answer = await fetch(url, {
    method: 'POST',
    body: 'abd',
    headers: { ...headers, 'x-note': 'elsewhere' },
  });
  expect(answer.status).toBe(403);
  const at = await printed(`DENIED   POST ${url}`);
  expect(dev.child.stdoutLines.slice(at, at + 5)).toEqual([
    '         403 request_binding_mismatch (content-sha256)',
    '         content-sha256 signed:   ungWv48Bz-pBQUDeXa4iI7ADYaOWF3qctBD_YfIAFa0',
    '         content-sha256 received: pS0VnyYrLG3bckphhAvvw26zDIiHekAwtly-himESck',
    '         header.x-note differs',
    expect.stringContaining('compare the lines'),
  ]);
  expect(dev.child.stdoutLines.join()).not.toMatch(/between-us|elsewhere/);
});

it('explains a request without proof', async () => {
  expect((await fetch(`${dev.origin}/none`)).status).toBe(401);
  await printed(`DENIED   GET ${dev.origin}/none`);
  expect(dev.child.stdoutLines).toContain('         401 invalid_request_proof (authorization_missing)');
});

it('says that no route has a path with a slash at its end', async () => {
  expect((await fetch(`${dev.origin}/orders/`)).status).toBe(403);
  const at = await printed(`DENIED   GET ${dev.origin}/orders/`);
  expect(dev.child.stdoutLines[at + 1]).toContain('"/"');
});

it('denies a copy of a request', async () => {
  const url = `${dev.origin}/once`;
  const headers = await (await Signer.open({ keyFile: dev.keyFile })).sign({ url });
  const statuses = [await fetch(url, { headers }), await fetch(url, { headers })].map(({ status }) => status);
  expect(statuses).toEqual([200, 403]);
});

it('writes decisions as JSON, and removes its files at the end', async () => {
  const other = await startDev(['--output', 'json']);
  await fetch(`${other.origin}/x`);
  const [, line = ''] = await other.child.waitForLine(/^(\{"outcome".*)$/);
  expect(JSON.parse(line)).toMatchObject({ outcome: 'denied', status: 401, reason: 'invalid_request_proof' });
  const headers = await (await Signer.open({ keyFile: other.keyFile })).sign({ url: `${other.origin}/x` });
  await fetch(`${other.origin}/y`, { headers });
  const [, changed = ''] = await other.child.waitForLine(/^(\{"outcome".*request_binding_mismatch.*)$/);
  expect(JSON.parse(changed).different).toEqual([{ name: 'target', signed: '/x', received: '/y' }]);
  await other.stop();
  expect(existsSync(`${other.keyFile}.enrollment.json`)).toBe(false);
  expect(other.child.exitStatus()?.code).toBe(0);
});

it('overwrites no key', async () => {
  const existing = `${dev.keyFile}.mine`;
  writeFileSync(existing, 'precious');
  const args = ['dev', '--upstream', dev.upstreamOrigin, '--listen', '127.0.0.1:0', '--key', existing];
  const { exitCode, stderr } = await runProofgate(args);
  expect([exitCode, stderr]).toEqual([2, expect.stringContaining('file_exists')]);
  expect(readFileSync(existing, 'utf8')).toBe('precious');
});
