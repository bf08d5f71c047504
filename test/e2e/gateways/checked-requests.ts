/** Requests that every gateway must handle correctly, whatever generated its configuration. */
import { expect } from '@jest/globals';
import { headerValues, type WireResponse } from '../../../src/tools/conformance/wire/exchange.ts';
import { derivedKeyCaller } from '../../support/site/callers.ts';
import { type Gateway, PROTOCOLS, type Protocol } from '../../support/site/gateway.ts';
import { expectAllowed, expectDenial, observe } from '../../support/site/observe.ts';
import { AUTHORITY, ROUTES, type SiteRoute } from '../../support/site/routes.ts';
import {
  type RequestPlan,
  signedRequest,
  withHeader,
  withMoreHeaders,
} from '../../support/site/signed-request.ts';
import type { Site } from '../../support/site/site.ts';

const { cancelOrder, createOrder, files, readOrder, replaceOrder, tenantOrders, whoAmI } = ROUTES;
/** Bound, and open to the caller that signs here. */
const BOUND_ROUTES = [readOrder, files, tenantOrders, whoAmI, cancelOrder, createOrder, replaceOrder];
const SUBJECT = 'client:billing';
/** Not text: only packed bytes preserve it. */
const NOT_UTF8 = Buffer.of(0x7b, 0xff, 0xc0, 0x80, 0x00, 0x7d);

/** The scheme that callers sign. */
export type Scheme = 'http' | 'https';

export interface Asked {
  readonly gateway: Gateway;
  readonly site: Site;
  readonly scheme: Scheme;
}

export function signedFor({ scheme, site }: Asked, route: SiteRoute, plan: Partial<RequestPlan> = {}) {
  return signedRequest(site, {
    caller: derivedKeyCaller(site),
    route,
    transcript: { scheme },
    ...plan,
  });
}

/** A signed request passes. An unsigned, replayed or changed one is denied, with the verifier's own reason. */
export async function expectChecked(asked: Asked): Promise<void> {
  for (const protocol of PROTOCOLS) {
    await expectPassing(asked, protocol);
    await expectRefusing(asked, protocol);
  }
  await expectBodiesBound(asked);
}

/** A body in DATA frames of HTTP/2 that no header announces: only a gateway that buffers it shows it to the verifier. */
async function expectBodiesBound(asked: Asked): Promise<void> {
  const { gateway } = asked;
  const client = gateway.client('HTTP/2');
  const body = '{"item":1}';
  for (const route of BOUND_ROUTES) {
    const signedHeaders = route === tenantOrders ? [{ name: 'x-tenant', value: 'north' }] : [];
    const covering = signedFor(asked, route, { signedHeaders, body, framing: 'open' });
    const arrived = await expectAllowed(gateway, await observe(gateway, client, covering), {
      routeId: route.route_id,
      subject: SUBJECT,
    });
    expect(arrived.body.toString()).toBe(body);
    const added = { ...signedFor(asked, route, { signedHeaders, framing: 'open' }), body };
    await expectDenial(gateway, await observe(gateway, client, added), {
      reason: 'request_binding_mismatch',
      detail: 'content-sha256',
      routeId: route.route_id,
    });
  }
}

async function expectPassing(asked: Asked, protocol: Protocol): Promise<void> {
  const { gateway } = asked;
  const client = gateway.client(protocol);
  const passes = async (route: SiteRoute, plan: Partial<RequestPlan> = {}) => {
    const observed = await observe(gateway, client, signedFor(asked, route, plan));
    return expectAllowed(gateway, observed, { routeId: route.route_id, subject: SUBJECT });
  };
  await passes(readOrder);
  expect((await passes(createOrder, { body: NOT_UTF8 })).body.equals(NOT_UTF8)).toBe(true);
  // Contains a comma: only raw headers show that it is one line.
  await passes(tenantOrders, { signedHeaders: [{ name: 'x-tenant', value: 'north, south' }] });
  const claiming = withMoreHeaders(signedFor(asked, readOrder), [['x-proofgate-subject', 'client:somebody']]);
  const observed = await observe(gateway, client, claiming);
  await expectAllowed(gateway, observed, { routeId: readOrder.route_id, subject: SUBJECT });
}

async function expectRefusing(asked: Asked, protocol: Protocol): Promise<void> {
  const { gateway } = asked;
  const client = gateway.client(protocol);
  const unsigned = withHeader(signedFor(asked, readOrder), 'authorization');
  await expectDenial(gateway, await observe(gateway, client, unsigned), {
    reason: 'invalid_request_proof',
    detail: 'authorization_missing',
    routeId: readOrder.route_id,
  });
  const twice = signedFor(asked, createOrder, { body: '{"item":1}' });
  expect((await client.send(twice)).status).toBe(200);
  await expectDenial(gateway, await observe(gateway, client, twice), {
    reason: 'jti_replay',
    routeId: createOrder.route_id,
    callerVerified: true,
  });
  const changed = { ...signedFor(asked, createOrder, { body: '{"item":1}' }), body: '{"item":2}' };
  await expectDenial(gateway, await observe(gateway, client, changed), {
    reason: 'request_binding_mismatch',
    detail: 'content-sha256',
    routeId: createOrder.route_id,
  });
}

/** Paths, headers and upgrades that no verifier should have to judge: the gateway's own refusal, and nothing is forwarded. */
export async function expectStrict(asked: Asked): Promise<void> {
  const { gateway } = asked;
  const client = gateway.client('HTTP/1.1');
  const refused = async (request: Parameters<typeof client.send>[0]): Promise<WireResponse> => {
    gateway.upstream.clear();
    const response = await client.send(request);
    expect(gateway.upstream.requests).toEqual([]);
    return response;
  };
  const request = signedFor(asked, readOrder);
  for (const wrong of [
    { ...request, target: '/v1/orders/4%2F711' },
    withMoreHeaders(request, [['x_proofgate_subject', 'client:somebody']]),
  ]) {
    const { headers, status } = await refused(wrong);
    expect([status, headerValues(headers, 'x-proofgate-reason')]).toEqual([400, []]);
  }
  const upgrade = withMoreHeaders(
    { method: 'GET', target: '/v1/orders/4711', authority: AUTHORITY, headers: request.headers ?? [] },
    [
      ['connection', 'Upgrade'],
      ['upgrade', 'websocket'],
    ],
  );
  expect((await refused(upgrade)).status).toBe(403);
}

/** Checks that the gateway forwards nothing when the verifier does not answer. @returns the response that the caller gets */
export async function expectClosedWithout(asked: Asked): Promise<WireResponse> {
  const { gateway } = asked;
  await gateway.verifier.stop();
  gateway.upstream.clear();
  const response = await gateway.client('HTTP/1.1').send(signedFor(asked, readOrder));
  expect([response.status, gateway.upstream.requests.length]).toEqual([503, 0]);
  return response;
}
