/** Tests connections that a worker was offered and had not taken over when it was killed. */
import cluster, { type Worker } from 'node:cluster';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { closeLostHandoffs } from '../../../src/process/node-internals/cluster-handoffs.ts';

const LISTEN = "require('node:net').createServer((socket) => socket.end('taken')).listen(0, '127.0.0.1')";
let folder = '';

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'proofgate-cluster-'));
  const script = join(folder, 'worker.cjs');
  writeFileSync(script, LISTEN);
  cluster.schedulingPolicy = cluster.SCHED_RR;
  cluster.setupPrimary({ exec: script, execArgv: [] });
});
afterAll(() => rmSync(folder, { recursive: true }));

async function listening(worker: Worker): Promise<number> {
  const [{ port }] = await once(worker, 'listening');
  return port;
}

it('closes what a killed worker had not taken over', async () => {
  const worker = cluster.fork();
  closeLostHandoffs(worker);
  const port = await listening(worker);
  worker.process.kill('SIGSTOP');
  const socket = connect(port, '127.0.0.1');
  await once(socket, 'connect');
  worker.process.kill('SIGKILL');
  socket.resume();
  await once(socket, 'close');
});

it('leaves what a worker took over to it', async () => {
  const worker = cluster.fork();
  closeLostHandoffs(worker);
  const socket = connect(await listening(worker), '127.0.0.1');
  const [said] = await once(socket, 'data');
  expect(String(said)).toBe('taken');
  worker.kill('SIGKILL');
  await once(worker, 'exit');
});
