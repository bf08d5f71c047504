/** Tests the specification's "Expected outcomes of verification", each by its name, with both replay stores. */
import { describe, expect, it } from '@jest/globals';
import { headerValues } from '../../src/tools/conformance/wire/exchange.ts';
import { attestedCaller, buildCaller, type Caller, derivedKeyCaller } from '../support/site/callers.ts';
import { useEnvironment } from '../support/site/environment.ts';
import { type Gateway, PROTOCOLS } from '../support/site/gateway.ts';
import { type ExpectedDenial, expectAllowed, expectDenial, observe } from '../support/site/observe.ts';
import { expectOwnHeader, OWN_HEADER_CASES } from '../support/site/own-header.ts';
import { ROUTES } from '../support/site/routes.ts';
import { type RequestPlan, signedRequest } from '../support/site/signed-request.ts';
import { AUTH_SITE, BROKER_ISSUER, CLIENT_ISSUER, type Site, TRUST_DOMAIN } from '../support/site/site.ts';
import { LANE_ENVOYS } from './lane-envoys.ts';

const STORES = ['usual', 'redis'] as const;
const { createOrder, payroll, readOrder, vault, whoAmI } = ROUTES;
const body = '{"item":1,"count":2}';

const environment = useEnvironment(STORES);

const combinations = LANE_ENVOYS.flatMap((version) =>
  PROTOCOLS.flatMap((protocol) => STORES.map((store) => ({ version, protocol, store }))),
);

