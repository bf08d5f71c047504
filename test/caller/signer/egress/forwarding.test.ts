/** What the upstream behind a verifier gets through the egress proxy, and what the application gets back. */
import { randomBytes } from 'node:crypto';
import { request as httpRequest, type RequestListener } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { headerValues } from '../../../../src/tools/conformance/wire/exchange.ts';
import { http1Client } from '../../../../src/tools/conformance/wire/http1.ts';
import { http2Client } from '../../../../src/tools/conformance/wire/http2.ts';
import { ORIGIN, SECURE_ORIGIN, useEgress } from '../../../support/caller/egress-fixture.ts';
import { makeCertificates, type TestCertificates } from '../../../support/harness/certificates.ts';
import { useProxies, useUpstreams } from '../../../support/points/proxy-fixture.ts';
import { AUTHORITY } from '../../../support/site/routes.ts';
import { waitFor } from '../../../support/wait.ts';

const proxies = useProxies();
const upstreamWith = useUpstreams();
const egressTo = useEgress();

/** `make soak` sends more. */
const REQUESTS = Number(process.env.PROOFGATE_TEST_REQUESTS ?? 200);

interface Arrived {
  readonly method: string;
  readonly url: string;
  readonly headers: NodeJS.Dict<string | string[]>;
  readonly body: Buffer;
}

let certificates: TestCertificates;
beforeAll(async () => {
  certificates = await makeCertificates(AUTHORITY, 'spiffe://shop.example/a');
});
afterAll(() => certificates.remove());

