/**
 * Tests a gateway that only Gateway API's ExternalAuth configures: the verifier behaves as docs/operate/gateways.md says where settings
 * are missing.
 */
import { beforeAll, describe, expect, it } from '@jest/globals';
import { parseDocument } from 'yaml';
import type { WireRequest } from '../../../src/tools/conformance/wire/exchange.ts';
import { lintGateway } from '../../../src/tools/gateway-lint/lint.ts';
import { readText } from '../../support/docs/markdown.ts';
import { shipped } from '../../support/harness/envoy-config.ts';
import { type Gateway, PROTOCOLS } from '../../support/site/gateway.ts';
import { type ExpectedDenial, expectAllowed, expectDenial, observe } from '../../support/site/observe.ts';
import { ROUTES } from '../../support/site/routes.ts';
import { withMoreHeaders } from '../../support/site/signed-request.ts';
import { useSite } from '../../support/site/site-fixture.ts';
import type { VerifierProcess } from '../../support/site/verifier.ts';
import { LANE_ENVOYS } from '../lane-envoys.ts';
import { signedFor } from './checked-requests.ts';
import { type Parties, startConfigured } from './generated-gateway.ts';

const { createOrder, readOrder, tenantOrders } = ROUTES;
const text = readText('test/gateways/cilium-like.yaml');

function bootstrap({ upstream, verifier }: Parties): string {
  const config = parseDocument(text);
  const address = ['load_assignment', 'endpoints', 0, 'lb_endpoints', 0, 'endpoint', 'address'];
  if (verifier.kind !== 'unix') throw new Error('not on a socket');
  config.setIn([...shipped.verifierCluster, ...address], { pipe: { path: verifier.path } });
  const api = { socket_address: { address: upstream.host, port_value: upstream.port } };
  config.setIn([...shipped.upstreamCluster, ...address], api);
  return config.toString();
}

const fixture = useSite('suite');

it('has nearly nothing of what the linter looks for', () => {
  const rules = lintGateway(text, { allowedRules: [] })?.findings.map(({ rule }) => rule) ?? [];
  expect(rules).toEqual(
    expect.arrayContaining(['partial-body', 'headers-merged', 'upgrades-allowed', 'decision-not-required']),
  );
});

describe.each(LANE_ENVOYS)('Envoy %s', (version) => {
  let verifier: VerifierProcess;
  let gateway: Gateway;
  beforeAll(async () => {
    verifier = await fixture.verifier();
    gateway = await startConfigured(version, verifier, { bootstrap, listener: 'ingress' });
    fixture.stops.push(gateway.stop);
  });

  const signed: (
    ...args: Parameters<typeof signedFor> extends [unknown, ...infer R] ? R : never
  ) => WireRequest = (route, plan) => signedFor({ gateway, site: fixture.site, scheme: 'http' }, route, plan);

  async function expectRequestDenied(request: WireRequest, expected: ExpectedDenial): Promise<void> {
    await expectDenial(gateway, await observe(gateway, gateway.client('HTTP/1.1'), request), expected);
  }

  it.each(PROTOCOLS)('lets signed requests through: %s', async (protocol) => {
    for (const [route, body] of [
      [readOrder, undefined],
      [createOrder, '{"item":1}'],
    ] as const) {
      const request = signed(route, body === undefined ? {} : { body });
      const observed = await observe(gateway, gateway.client(protocol), request);
      await expectAllowed(gateway, observed, { routeId: route.route_id, subject: 'client:billing' });
    }
  });

  it('refuses a body that it is shown a part of, and one that is no text', async () => {
    for (const body of [Buffer.alloc(100_000, 'x'), Buffer.of(0x7b, 0xff, 0x7d)]) {
      await expectRequestDenied(signed(createOrder, { body }), {
        reason: 'request_binding_mismatch',
        detail: 'body_unavailable',
        routeId: createOrder.route_id,
      });
    }
  });

  it('refuses an upgrade', () =>
    expectRequestDenied(
      withMoreHeaders(signed(readOrder), [
        ['connection', 'Upgrade'],
        ['upgrade', 'websocket'],
      ]),
      {
        reason: 'request_binding_mismatch',
        detail: 'body_unavailable',
        routeId: readOrder.route_id,
      },
    ));

  it('refuses a signed header and a credential that may be two', async () => {
    const request = signed(tenantOrders, { signedHeaders: [{ name: 'x-tenant', value: 'north, south' }] });
    await expectRequestDenied(request, {
      reason: 'request_binding_mismatch',
      detail: 'header.x-tenant',
      routeId: tenantOrders.route_id,
    });
    await expectRequestDenied(withMoreHeaders(signed(readOrder), [['x-proofgate-signature', 'AAAA']]), {
      reason: 'invalid_request_proof',
      detail: 'proof_malformed',
      routeId: readOrder.route_id,
    });
  });

  it('refuses a path that is another than was signed', () =>
    expectRequestDenied(
      { ...signed(readOrder), target: '/v1/orders/x/../4711' },
      { reason: 'bundle_route_missing', detail: 'path_not_canonical' },
    ));

  it('removes what callers say of themselves', async () => {
    const request = withMoreHeaders(signed(readOrder), [['x-proofgate-subject', 'client:somebody']]);
    const observed = await observe(gateway, gateway.client('HTTP/2'), request);
    await expectAllowed(gateway, observed, { routeId: readOrder.route_id, subject: 'client:billing' });
  });

  it('is not gone round when the verifier is gone', async () => {
    await verifier.stop();
    gateway.upstream.clear();
    const { status } = await gateway.client('HTTP/1.1').send(signed(readOrder));
    expect([status, gateway.upstream.requests.length]).toEqual([403, 0]);
  });
});
