/** envoy/egress.yaml with the signer in front of the shipped gateway: what was signed is what arrives, once, or nothing does. */
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import {
  type HeaderLine,
  headerValues,
  type WireRequest,
} from '../../../src/tools/conformance/wire/exchange.ts';
import { http1Client } from '../../../src/tools/conformance/wire/http1.ts';
import { http2Client } from '../../../src/tools/conformance/wire/http2.ts';
import { makeCertificates, type TestCertificates } from '../../support/harness/certificates.ts';
import type { RunningEnvoy } from '../../support/harness/envoy.ts';
import { useEnvironment } from '../../support/site/environment.ts';
import type { Gateway } from '../../support/site/gateway.ts';
import { AUTHORITY } from '../../support/site/routes.ts';
import { LANE_ENVOYS } from '../lane-envoys.ts';
import { type SignerProcess, startEgressEnvoy, startEgressParties } from './egress-gateway.ts';

const environment = useEnvironment(['usual']);
let certificates: TestCertificates;
beforeAll(async () => {
  certificates = await makeCertificates(AUTHORITY, 'spiffe://shop.example/ns/prod/sa/checkout');
});
afterAll(() => certificates.remove());

describe.each(LANE_ENVOYS)('Envoy %s', (version) => {
  let gateway: Gateway;
  let signer: SignerProcess;
  let egress: RunningEnvoy;
  beforeAll(async () => {
    ({ gateway, signer } = await startEgressParties(environment, version, certificates));
    egress = await startEgressEnvoy(version, { signer, gateway, certificates });
  });
  afterAll(async () => {
    await egress.stop();
    await signer.stop();
  });

  async function send(protocol: 'HTTP/1.1' | 'HTTP/2', request: Partial<WireRequest>) {
    gateway.upstream.clear();
    const before = await signer.signed();
    const client = protocol === 'HTTP/1.1' ? http1Client(egress) : http2Client(egress);
    const whole = { method: 'GET', target: '/v1/orders/7', authority: AUTHORITY, headers: [], ...request };
    const { status } = await client.send(whole);
    return { status, signed: (await signer.signed()) - before, arrived: [...gateway.upstream.requests] };
  }

  describe.each(['HTTP/1.1', 'HTTP/2'] as const)('%s', (protocol) => {
    it.each([
      ['/v1/orders/7'],
      ['/v1/orders/7?full=1&a=%20&a=..%2F'],
      ['/v1/orders/a%20b'],
      ['/v1/orders/%E2%82%AC'],
      ['/v1/orders/~-._!$&()*+,=:@'],
      ['/v1/orders/%61', '/v1/orders/a'],
      ['/v1/x/../orders/7', '/v1/orders/7'],
    ])('what is signed for %s arrives', async (target, sent = target) => {
      const outcome = await send(protocol, { target });
      expect(outcome).toMatchObject({
        status: 200,
        signed: 1,
        arrived: [{ method: 'GET', url: sent }],
      });
    });

    it.each([0, 1, 1_024, 1_000_000])('a body of %d bytes arrives', async (bytes) => {
      const body = Buffer.alloc(bytes, 0xfe);
      const { arrived, status } = await send(protocol, { method: 'POST', target: '/v1/orders', body });
      expect([status, arrived.length, arrived[0]?.body.equals(body)]).toEqual([200, 1, true]);
    });

    it("removes the application's own credentials, and keeps its other headers", async () => {
      const headers: readonly HeaderLine[] = [
        ['x-proofgate-subject', 'client:admin'],
        ['x-proofgate-signature', 'mine'],
        ['authorization', 'Passport mine'],
        ['x-tenant', 'one'],
        ['x-tenant', 'two'],
      ];
      const { arrived, status } = await send(protocol, { headers });
      const values = (name: string) => headerValues(arrived[0]?.headers ?? [], name);
      expect([status, arrived.length]).toEqual([200, 1]);
      expect(values('x-proofgate-subject')).toEqual(['client:billing']);
      expect(values('x-tenant').join(',').replaceAll(' ', '')).toBe('one,two');
      expect(values('x-proofgate-signature')).toEqual([]);
    });

    it("leaves the application's own Authorization where the route does", async () => {
      const headers: readonly HeaderLine[] = [['authorization', 'Bearer of-the-application']];
      const { arrived, signed, status } = await send(protocol, { target: '/v1/bearer', headers });
      const values = (name: string) => headerValues(arrived[0]?.headers ?? [], name);
      expect([status, signed, arrived.length]).toEqual([200, 1, 1]);
      expect(values('authorization')).toEqual(['Bearer of-the-application']);
      expect(values('x-proofgate-passport')).toEqual([]);
    });

    it.each<[string, Partial<WireRequest>, number]>([
      ['a request without a profile', { target: '/v1/other' }, 502],
      ['an encoded slash', { target: '/v1/orders/a%2Fb' }, 400],
      ['two slashes', { target: '//v1/orders/7' }, 400],
      ['a path parameter', { target: '/v1/orders/7;a=1' }, 400],
      ['another host', { authority: 'evil.example' }, 404],
      ['a token where the passport is', { headers: [['authorization', 'Bearer 1']] }, 400],
      ['a request of a web page', { headers: [['origin', 'https://evil.example']] }, 403],
      [
        'a body that is too long',
        { method: 'POST', target: '/v1/orders', body: Buffer.alloc(1_200_000) },
        413,
      ],
    ])('%s does not leave', async (_name, request, expected) => {
      expect(await send(protocol, request)).toEqual({ status: expected, signed: 0, arrived: [] });
    });
  });

  it('sends nothing while no signer answers', async () => {
    await signer.stop();
    gateway.upstream.clear();
    const request = { method: 'GET', target: '/v1/orders/7', authority: AUTHORITY };
    expect((await http1Client(egress).send(request)).status).toBe(502);
    expect(gateway.upstream.requests).toEqual([]);
  });
});
