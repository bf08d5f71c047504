/** The verifier's decisions through each proxy with the shipped configuration: what callers and the API get. */
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import {
  headerValues,
  type WireRequest,
  type WireResponse,
} from '../../../src/tools/conformance/wire/exchange.ts';
import { type GuardedApi, startGuardedApi, usualVerifier } from '../../support/proxies/guarded-api.ts';
import { derivedKeyCaller } from '../../support/site/callers.ts';
import { expectOwnHeader, OWN_HEADER_CASES } from '../../support/site/own-header.ts';
import { ROUTES } from '../../support/site/routes.ts';
import { type RequestPlan, signedRequest, withHeader } from '../../support/site/signed-request.ts';
import { createSite, type Site } from '../../support/site/site.ts';
import { isForbidden } from '../../support/site/smuggled-headers.ts';
import { describeProxies } from './proxies.ts';

const { createOrder, forecast, livePrices, readOrder, replaceOrder, whoAmI } = ROUTES;
const CLIENTS = ['http1', 'http2'] as const;

describeProxies('decisions', (kind) => {
  let site: Site;
  let api: GuardedApi;
  beforeAll(async () => {
    site = await createSite();
    api = await startGuardedApi(
      kind,
      site,
      usualVerifier(site, { bundleDirectory: await site.makeBundle() }),
    );
  });
  afterAll(async () => {
    await api.stop();
    await site.remove();
  });

  const signed = (plan: Omit<RequestPlan, 'caller'>) =>
    signedRequest(site, { caller: derivedKeyCaller(site), ...plan });

  async function send(client: (typeof CLIENTS)[number], request: WireRequest) {
    api.upstream.clear();
    const response = await api.proxy[client].send(request);
    return { response, arrived: [...api.upstream.requests] };
  }

  describe.each(CLIENTS)('%s', (client) => {
    it('allows a signed request, adds the context, and keeps the credentials', async () => {
      const { response, arrived } = await send(
        client,
        signed({ route: readOrder, target: '/v1/orders/7?a=%2F&b' }),
      );
      expect(response.status).toBe(200);
      expect(arrived.map(({ method, url }) => `${method} ${url}`)).toEqual(['GET /v1/orders/7?a=%2F&b']);
      const headers = arrived[0]?.headers ?? [];
      expect(headerValues(headers, 'x-proofgate-subject')).toEqual(['client:billing']);
      expect(headerValues(headers, 'x-proofgate-route-id')).toEqual(['orders-read']);
      expect(headerValues(headers, 'authorization')).toEqual([]);
      expect(
        headers
          .filter(([name]) => isForbidden(name))
          .map(([name]) => name.toLowerCase())
          .sort(),
      ).toEqual(CONTEXT_NAMES);
    });

    it('forwards the passport where the route says so', async () => {
      const request = signed({ route: whoAmI });
      const { arrived } = await send(client, request);
      expect(headerValues(arrived[0]?.headers ?? [], 'authorization')).toEqual(
        headerValues(request.headers ?? [], 'authorization'),
      );
    });

    it.each(OWN_HEADER_CASES)('leaves Authorization to the application: $name', async (own) => {
      await expectOwnHeader(site, own, (request) => send(client, request));
    });

    it('allows a proof once', async () => {
      const request = signed({ route: readOrder });
      expect((await send(client, request)).response.status).toBe(200);
      const { response, arrived } = await send(client, request);
      expect([seen(response), arrived]).toEqual(['403 jti_replay', []]);
    });

    it('denies with 401 and 403, and says why', async () => {
      const unsigned = { ...signed({ route: readOrder }), headers: [] };
      const other = { ...signed({ route: readOrder }), target: '/v1/orders/other' };
      for (const [request, expected] of [
        [unsigned, '401 invalid_request_proof'],
        [other, '403 request_binding_mismatch'],
        [{ ...other, target: '/v1/orders/1;a' }, '403 bundle_route_missing'],
        [
          withHeader(signed({ route: readOrder }), 'x-proofgate-roles', 'admin'),
          '403 request_binding_mismatch',
        ],
      ] as const) {
        const { response, arrived } = await send(client, request);
        expect([seen(response), arrived]).toEqual([expected, []]);
        expect(headerValues(response.headers, 'cache-control')).toEqual(['no-store']);
        expect(headerValues(response.headers, 'content-type')).toEqual(['application/problem+json']);
      }
    });

    it('denies with 503, and says why', async () => {
      for (const [route, reason, detail, retryAfter] of [
        [livePrices, 'stale_bundle_fail_closed', 'stale', ['1']],
        [forecast, 'bundle_freshness_unknown', undefined, []],
      ] as const) {
        const { response, arrived } = await send(client, signed({ route }));
        expect([seen(response), arrived]).toEqual([`503 ${reason}`, []]);
        expect(headerValues(response.headers, 'retry-after')).toEqual(retryAfter);
        // nginx loses the rest of a denial.
        if (kind.profile === 'nginx') continue;
        expect(JSON.parse(response.body.toString())).toMatchObject({
          ...{ status: 503, reason, route_id: route.route_id },
          ...(detail === undefined ? {} : { detail }),
        });
      }
    });

    it('binds the body, or forwards none', async () => {
      const body = '{"item":1}';
      const whole = await send(client, signed({ route: createOrder, body }));
      const other = await send(client, { ...signed({ route: replaceOrder, body }), body: '{"item":2}' });
      const added = await send(client, { ...signed({ route: readOrder }), body });
      const none = await send(client, signed({ route: createOrder }));
      // Caddy over HTTP/2: such a request may have trailers, which no check sees.
      expect(none.response.status).toBe(kind.profile === 'caddy' && client === 'http2' ? 413 : 200);
      for (const { arrived, response } of [other, added]) {
        if (arrived.length > 0) expect([response.status, arrived[0]?.body.length]).toEqual([200, 0]);
      }
      expect(whole.response.status).toBe(kind.bodyMode === 'forwarded' ? 200 : whole.response.status);
    });
  });

  it('denies when the verifier is gone', async () => {
    api.verifier.signal('SIGKILL');
    await api.verifier.exited;
    for (const client of CLIENTS) {
      const { response, arrived } = await send(client, signed({ route: readOrder }));
      expect(arrived).toEqual([]);
      expect(response.status).toBeGreaterThanOrEqual(500);
      if (kind.profile !== 'nginx' && kind.profile !== 'envoy') continue;
      const problem = JSON.parse(response.body.toString());
      expect([response.status, problem.reason, problem.detail]).toEqual([
        503,
        'verifier_unavailable',
        'no_answer',
      ]);
      expect(problem).not.toHaveProperty('decision_id');
      expect(problem.request_id).toMatch(/^[0-9a-f-]{32,36}$/);
      expect(headerValues(response.headers, 'x-proofgate-decision-id')).toEqual([]);
    }
  });
});

const CONTEXT_NAMES =
  'auth-site bundle-revision client-id decision-id issuer key-binding key-id route-id subject trust-domain'
    .split(' ')
    .map((name) => `x-proofgate-${name}`);

function seen({ headers, status }: WireResponse): string {
  return [status, ...headerValues(headers, 'x-proofgate-reason')].join(' ');
}
