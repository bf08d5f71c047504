/** Tests what an upstream sees of a request that is broken off. */
import { once } from 'node:events';
import { connect } from 'node:http2';
import { type AddressInfo, createServer } from 'node:net';
import { Readable } from 'node:stream';
import { expect, it } from '@jest/globals';
import { Http2UpstreamExchange } from '../../../src/process/http-proxy/http2-upstream-exchange.ts';
import {
  encodeFrame,
  FLAG,
  type Frame,
  PREFACE,
  readFrames,
  TYPE,
} from '../../support/hostile/http2-frames.ts';
import { waitFor } from '../../support/wait.ts';

/** Longer than the test may take. */
const FOREVER_MS = 2_000_000_000;

it('does not end a request whose body is broken off', async () => {
  let bytes = Buffer.alloc(0);
  const upstream = createServer((socket) => {
    socket.on('error', () => undefined);
    socket.write(encodeFrame({ type: TYPE.settings, flags: 0, stream: 0, payload: Buffer.alloc(0) }));
    socket.on('data', (chunk: Buffer) => {
      bytes = Buffer.concat([bytes, chunk]);
    });
  }).listen(0, '127.0.0.1');
  await once(upstream, 'listening');
  const session = connect(`http://127.0.0.1:${(upstream.address() as AddressInfo).port}`);
  session.on('error', () => undefined);
  const frames = (): readonly Frame[] => readFrames(bytes.subarray(PREFACE.length)).frames;
  const isOf = (wanted: number) => frames().some(({ type }) => type === wanted) || undefined;

  const timeouts = { responseTimeoutMs: FOREVER_MS, idleTimeoutMs: FOREVER_MS };
  const exchange = new Http2UpstreamExchange({}, { ...timeouts, onTimeout: () => undefined });
  const body = new Readable({ read: () => undefined });
  exchange.run(session.request({ ':method': 'PUT', ':path': '/' }, { endStream: false }), body);
  body.push('half');
  await waitFor('the first half', () => isOf(TYPE.data));
  exchange.abort(new Error('the application left'));
  await waitFor('the reset', () => isOf(TYPE.reset));
  expect(frames().filter(({ flags, type }) => type === TYPE.data && (flags & FLAG.endStream) !== 0)).toEqual(
    [],
  );
  session.destroy();
  upstream.close();
});
