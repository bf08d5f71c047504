/** Tests the harness itself, where the suites that use it would not notice its faults. */
import { afterEach, describe, expect, it } from '@jest/globals';
import { NoResponse, type WireClient } from '../../src/tools/conformance/wire/exchange.ts';
import { encodeHttp1, http1Client } from '../../src/tools/conformance/wire/http1.ts';
import { readResponse } from '../../src/tools/conformance/wire/http1-response.ts';
import { http2Client } from '../../src/tools/conformance/wire/http2.ts';
import { type Service, startService } from '../support/harness/sidecar.ts';
import { type Echo, startUpstream, type Upstream } from '../support/harness/upstream.ts';
import { waitFor, waitUntil } from '../support/wait.ts';

const stops: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0)) await stop();
});

function echoOf(body: Buffer): Echo {
  return JSON.parse(body.toString('utf8'));
}

describe.each(['HTTP/1.1', 'h2c'] as const)('client and upstream over %s', (protocol) => {
  async function connected(): Promise<{ client: WireClient; upstream: Upstream }> {
    const upstream = await startUpstream({ protocol });
    stops.push(upstream.stop);
    return { upstream, client: protocol === 'h2c' ? http2Client(upstream) : http1Client(upstream) };
  }

  it('carry repeated headers, any byte of a body, and trailers', async () => {
    const { client, upstream } = await connected();
    const body = Buffer.from(Array.from({ length: 70_000 }, (_, index) => index % 256));
    const { status, body: answer } = await client.send({
      method: 'POST',
      target: '/a?b',
      authority: 'api.example',
      headers: [
        ['authorization', 'one'],
        ['x-long', 'v'.repeat(30_000)],
        ['authorization', 'two'],
      ],
      body,
      trailers: [['x-t', '1']],
    });
    expect(status).toBe(200);
    const echo = echoOf(answer);
    expect(echo).toMatchObject({ method: 'POST', url: '/a?b', trailers: [['x-t', '1']] });
    expect(echo.headers.filter(([name]) => name === 'authorization').map(([, value]) => value)).toEqual([
      'one',
      'two',
    ]);
    expect(Buffer.from(echo.bodyBase64, 'base64').equals(body)).toBe(true);
    expect(upstream.requests).toHaveLength(1);
  });

  it('read an answer without a body', async () => {
    const { client } = await connected();
    const answer = await client.send({ method: 'HEAD', target: '/', authority: 'api.example' });
    expect([answer.status, answer.body.length]).toEqual([200, 0]);
  });

  it('say so without an answer', async () => {
    const { client, upstream } = await connected();
    await upstream.stop();
    const sent = client.send({ method: 'GET', target: '/', authority: 'api.example' });
    await expect(sent).rejects.toBeInstanceOf(NoResponse);
  });
});

describe('HTTP/1.1 bytes', () => {
  it('are sent exactly as given', () => {
    const request = { method: 'GET', target: '//a\\b', authority: 'H', headers: [['X_y', ' v']] } as const;
    expect(encodeHttp1(request).toString('latin1')).toBe('GET //a\\b HTTP/1.1\r\nHost: H\r\nX_y:  v\r\n\r\n');
  });

  it('are read only when complete, behind interim responses, chunked or not', () => {
    const text =
      'HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nA: 1\r\nTransfer-Encoding: chunked\r\n\r\n' +
      '3\r\nabc\r\n0\r\nT: 1\r\n\r\n';
    for (let length = 0; length < text.length; length += 1) {
      expect(readResponse(Buffer.from(text.slice(0, length)), 'GET', false)).toBeUndefined();
    }
    const read = readResponse(Buffer.from(text), 'GET', false);
    expect(read?.response).toMatchObject({ status: 200, body: Buffer.from('abc') });
    expect(read?.lengthBytes).toBe(text.length);
  });
});

describe('a wait', () => {
  it('gives up before its test does, and says what it saw last', async () => {
    const probe = () => Promise.reject(new Error('status 503'));
    await expect(waitFor('readiness', probe)).rejects.toThrow(/^readiness: .*status 503/);
  }, 3_000);

  it('ends although its probe hangs', async () => {
    const probe = () => new Promise<never>(() => undefined);
    await expect(waitFor('readiness', probe)).rejects.toThrow(/^readiness: .*did not answer/);
  }, 3_000);

  it('ends with what its condition throws', async () => {
    const ended = () => Promise.reject(new Error('the server ended'));
    await expect(waitUntil(ended)).rejects.toThrow(/^the server ended$/);
  });
});

describe('a service', () => {
  function start(script: string): Promise<Service> {
    return startService({
      command: process.execPath,
      args: ['-e', script],
      readyUrl: (lines) => lines.map((line) => /^ready at (\S+)$/.exec(line)?.[1]).find((url) => url),
    });
  }
  const serve = `const s = require('http').createServer((q, r) => r.end()).listen(0, '127.0.0.1',
    () => console.log('ready at http://127.0.0.1:' + s.address().port + '/readyz'));`;

  it('is ready when it says so, and ends in an orderly way', async () => {
    const service = await start(`${serve} process.on('SIGTERM', () => process.exit(0))`);
    await service.stop();
    expect(await service.exited).toEqual({ code: 0, signal: null });
  });

  it('that does not end with 0 fails the test', async () => {
    const service = await start(`${serve} process.on('SIGTERM', () => process.exit(3))`);
    await expect(service.stop()).rejects.toThrow('exit 3');
  });

  it('that ends at start is reported with its last words', async () => {
    await expect(start(`console.error('no bundle'); process.exit(2)`)).rejects.toThrow(/exit 2\nno bundle/);
  });
});
