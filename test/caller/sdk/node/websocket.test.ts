/** A WebSocket whose handshake the SDK signs, through the reverse proxy with the real verifier. Source: docs/tutorials/signing.md "WebSockets". */
import { createHash } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { Agent, WebSocket } from 'undici';
import { Signer } from '../../../../src/caller/sdk/index.ts';
import { ORIGIN, writeBillingKey } from '../../../support/caller/egress-fixture.ts';
import { useProxies, useUpstreams, withRoutes } from '../../../support/points/proxy-fixture.ts';
import { ROUTES } from '../../../support/site/routes.ts';

const proxies = useProxies();
const upstreamWith = useUpstreams();
let folder = '';
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'pg-websocket-'));
});
afterEach(() => rm(folder, { recursive: true }));

/** Accepts each handshake, and sends one text frame. */
async function greeting() {
  const { server, url } = await upstreamWith((_request, response) => response.writeHead(426).end());
  server.on('upgrade', ({ headers }, socket) => {
    const accept = createHash('sha1')
      .update(`${headers['sec-websocket-key']}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`)
      .digest('base64');
    const lines = ['Connection: Upgrade', 'Upgrade: websocket', `Sec-WebSocket-Accept: ${accept}`];
    socket.on('error', () => undefined);
    socket.write(`HTTP/1.1 101 Switching Protocols\r\n${lines.join('\r\n')}\r\n\r\n`);
    socket.write(Buffer.concat([Buffer.from([0x81, 5]), Buffer.from('hello')]));
  });
  return url;
}

it('opens with signed headers, and not a second time with the same ones', async () => {
  proxies.snapshot = withRoutes(proxies.snapshot, (route) => ({ ...route, upgrade: 'websocket' }));
  const { address } = await proxies.open(await greeting());
  const keyFile = join(folder, 'key.pem');
  await writeBillingKey(proxies.site, keyFile);
  const signer = await Signer.open({ keyFile });
  const target = ROUTES.readOrder.path_template.replace(/\{.*\}/, '4711');
  const headers = await signer.sign({ url: `${ORIGIN}${target}` });
  const dispatcher = new Agent({
    connect: (_options, callback) => {
      const socket = connect(address, () => callback(null, socket)).on('error', (error) =>
        callback(error, null),
      );
    },
  });
  const outcome = () =>
    new Promise<string>((resolve) => {
      const socket = new WebSocket(`${ORIGIN.replace('http', 'ws')}${target}`, { headers, dispatcher });
      socket.addEventListener('message', ({ data }) => {
        resolve(String(data));
        socket.close();
      });
      socket.addEventListener('error', () => resolve('failed'));
    });
  expect([await outcome(), await outcome()]).toEqual(['hello', 'failed']);
  await dispatcher.destroy();
});
