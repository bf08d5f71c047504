/** The signer signs for the configured origins only, in whatever way a program asks. */
import { connect as connectTcp } from 'node:net';
import { describe, expect, it } from '@jest/globals';
import { NoResponse } from '../../../../src/tools/conformance/wire/exchange.ts';
import { http1Client, sendBytes } from '../../../../src/tools/conformance/wire/http1.ts';
import { sendLines } from '../../../../src/tools/conformance/wire/http2.ts';
import { type OpenEgress, ORIGIN, useEgress } from '../../../support/caller/egress-fixture.ts';
import { useProxies, useUpstreams } from '../../../support/points/proxy-fixture.ts';
import { AUTHORITY } from '../../../support/site/routes.ts';
import { type DeputyCase, deputyCases } from './confused-deputy-cases.ts';

const proxies = useProxies();
const upstreamWith = useUpstreams();
const egressTo = useEgress();

async function open() {
  const arrived: string[] = [];
  const upstream = await upstreamWith((request, response) => {
    arrived.push(`${request.headers.host} ${request.url}`);
    request.resume().on('end', () => response.end('ok'));
  });
  const atDecoy: string[] = [];
  const decoy = await upstreamWith((request, response) => {
    atDecoy.push(request.url ?? '');
    response.end();
  });
  const egress = await egressTo(upstream.url, proxies.site);
  const addresses = { own: egress.server.address, decoy: new URL(decoy.url).host, upstream: AUTHORITY };
  return { arrived, atDecoy, egress, addresses };
}

async function send({ address }: OpenEgress, { bytes, http2 }: DeputyCase): Promise<void> {
  try {
    if (http2 !== undefined) await sendLines(address, http2.request, http2.lines, 5_000);
    if (bytes !== undefined) await sendBytes(address, Buffer.from(bytes, 'latin1'), 'GET', 5_000);
  } catch (error) {
    // Some of them end the connection.
    if (!(error instanceof NoResponse) || error.kind === 'timeout') throw error;
  }
}

const NAMES = deputyCases({ own: '127.0.0.1:1', decoy: '127.0.0.1:2', upstream: AUTHORITY });

it('has at least 50 ways', () => {
  expect(NAMES.length).toBeGreaterThanOrEqual(50);
  expect(new Set(NAMES.map(({ name }) => name)).size).toBe(NAMES.length);
});

it.each(NAMES.map(({ name }, index) => [name, index] as const))('%s', async (_name, index) => {
  const { addresses, arrived, atDecoy, egress } = await open();
  const way = deputyCases(addresses)[index];
  if (way === undefined) throw new Error('no such case');
  await send(egress, way);
  const sent = way.allowed === 'refused' ? [] : [way.allowed.target];
  expect(egress.signed.map(({ url }) => `${url.origin}${url.target}`)).toEqual(
    sent.map((target) => `${ORIGIN}${target}`),
  );
  expect(arrived).toEqual(sent.map((target) => `${AUTHORITY} ${target}`));
  expect(atDecoy).toEqual([]);
  expect(egress.internalErrors).toEqual([]);
});

describe('beyond one request', () => {
  it('reads a request behind a body as one of its own, with its own checks', async () => {
    const { addresses, arrived, egress } = await open();
    const { decoy, own } = addresses;
    const first = `POST /v1/orders HTTP/1.1\r\nHost: ${own}\r\nContent-Length: 1\r\n\r\na`;
    const second = `GET /v1/orders/1 HTTP/1.1\r\nHost: ${decoy}\r\nConnection: close\r\n\r\n`;
    const socket = connectTcp(egress.address).setEncoding('latin1');
    socket.write(first + second);
    const text = (await socket.toArray()).join('');
    expect([...text.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => status)).toEqual(['200', '403']);
    expect(arrived).toEqual([`${AUTHORITY} /v1/orders`]);
  });

  it('follows neither redirects nor alternative services nor proxies of the environment', async () => {
    const atDecoy: string[] = [];
    const decoy = await upstreamWith((request, response) => {
      atDecoy.push(request.url ?? '');
      response.end();
    });
    const upstream = await upstreamWith((request, response) => {
      const isRefresh = request.url === '/v1/orders/2';
      response.writeHead(isRefresh ? 200 : 307, {
        location: `${decoy.url}/v1/orders/1`,
        'alt-svc': `http/1.1="${new URL(decoy.url).host}"`,
        refresh: `0;url=${decoy.url}`,
      });
      response.end();
    });
    process.env.http_proxy = decoy.url;
    try {
      const egress = await egressTo(upstream.url, proxies.site);
      const authority = egress.server.address;
      for (const target of ['/v1/orders/1', '/v1/orders/2', '/v1/orders/1']) {
        await http1Client(egress.address).send({ method: 'GET', target, authority });
      }
    } finally {
      delete process.env.http_proxy;
    }
    expect(atDecoy).toEqual([]);
  });
});
