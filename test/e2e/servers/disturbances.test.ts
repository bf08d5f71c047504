/**
 * Clients that leave or send rubbish at every server that is no enforcement point. An error that nothing catches fails the test, and
 * would end the program.
 */
import { describe, expect, it } from '@jest/globals';
import { openSocket, sendBytes } from '../../../src/tools/conformance/wire/http1.ts';
import { SERVERS } from './http-servers.ts';

const BODY = '{"a":1}';
const PATHS = [
  '/livez',
  '/metrics',
  '/v1/challenges',
  '/v1/passports',
  '/v1/proofs',
  '/v1/environments',
  '/signed-in',
];

/** Sends the bytes, and resets the connection once they have left. */
function leave(port: number, bytes: Uint8Array): Promise<void> {
  const socket = openSocket({ host: '127.0.0.1', port });
  socket.on('error', () => undefined);
  socket.write(bytes, () => socket.resetAndDestroy());
  return new Promise((resolve) => socket.once('close', () => resolve()));
}

describe.each(Object.keys(SERVERS))('%s', (name) => {
  it('serves on after clients that leave, at each path and place', async () => {
    const port = (await SERVERS[name]?.()) ?? 0;
    const head = (method: string, path: string, more: string) =>
      `${method} ${path} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nContent-Type: application/json\r\n${more}\r\n`;
    for (const path of PATHS) {
      const whole = `${head('POST', path, `Content-Length: ${BODY.length}\r\n`)}${BODY}`;
      const chunked = `${head('POST', path, 'Transfer-Encoding: chunked\r\n')}7\r\n${BODY}\r\n0\r\n\r\n`;
      const expecting = head('POST', path, `Content-Length: ${BODY.length}\r\nExpect: 100-continue\r\n`);
      const upgrading = head('GET', path, 'Connection: upgrade\r\nUpgrade: websocket\r\n');
      for (const text of [whole, chunked, expecting, upgrading]) {
        const bytes = Buffer.from(text);
        for (const cut of [0, 1, 3, 6, 12]) await leave(port, bytes.subarray(0, bytes.length - cut));
        await leave(port, Buffer.concat([bytes, bytes, Buffer.from('rubbish\r\n\r\n')]));
      }
    }
    const last = Buffer.from(head('GET', '/livez', 'Connection: close\r\n'));
    expect((await sendBytes({ host: '127.0.0.1', port }, last, 'GET')).status).toBeLessThan(500);
  });
});
