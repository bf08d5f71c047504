/** Headers of callers are never believed: every attempt of spoofing-attempts.ts, through each proxy, over HTTP/1.1 and HTTP/2. */
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import {
  type HeaderLine,
  headerValues,
  NoResponse,
  type WireRequest,
} from '../../../src/tools/conformance/wire/exchange.ts';
import type { UpstreamRequest } from '../../support/harness/upstream.ts';
import { type GuardedApi, startGuardedApi, usualVerifier } from '../../support/proxies/guarded-api.ts';
import { derivedKeyCaller } from '../../support/site/callers.ts';
import { ROUTES } from '../../support/site/routes.ts';
import { type RequestPlan, signedRequest, withMoreHeaders } from '../../support/site/signed-request.ts';
import { createSite, type Site } from '../../support/site/site.ts';
import { isForbidden } from '../../support/site/smuggled-headers.ts';
import { describeProxies } from './proxies.ts';
import {
  CLAIMED_TARGET,
  OTHER_CALLER,
  OTHER_HOST,
  OTHER_REQUEST,
  OTHER_SCHEME,
} from './spoofing-attempts.ts';

const CLIENTS = ['http1', 'http2'] as const;
type Client = (typeof CLIENTS)[number];

describeProxies('spoofing', (kind) => {
  let site: Site;
  let api: GuardedApi;
  beforeAll(async () => {
    site = await createSite();
    const start = usualVerifier(site, { bundleDirectory: await site.makeBundle() });
    api = await startGuardedApi(kind, site, start);
  });
  afterAll(async () => {
    await api.stop();
    await site.remove();
  });

  const signed = (transcript: NonNullable<RequestPlan['transcript']> = {}): WireRequest =>
    signedRequest(site, {
      caller: derivedKeyCaller(site),
      route: ROUTES.readOrder,
      target: CLAIMED_TARGET,
      transcript,
    });

  /** What reached the API. */
  async function arrived(
    client: Client,
    request: WireRequest,
    headers: readonly HeaderLine[],
  ): Promise<readonly UpstreamRequest[]> {
    api.upstream.clear();
    const spelled = headers.map(
      ([name, value]): HeaderLine => [client === 'http2' ? name.toLowerCase() : name, value],
    );
    await api.proxy[client].send(withMoreHeaders(request, spelled)).catch((error: unknown) => {
      if (!(error instanceof NoResponse) || error.kind === 'timeout') throw error;
    });
    return [...api.upstream.requests];
  }

  describe.each(CLIENTS)('%s', (client) => {
    it('allows the request without any of it', async () => {
      expect(await arrived(client, signed(), [])).toHaveLength(1);
    });

    it.each(OTHER_REQUEST)('another request with the proof: $name', async ({ headers }) => {
      const cancellation = { ...signed(), method: 'DELETE', target: '/v1/cancellations/4711' };
      const order = { ...signed(), target: '/v1/orders/other' };
      for (const request of [cancellation, order])
        expect(await arrived(client, request, headers)).toEqual([]);
    });

    it.each(OTHER_CALLER)('the headers of another caller: $name', async ({ headers }) => {
      for (const request of await arrived(client, signed(), headers)) {
        expect([request.method, request.url]).toEqual(['GET', CLAIMED_TARGET]);
        expect(headerValues(request.headers, 'x-proofgate-subject')).toEqual(['client:billing']);
        const names = request.headers.map(([name]) => name.toLowerCase()).filter(isForbidden);
        expect(new Set(names).size).toBe(names.length);
        expect(JSON.stringify(request.headers)).not.toContain('root');
      }
    });

    it.each(OTHER_SCHEME)('another scheme: $name', async ({ headers }) => {
      expect(await arrived(client, signed({ scheme: 'https' }), headers)).toEqual([]);
    });

    it.each(OTHER_HOST)('another host: $name', async ({ headers }) => {
      const elsewhere = { ...signed(), authority: 'other.shop.example' };
      expect(await arrived(client, elsewhere, headers)).toEqual([]);
    });
  });
});

it('makes more than thirty attempts at each proxy', () => {
  const attempts = [OTHER_REQUEST, OTHER_CALLER, OTHER_SCHEME, OTHER_HOST].flat();
  expect(attempts.length).toBeGreaterThanOrEqual(50);
});
