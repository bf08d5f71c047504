/**
 * What Istio's pilot makes of envoy/istio/egress.yaml (test/gateways/dumps), in a real Envoy with the signer in front of the shipped
 * gateway: requests to the API arrive signed, or not at all; requests to other hosts are left alone.
 */
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import {
  type HeaderLine,
  headerValues,
  type WireRequest,
} from '../../../src/tools/conformance/wire/exchange.ts';
import { http1Client } from '../../../src/tools/conformance/wire/http1.ts';
import { http2Client } from '../../../src/tools/conformance/wire/http2.ts';
import { exchanged } from '../../support/docs/lint-rule-cases.ts';
import { makeCertificates, type TestCertificates } from '../../support/harness/certificates.ts';
import type { RunningEnvoy } from '../../support/harness/envoy.ts';
import { startUpstream, type Upstream } from '../../support/harness/upstream.ts';
import { useEnvironment } from '../../support/site/environment.ts';
import { type Gateway, PROTOCOLS, type Protocol } from '../../support/site/gateway.ts';
import { AUTHORITY } from '../../support/site/routes.ts';
import { LANE_ENVOYS } from '../lane-envoys.ts';
import { ISTIO_DUMP, type SignerProcess, startEgressParties, startIstioEgress } from './egress-gateway.ts';

const environment = useEnvironment(['usual']);
let certificates: TestCertificates;
beforeAll(async () => {
  certificates = await makeCertificates(AUTHORITY, 'spiffe://shop.example/ns/prod/sa/checkout');
});
afterAll(() => certificates.remove());

const GET = { method: 'GET', target: '/v1/orders/7', authority: AUTHORITY } as const;
const WEBSOCKET: readonly HeaderLine[] = [
  ['connection', 'upgrade'],
  ['upgrade', 'websocket'],
];

describe.each(LANE_ENVOYS)('Envoy %s', (version) => {
  let gateway: Gateway;
  let elsewhere: Upstream;
  let signer: SignerProcess;
  let egress: RunningEnvoy;
  beforeAll(async () => {
    ({ gateway, signer } = await startEgressParties(environment, version, certificates));
    elsewhere = await startUpstream();
    egress = await startIstioEgress(version, { signer, gateway, certificates }, elsewhere);
  });
  afterAll(async () => {
    await egress.stop();
    await signer.stop();
    await elsewhere.stop();
  });

  async function send(protocol: Protocol, request: Partial<WireRequest>, through = egress) {
    gateway.upstream.clear();
    elsewhere.clear();
    const client = protocol === 'HTTP/1.1' ? http1Client(through) : http2Client(through);
    const { status } = await client.send({ ...GET, ...request });
    return { status, arrived: [...gateway.upstream.requests], passed: [...elsewhere.requests] };
  }

  describe.each(PROTOCOLS)('%s', (protocol) => {
    it.each([
      ['/v1/orders/7?full=1&a=%20&a=..%2F'],
      ['/v1/orders/%E2%82%AC'],
      ['/v1/x/../orders/%61', '/v1/orders/a'],
    ])('what is signed for %s arrives', async (target, sent = target) => {
      const { arrived, status } = await send(protocol, { target });
      expect([status, arrived.map(({ url }) => url)]).toEqual([200, [sent]]);
      expect(headerValues(arrived[0]?.headers ?? [], 'x-proofgate-subject')).toEqual(['client:billing']);
    });

    it('a body arrives', async () => {
      const body = Buffer.alloc(1_000_000, 0xfe);
      const { arrived, status } = await send(protocol, { method: 'POST', target: '/v1/orders', body });
      expect([status, arrived.length, arrived[0]?.body.equals(body)]).toEqual([200, 1, true]);
    });

    it.each<[string, Partial<WireRequest>, number]>([
      ['a request without a profile', { target: '/v1/other' }, 502],
      ['an encoded slash', { target: '/v1/orders/a%2Fb' }, 400],
      ['another port', { authority: `${AUTHORITY}:8443` }, 502],
      ['a request of a web page', { headers: [['origin', 'https://evil.example']] }, 403],
    ])('%s does not leave', async (_name, request, expected) => {
      expect(await send(protocol, request)).toEqual({ status: expected, arrived: [], passed: [] });
    });
  });

  it('does not sign for another host', async () => {
    const before = await signer.signed();
    const { arrived, passed, status } = await send('HTTP/1.1', { authority: 'www.shop.example' });
    expect([status, arrived.length, passed.length]).toEqual([200, 0, 1]);
    expect(passed[0]?.headers.filter(([name]) => /proofgate|authorization/i.test(name))).toEqual([]);
    expect(await signer.signed()).toBe(before);
  });

  it.each<[Partial<WireRequest>, number]>([
    [{}, 400],
    [{ method: 'PUT', target: '/v1/uploads' }, 403],
  ])('an upgrade does not leave: %j', async (request, expected) => {
    const outcome = await send('HTTP/1.1', { ...request, headers: WEBSOCKET });
    expect(outcome).toEqual({ status: expected, arrived: [], passed: [] });
  });

  it('no header of the application makes Envoy send twice, even from an address that counts as internal', async () => {
    const internal = { cidr_ranges: [{ address_prefix: '10.0.0.0', prefix_len: 8 }] };
    const dump = ISTIO_DUMP.replaceAll(
      '"use_remote_address": false',
      `"use_remote_address": false, "internal_address_config": ${JSON.stringify(internal)}`,
    );
    const trusting = await startIstioEgress(version, { signer, gateway, certificates }, elsewhere, dump);
    const headers: readonly HeaderLine[] = [
      ['x-forwarded-for', '10.0.0.1'],
      ['x-envoy-retry-on', 'retriable-status-codes'],
      ['x-envoy-retriable-status-codes', '200'],
    ];
    const { arrived, status } = await send('HTTP/1.1', { headers }, trusting);
    expect([status, arrived.length]).toEqual([200, 1]);
    const other = await send('HTTP/1.1', { headers, authority: 'www.shop.example' }, trusting);
    expect(other.passed.length).toBe(2);
    await trusting.stop();
  });

  it('nothing leaves where Istio did not switch the signer on', async () => {
    const dump = exchanged(ISTIO_DUMP, '"proofgate.signer": {', '"proofgate.other": {');
    const unsigned = await startIstioEgress(version, { signer, gateway, certificates }, elsewhere, dump);
    for (const authority of [AUTHORITY, 'API.Shop.Example', `${AUTHORITY}.`, `${AUTHORITY}:80`]) {
      expect(await send('HTTP/1.1', { authority }, unsigned)).toEqual({
        status: 403,
        arrived: [],
        passed: [],
      });
    }
    await unsigned.stop();
  });

  it('sends nothing while no signer answers', async () => {
    await signer.stop();
    expect(await send('HTTP/1.1', {})).toEqual({ status: 502, arrived: [], passed: [] });
  });
});
