/** The memory of `proofgate signer` does not grow with the bodies that pass through it, in either direction. */
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { Agent, createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import { createSecureServer, type Http2ServerRequest, type Http2ServerResponse } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, it } from '@jest/globals';
import { ORIGIN, SECURE_ORIGIN, writeBillingKey } from '../../support/caller/egress-fixture.ts';
import { makeCertificates } from '../../support/harness/certificates.ts';
import { type Child, startChild } from '../../support/harness/child.ts';
import { proofgateCommand } from '../../support/harness/program.ts';
import { AUTHORITY } from '../../support/site/routes.ts';
import { createSite } from '../../support/site/site.ts';

const IN_FLIGHT = 64;
const LARGE = Buffer.alloc(10_485_760, 1);
const SMALL = LARGE.subarray(0, 1_024);
/** Request bodies in memory would be 640 MiB. */
const MAX_GROWTH_MIB = 256;

const ends: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

/** Answers with a body of the same length. */
function echo(
  incoming: IncomingMessage | Http2ServerRequest,
  response: ServerResponse | Http2ServerResponse,
): void {
  let bytes = 0;
  incoming.on('data', (chunk: Buffer) => {
    bytes += chunk.length;
  });
  incoming.on('end', () => response.end(LARGE.subarray(0, bytes)));
}

async function startSigner(isHttp2: boolean): Promise<{ signer: Child; port: number }> {
  const site = await createSite();
  const certificates = await makeCertificates(AUTHORITY, 'spiffe://shop.example/a');
  const folder = await mkdtemp(join(tmpdir(), 'pg-signer-memory-'));
  ends.push(() => Promise.all([site.remove(), certificates.remove(), rm(folder, { recursive: true })]));
  const key = join(folder, 'key.pem');
  await writeBillingKey(site, key);
  const { cert, key: privateKey } = certificates.server;
  const pair = { cert, key: privateKey };
  // Megabytes, for the answers of all streams.
  const upstream = isHttp2
    ? createSecureServer({ ...pair, maxSessionMemory: 4_000 }, echo)
    : createServer(echo);
  await new Promise<void>((resolve) => upstream.listen(0, '127.0.0.1', resolve));
  ends.push(() => upstream.close());
  const signer = startChild(
    proofgateCommand([
      ...['signer', '--key', key, '--listen', '127.0.0.1:0', '--admin-listen', '127.0.0.1:0'],
      ...['--upstream', isHttp2 ? SECURE_ORIGIN : ORIGIN, '--upstream-ca-file', certificates.ca.certPath],
      ...['--connect-to', `127.0.0.1:${(upstream.address() as AddressInfo).port}`],
    ]),
  );
  ends.push(() => signer.stop());
  const [, port] = await signer.waitForLine(/"listen":"127\.0\.0\.1:(\d+)"/);
  return { signer, port: Number(port) };
}

/** @returns the highest resident memory of the process so far, MiB */
async function send(signer: Child, port: number, body: Buffer, requests: number): Promise<number> {
  const agent = new Agent({ keepAlive: true });
  const one = () =>
    new Promise<void>((resolve, reject) => {
      const outgoing = request({ agent, method: 'POST', host: '127.0.0.1', port, path: '/v1/orders' });
      outgoing.on('error', reject).on('response', (response) => {
        let bytes = 0;
        response.on('data', (chunk: Buffer) => {
          bytes += chunk.length;
        });
        response.on('end', () => {
          if (response.statusCode === 200 && bytes === body.length) resolve();
          else reject(new Error(`${response.statusCode} with ${bytes} bytes`));
        });
      });
      outgoing.end(body);
    });
  let left = requests;
  const worker = async () => {
    while (left > 0) {
      left -= 1;
      await one();
    }
  };
  await Promise.all(Array.from({ length: IN_FLIGHT }, worker));
  agent.destroy();
  const status = await readFile(`/proc/${signer.pid}/status`, 'utf8');
  return Number(/^VmHWM:\s+(\d+) kB/m.exec(status)?.[1]) / 1_024;
}

it.each([
  ['HTTP/1.1', false],
  ['HTTP/2', true],
])('stays flat for 64 bodies of 10 MiB each way at one time, over %s', async (_protocol, isHttp2) => {
  const { port, signer } = await startSigner(isHttp2);
  const small = await send(signer, port, SMALL, 2_000);
  const large = await send(signer, port, LARGE, IN_FLIGHT);
  expect(large - small).toBeLessThan(MAX_GROWTH_MIB);
});
