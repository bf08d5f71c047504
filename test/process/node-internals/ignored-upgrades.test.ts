/** Tests that a server reads a request on whose upgrade it ignores, and takes other upgrades. */
import { createServer, type IncomingMessage, type ServerOptions } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { afterEach, describe, expect, it } from '@jest/globals';
import {
  hasIgnoredUpgrade,
  ignoreUpgradesOf,
  ignoringUpgrades,
} from '../../../src/process/node-internals/ignored-upgrades.ts';
import { waitFor } from '../../support/wait.ts';

const isIgnored = (rawHeaders: readonly string[]) => rawHeaders.includes('h2c');

const ends: (() => void)[] = [];
afterEach(() => {
  for (const end of ends.splice(0)) end();
});

async function serve(options: ServerOptions, change: (server: ReturnType<typeof createServer>) => void) {
  const seen: string[] = [];
  const note = (kind: string, request: IncomingMessage, body: string) =>
    seen.push(`${kind} ${request.method} ${body} ${hasIgnoredUpgrade(request) ? 'ignored' : 'none ignored'}`);
  const server = createServer(options, async (request, response) => {
    const body = Buffer.concat(await request.toArray()).toString();
    note('request', request, body);
    response.end();
  });
  change(server);
  server.on('upgrade', (request, socket, head) => {
    note('upgrade', request, head.toString());
    socket.destroy();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  ends.push(() => {
    server.closeAllConnections();
    server.close();
  });
  return { seen, port: (server.address() as AddressInfo).port };
}

describe.each<[string, ServerOptions, (server: ReturnType<typeof createServer>) => void]>([
  ['of a new server', { IncomingMessage: ignoringUpgrades(isIgnored) }, () => undefined],
  ['of a server that exists', {}, (server) => ignoreUpgradesOf(server, isIgnored)],
])('%s', (_name, options, change) => {
  it.each([
    ['GET', '', '', 'request GET  ignored'],
    ['POST', 'Content-Length: 4\r\n', 'body', 'request POST body ignored'],
    ['POST', 'Transfer-Encoding: chunked\r\n', '4\r\nbody\r\n0\r\n\r\n', 'request POST body ignored'],
  ])('reads an ignored %s on: %s', async (method, framing, body, expected) => {
    const { port, seen } = await serve(options, change);
    const client = connect(port, '127.0.0.1').on('error', () => undefined);
    ends.push(() => client.destroy());
    const head = `${method} / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n${framing}\r\n`;
    client.write(`${head}${body}`);
    await waitFor('the request', () => seen.length === 1);
    expect(seen).toEqual([expected]);
  });

  it('takes another upgrade, and a request without one', async () => {
    const { port, seen } = await serve(options, change);
    const client = connect(port, '127.0.0.1').on('error', () => undefined);
    ends.push(() => client.destroy());
    client.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n');
    await waitFor('the request', () => seen.length === 1);
    client.write('GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: foo\r\n\r\nmore');
    await waitFor('the upgrade', () => seen.length === 2);
    expect(seen).toEqual(['request GET  none ignored', 'upgrade GET more none ignored']);
  });
});
