/** Tests the shipped file's optional blocks with a real verifier: TLS, an unbound route, a path that needs no proof. */
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { HeaderLine } from '../../src/tools/conformance/wire/exchange.ts';
import { makeCertificates, type TestCertificates } from '../support/harness/certificates.ts';
import { tlsEdits } from '../support/harness/tls-edits.ts';
import { derivedKeyCaller } from '../support/site/callers.ts';
import { useEnvironment } from '../support/site/environment.ts';
import { PROTOCOLS } from '../support/site/gateway.ts';
import { expectAllowed, expectDenial, observe } from '../support/site/observe.ts';
import { AUTHORITY, ROUTES, type SiteRoute } from '../support/site/routes.ts';
import { type RequestPlan, signedRequest } from '../support/site/signed-request.ts';
import { LANE_ENVOYS } from './lane-envoys.ts';

const { createOrder, readOrder, upload } = ROUTES;
const environment = useEnvironment(['redis']);
let certificates: TestCertificates;
beforeAll(async () => {
  certificates = await makeCertificates(AUTHORITY, 'spiffe://shop.example/ns/prod/sa/checkout');
});
afterAll(() => certificates.remove());

const signed = (route: SiteRoute, plan: Partial<RequestPlan> = {}) =>
  signedRequest(environment.site, {
    caller: derivedKeyCaller(environment.site),
    route,
    transcript: { scheme: 'https' },
    ...plan,
  });

const combinations = LANE_ENVOYS.flatMap((version) => PROTOCOLS.map((protocol) => ({ version, protocol })));

describe.each(combinations)('Envoy $version, $protocol over TLS', ({ version, protocol }) => {
  async function behindTls() {
    const tls = { ca: certificates.ca.cert, servername: AUTHORITY };
    const variant = { name: 'tls', tls, edits: tlsEdits(certificates) };
    const gateway = await environment.gateway(version, 'redis', variant);
    return { gateway, client: gateway.client(protocol) };
  }

  it('lets through what is signed for https, and refuses what is signed for http', async () => {
    const { gateway, client } = await behindTls();
    for (const [route, body] of [
      [readOrder, undefined],
      [createOrder, '{"item":1}'],
      [upload, Buffer.alloc(3_000_000, 9)],
    ] as const) {
      const observed = await observe(gateway, client, signed(route, body === undefined ? {} : { body }));
      const { body: arrived } = await expectAllowed(gateway, observed, {
        routeId: route.route_id,
        subject: 'client:billing',
      });
      expect(arrived.equals(Buffer.from(body ?? ''))).toBe(true);
    }
    const plain = await observe(gateway, client, signed(readOrder, { transcript: {} }));
    await expectDenial(gateway, plain, {
      reason: 'request_binding_mismatch',
      detail: 'scheme',
      routeId: readOrder.route_id,
    });
  });

  it('opens a path that needs no proof, without a decision and without what a caller says of itself', async () => {
    const { gateway, client } = await behindTls();
    const headers: readonly HeaderLine[] = [
      ['x-proofgate-subject', 'client:billing'],
      ['x-proofgate-decision-id', 'mine'],
    ];
    const observed = await observe(gateway, client, {
      method: 'GET',
      target: '/healthz',
      authority: AUTHORITY,
      headers,
    });
    expect([observed.response.status, observed.counted.size]).toEqual([200, 0]);
    const arrived = observed.forwarded[0]?.headers ?? [];
    expect(arrived.filter(([name]) => name.toLowerCase().startsWith('x-proofgate'))).toEqual([]);
  });
});