describe.each(['HTTP/1.1', 'HTTP/2'] as const)('upstream over %s', (upstreamProtocol) => {
  const isHttp2 = upstreamProtocol === 'HTTP/2';
  const signedOrigin = isHttp2 ? SECURE_ORIGIN : ORIGIN;

  /** Egress proxy and verifier in front of an API. */
  async function openChain(handler: RequestListener, options: Parameters<typeof egressTo>[2] = {}) {
    const upstream = await upstreamWith(handler);
    const { ca, server } = certificates;
    const material = { cert: server.cert, key: server.key, clientCa: undefined };
    const verifying = await proxies.open(upstream.url, {
      maxBodyBytes: 20_000_000,
      maxSpoolBytes: 100_000_000,
      // It has ten connections to the API for 64 requests: on a busy machine the last of them wait for seconds.
      queueTimeoutMs: 30_000,
      ...(isHttp2 && { tls: { material, clientNames: [] } }),
    });
    const url = `${isHttp2 ? 'https' : 'http'}://127.0.0.1:${verifying.address.port}`;
    const egress = await egressTo(url, proxies.site, { caPem: ca.cert, ...options });
    return { egress, authority: `${egress.address.host}:${egress.address.port}`, url };
  }

  /** With a recording API. */
  async function open(options: Parameters<typeof egressTo>[2] = {}) {
    const arrived: Arrived[] = [];
    const chain = await openChain((request, response) => {
      const chunks: Buffer[] = [];
      request.on('data', (chunk: Buffer) => chunks.push(chunk));
      request.on('end', () => {
        const { headers, method = '', url = '' } = request;
        arrived.push({ method, url, headers, body: Buffer.concat(chunks) });
        response.setHeader('x-answer', 'yes');
        response.end('ok');
      });
    }, options);
    return { ...chain, arrived };
  }

  describe.each([
    ['HTTP/1.1', http1Client],
    ['HTTP/2', http2Client],
  ] as const)('%s', (_protocol, client) => {
    it('signs a request without a body', async () => {
      const { arrived, authority, egress } = await open();
      const response = await client(egress.address).send({
        method: 'GET',
        target: '/v1/orders/4711?full=1&a=%20',
        authority,
        headers: [['accept', 'application/json']],
      });
      expect(response.status).toBe(200);
      expect(response.body.toString()).toBe('ok');
      expect(headerValues(response.headers, 'x-answer')).toEqual(['yes']);
      const via = isHttp2 ? '2.0 proofgate' : '1.1 proofgate';
      expect(headerValues(response.headers, 'via').join(', ')).toBe(`1.1 proofgate, ${via}`);
      expect(arrived).toMatchObject([{ method: 'GET', url: '/v1/orders/4711?full=1&a=%20' }]);
      expect(arrived[0]?.headers).toMatchObject({
        accept: 'application/json',
        host: 'api.shop.example',
        'x-proofgate-subject': 'client:billing',
      });
      expect(egress.signed).toMatchObject([{ routeId: 'orders-read', keyId: 'dk_billing' }]);
    });

    it.each([0, 1, 1024, 65_536, 65_537, 10_485_760])('signs a body of %d bytes', async (length) => {
      const { arrived, authority, egress } = await open();
      const body = randomBytes(length);
      const response = await client(egress.address).send({
        method: 'POST',
        target: '/v1/orders',
        authority,
        body,
      });
      expect(response.status).toBe(200);
      expect(arrived[0]?.body.equals(body)).toBe(true);
      await waitFor('nothing on disk', async () => {
        return (await egress.metric('proofgate_signer_spooled_bytes')) === 0 || undefined;
      });
    });

    it('removes credentials that the application sends, in any spelling', async () => {
      const { arrived, authority, egress } = await open();
      const response = await client(egress.address).send({
        method: 'GET',
        target: '/v1/orders/1',
        authority,
        headers: [
          ['authorization', 'passport x.y.z'],
          ['x-proofgate-transcript', 'x'],
          ['x-proofgate-signature', 'x'],
          ['x_proofgate_subject', 'admin'],
          ['x-proofgate-subject', 'admin'],
        ],
      });
      expect(response.status).toBe(200);
      expect(arrived[0]?.headers['x-proofgate-subject']).toBe('client:billing');
    });

    it('signs the headers that the profile names, and says which one is missing', async () => {
      const { arrived, authority, egress } = await open();
      const send = (headers: readonly (readonly [string, string])[]) =>
        client(egress.address).send({ method: 'GET', target: '/v1/tenant/orders', authority, headers });
      expect((await send([['x-tenant', 'a']])).status).toBe(200);
      expect(arrived[0]?.headers['x-tenant']).toBe('a');
      const missing = await send([]);
      expect(missing.status).toBe(400);
      expect(JSON.parse(missing.body.toString())).toMatchObject({
        type: 'urn:proofgate:fault:header_missing',
      });
    });
  });

  describe('what is not signed', () => {
    const send = async (
      options: Parameters<typeof egressTo>[2],
      request: { readonly method?: string; readonly target: string; readonly headers?: [string, string][] },
    ) => {
      const opened = await open(options);
      const { authority, egress } = opened;
      const response = await http1Client(egress.address).send({ method: 'GET', authority, ...request });
      const isProblem = headerValues(response.headers, 'content-type').includes('application/problem+json');
      const problem = isProblem ? JSON.parse(response.body.toString()) : undefined;
      return { ...opened, status: response.status, type: problem?.type, problem };
    };

    it('answers 502 for a request without a profile, and sends nothing', async () => {
      const { arrived, egress, status, type } = await send({}, { target: '/v2/unknown' });
      expect({ status, type }).toEqual({ status: 502, type: 'urn:proofgate:fault:profile_not_found' });
      expect(arrived).toEqual([]);
      expect(egress.refused).toEqual(['profile_not_found']);
    });

    it('passes it on unsigned only when told so', async () => {
      const { egress, problem, status } = await send({ unsigned: 'pass' }, { target: '/v2/unknown' });
      expect(status).toBe(403);
      expect(problem).toMatchObject({ reason: 'bundle_route_missing' });
      expect(egress.signed).toEqual([]);
    });

    it('never passes on unsigned what has a profile', async () => {
      const { arrived, authority, egress } = await open({ unsigned: 'pass' });
      egress.signer.replaceIdentity(undefined);
      const response = await http1Client(egress.address).send({ method: 'GET', target: '/v1/x', authority });
      expect(response.status).toBe(503);
      expect(JSON.parse(response.body.toString())).toMatchObject({
        type: 'urn:proofgate:fault:identity_not_ready',
      });
      expect(arrived).toEqual([]);
    });

    it('says that the passport needs the Authorization header', async () => {
      const headers: [string, string][] = [['Authorization', 'Bearer t']];
      const { arrived, status, type } = await send({}, { target: '/v1/orders/1', headers });
      expect({ status, type }).toEqual({ status: 400, type: 'urn:proofgate:fault:header_reserved' });
      expect(arrived).toEqual([]);
    });

    it('passes the denial of the verifier on, with its reason', async () => {
      const { status, problem } = await send({}, { target: '/v1/payroll' });
      expect(status).toBe(403);
      expect(problem.reason).toBe('source_subject_mismatch');
    });
  });

  describe('several routes', () => {
    it('sends each to its origin without the prefix', async () => {
      const { arrived, url } = await open();
      const egress = await egressTo(url, proxies.site, {
        routes: [
          { prefix: '/shop', origin: signedOrigin, url },
          { prefix: '/shop/elsewhere', origin: 'http://elsewhere.example', url },
        ],
        caPem: certificates.ca.cert,
      });
      const authority = `${egress.address.host}:${egress.address.port}`;
      const get = async (target: string) =>
        (await http1Client(egress.address).send({ method: 'GET', target, authority })).status;
      expect(await get('/shop/v1/orders/7?x')).toBe(200);
      expect(arrived.map((one) => one.url)).toEqual(['/v1/orders/7?x']);
      // `profile_not_found`, for another origin's profile.
      expect(await get('/shop/elsewhere/v1/orders/7')).toBe(502);
      expect(await get('/shopping/v1/orders/7')).toBe(404);
      expect(await get('/v1/orders/7')).toBe(404);
    });
  });

  describe('responses', () => {
    it('passes events on as they come, and ends the upstream when the application leaves', async () => {
      let isUpstreamClosed = false;
      let sendNext: () => void = () => undefined;
      const { egress } = await openChain((_request, response) => {
        response.writeHead(200, { 'content-type': 'text/event-stream' });
        response.write('data: 1\n\n');
        sendNext = () => void response.write('data: 2\n\n');
        response.on('close', () => {
          isUpstreamClosed = true;
        });
      });
      const events: string[] = [];
      const call = httpRequest(`${egress.url}/v1/orders/1`, (response) => {
        response.on('data', (chunk: Buffer) => events.push(chunk.toString()));
        response.on('error', () => undefined);
      });
      call.on('error', () => undefined);
      call.end();
      await waitFor('the first event', () => events.length === 1 || undefined);
      sendNext();
      await waitFor('the second event', () => events.length === 2 || undefined);
      expect(isUpstreamClosed).toBe(false);
      call.destroy();
      await waitFor('the upstream to be left', () => isUpstreamClosed || undefined);
    });

    it('follows no redirect', async () => {
      let requests = 0;
      const { egress } = await openChain((_request, response) => {
        requests += 1;
        response.writeHead(307, { location: '/v1/orders/2' }).end();
      });
      const { url } = egress;
      const response = await fetch(`${url}/v1/orders/1`, { redirect: 'manual' });
      expect([response.status, response.headers.get('location'), requests]).toEqual([307, '/v1/orders/2', 1]);
      // The application that follows it goes through the signer again, with a new proof.
      await fetch(`${url}/v1/orders/1`, { redirect: 'follow' }).catch(() => undefined);
      expect(requests).toBeGreaterThan(2);
    });

    it('signs every attempt anew, and answers 502 when the upstream breaks off', async () => {
      let requests = 0;
      const { egress } = await openChain((request, response) => {
        requests += 1;
        if (requests === 1) request.socket.destroy();
        else response.end('ok');
      });
      expect((await fetch(`${egress.url}/v1/orders/1`)).status).toBe(502);
      expect(requests).toBe(1);
      expect((await fetch(`${egress.url}/v1/orders/1`)).status).toBe(200);
      expect(new Set(egress.signed.map(({ jti }) => jti)).size).toBe(2);
    });

    it('answers 502 when the upstream cannot be reached', async () => {
      const egress = await egressTo(`${isHttp2 ? 'https' : 'http'}://127.0.0.1:1`, proxies.site);
      const response = await fetch(`${egress.url}/v1/orders/1`);
      expect([response.status, await response.json()]).toMatchObject([
        502,
        { type: 'urn:proofgate:fault:upstream_unreachable' },
      ]);
    });
  });

  it('sends many requests, 64 at a time, each with a proof of its own', async () => {
    const { arrived, egress } = await open();
    let next = 0;
    const statuses = new Map<number, number>();
    const worker = async () => {
      while (next < REQUESTS) {
        next += 1;
        const response = await fetch(`${egress.url}/v1/orders`, { method: 'POST', body: `order ${next}` });
        const text = await response.text();
        if (response.status !== 200) throw new Error(text);
        statuses.set(response.status, (statuses.get(response.status) ?? 0) + 1);
      }
    };
    await Promise.all(Array.from({ length: 64 }, worker));
    expect([...statuses]).toEqual([[200, REQUESTS]]);
    expect(arrived.length).toBe(REQUESTS);
    expect(new Set(egress.signed.map(({ jti }) => jti)).size).toBe(REQUESTS);
  });
});