describe.each(combinations)('Envoy $version, $protocol, $store', ({ version, protocol, store }) => {
  const signed = (plan: Omit<RequestPlan, 'caller'>, caller?: Caller) =>
    signedRequest(environment.site, { caller: caller ?? derivedKeyCaller(environment.site), ...plan });

  async function expectRequestAllowed(plan: RequestPlan): Promise<void> {
    const gateway = await environment.gateway(version, store);
    const observed = await observe(gateway, gateway.client(protocol), signedRequest(environment.site, plan));
    const { caller, route } = plan;
    const arrived = await expectAllowed(gateway, observed, {
      routeId: route.route_id,
      subject: caller.subject,
    });
    expect(arrived).toMatchObject({ method: route.method, body: Buffer.from(plan.body ?? '') });
  }

  async function expectRequestDenied(
    request: ReturnType<typeof signed>,
    expected: ExpectedDenial,
  ): Promise<void> {
    const gateway = await environment.gateway(version, store);
    await expectDenial(gateway, await observe(gateway, gateway.client(protocol), request), expected);
  }

  it('Granted route: allowed', async () => {
    await expectRequestAllowed({ caller: derivedKeyCaller(environment.site), route: readOrder });
    await expectRequestAllowed({
      caller: derivedKeyCaller(environment.site, 'dk_reporting'),
      route: readOrder,
    });
  });

  it('Write route: allowed only if the client has write access', async () => {
    await expectRequestAllowed({ caller: derivedKeyCaller(environment.site), route: createOrder, body });
    await expectRequestDenied(
      signed({ route: createOrder, body }, derivedKeyCaller(environment.site, 'dk_reporting')),
      {
        reason: 'source_subject_mismatch',
        detail: 'not_granted',
        routeId: createOrder.route_id,
      },
    );
  });

  it('Ungranted route: denied', () =>
    expectRequestDenied(signed({ route: payroll }), {
      reason: 'source_subject_mismatch',
      detail: 'not_granted',
      routeId: payroll.route_id,
    }));

  it('Reused signed request: replay denial', async () => {
    const gateway = await environment.gateway(version, store);
    const request = signed({ route: createOrder, body });
    const first = await observe(gateway, gateway.client(protocol), request);
    await expectAllowed(gateway, first, { routeId: createOrder.route_id, subject: 'client:billing' });
    await expectRequestDenied(request, {
      reason: 'jti_replay',
      routeId: createOrder.route_id,
      callerVerified: true,
    });
  });

  it('Modified signed body: body-hash mismatch denial', () =>
    expectRequestDenied(
      { ...signed({ route: createOrder, body }), body: body.replace('2', '9') },
      {
        reason: 'request_binding_mismatch',
        detail: 'content-sha256',
        routeId: createOrder.route_id,
      },
    ));

  it('Revoked derived key: denied', () =>
    expectRequestDenied(signed({ route: readOrder }, derivedKeyCaller(environment.site, 'dk_revoked')), {
      reason: 'invalid_request_proof',
      detail: 'key_revoked',
      routeId: readOrder.route_id,
    }));

  it('Expired derived key: denied', () =>
    expectRequestDenied(signed({ route: readOrder }, derivedKeyCaller(environment.site, 'dk_expired')), {
      reason: 'invalid_request_proof',
      detail: 'key_expired',
      routeId: readOrder.route_id,
    }));

  it('allows each other kind of caller too: attested, software, P-256 keys', async () => {
    const { site } = environment;
    await expectRequestAllowed({ caller: attestedCaller(site), route: vault });
    await expectRequestAllowed({ caller: attestedCaller(site, 'broker-p256'), route: vault });
    await expectRequestAllowed({ caller: buildCaller(site), route: readOrder });
    await expectRequestAllowed({ caller: derivedKeyCaller(site, 'dk_billing_p256'), route: readOrder });
  });

  it('a denial consumes nothing: the same proof is still good for the request that it was made for', async () => {
    const gateway = await environment.gateway(version, store);
    const request = signed({ route: readOrder });
    const misused = { ...request, target: '/v1/orders/4712' };
    await expectRequestDenied(misused, {
      reason: 'request_binding_mismatch',
      detail: 'target',
      routeId: readOrder.route_id,
    });
    const observed = await observe(gateway, gateway.client(protocol), request);
    await expectAllowed(gateway, observed, { routeId: readOrder.route_id, subject: 'client:billing' });
  });

  it('tells the upstream who calls, and keeps the credentials from it', async () => {
    const { site } = environment;
    const gateway = await environment.gateway(version, store);
    expect(await contextOf(gateway, site, { caller: derivedKeyCaller(site), route: readOrder })).toEqual({
      subject: 'client:billing',
      issuer: CLIENT_ISSUER,
      'trust-domain': TRUST_DOMAIN,
      'key-id': 'dk_billing',
      'key-binding': 'software',
      'client-id': 'billing',
      'route-id': readOrder.route_id,
      'auth-site': AUTH_SITE,
      'decision-id': expect.any(String),
      'bundle-revision': '1',
    });
    const attested = attestedCaller(site);
    expect(await contextOf(gateway, site, { caller: attested, route: vault })).toEqual({
      subject: attested.subject,
      issuer: BROKER_ISSUER,
      'trust-domain': TRUST_DOMAIN,
      'key-id': 'broker-1',
      'key-binding': 'attested_workload',
      'route-id': vault.route_id,
      'auth-site': AUTH_SITE,
      'decision-id': expect.any(String),
      'bundle-revision': '1',
    });
  });

  it('forwards the passport, and only that, where the route says so', async () => {
    const gateway = await environment.gateway(version, store);
    for (const [route, passports] of [
      [whoAmI, 1],
      [readOrder, 0],
    ] as const) {
      const { forwarded } = await observe(gateway, gateway.client(protocol), signed({ route }));
      const [arrived] = forwarded;
      expect(headerValues(arrived?.headers ?? [], 'authorization')).toHaveLength(passports);
      expect(headerValues(arrived?.headers ?? [], 'x-proofgate-transcript')).toEqual([]);
    }
  });

  it.each(OWN_HEADER_CASES)('leaves Authorization to the application: $name', async (own) => {
    const gateway = await environment.gateway(version, store);
    await expectOwnHeader(environment.site, own, async (request) => {
      const { forwarded, response } = await observe(gateway, gateway.client(protocol), request);
      return { response, arrived: forwarded };
    });
  });

  /** Every `X-Proofgate-…` header that arrived, without the prefix. */
  async function contextOf(gateway: Gateway, site: Site, plan: RequestPlan): Promise<object> {
    const { forwarded } = await observe(gateway, gateway.client(protocol), signedRequest(site, plan));
    const lines = (forwarded[0]?.headers ?? []).map(([name, value]) => [name.toLowerCase(), value] as const);
    const ours = lines.filter(([name]) => name.startsWith('x-proofgate-'));
    return Object.fromEntries(ours.map(([name, value]) => [name.replace('x-proofgate-', ''), value]));
  }
});
