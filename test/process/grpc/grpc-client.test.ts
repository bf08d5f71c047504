/** The gRPC client notices a server that no longer answers, although its connection stays open. */
import { mkdtemp, rm } from 'node:fs/promises';
import { createConnection, createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { grpcService } from '../../../src/process/grpc/grpc-client.ts';
import type { WorkloadMethods } from '../../../src/spiffe/workload-api/workload-api.ts';
import { SpiffeAuthority } from '../../support/fakes/spiffe-authority.ts';
import { FakeWorkloadApi } from '../../support/fakes/workload-api.ts';

let directory: string;
let agent: FakeWorkloadApi;
let proxy: Server;
let sockets: Socket[];
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'pg-grpc-'));
  agent = await new FakeWorkloadApi(join(directory, 'agent.sock')).start();
  sockets = [];
  proxy = createServer((caller) => {
    const upstream = createConnection(agent.socketPath);
    caller.pipe(upstream).pipe(caller);
    sockets.push(caller, upstream);
  });
  await new Promise<void>((resolve) => void proxy.listen(join(directory, 'proxy.sock'), resolve));
});
afterEach(async () => {
  for (const socket of sockets) socket.destroy();
  proxy.close();
  await agent.stop();
  await rm(directory, { recursive: true });
});

test('a stream of a server that froze ends after the keepalive', async () => {
  const authority = SpiffeAuthority.create('shop.example');
  agent.serveSvids([{ spiffeId: 'spiffe://shop.example/a', svid: authority.issueSvid('/a'), authority }]);
  const open = grpcService<WorkloadMethods>({
    file: 'spiffe/workload.proto',
    service: 'SpiffeWorkloadAPI',
    metadata: { 'workload.spiffe.io': 'true' },
    keepalive: { timeMs: 100, timeoutMs: 100 },
  });
  const connection = open(`unix:${join(directory, 'proxy.sock')}`);
  const freeze = () => {
    for (const socket of sockets) socket.unpipe();
  };
  const { signal } = new AbortController();
  await expect(connection.stream('FetchX509SVID', {}, freeze, { signal })).rejects.toMatchObject({
    code: 14,
  });
  connection.close();
});
