/** The method QUERY (RFC 10008): its body is bound, at the reverse proxy and at the middleware, as that of POST. */
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { WireClient } from '../../src/tools/conformance/wire/exchange.ts';
import { http1Client } from '../../src/tools/conformance/wire/http1.ts';
import { http2Client } from '../../src/tools/conformance/wire/http2.ts';
import { type App, KINDS, startApp } from '../support/points/middleware-apps.ts';
import {
  type OpenedVerifier,
  openVerifier,
  untilReady,
  usualOptions,
} from '../support/points/open-middleware.ts';
import { loadSnapshot } from '../support/points/oracle.ts';
import { useProxies, useUpstreams } from '../support/points/proxy-fixture.ts';
import { derivedKeyCaller } from '../support/site/callers.ts';
import { ROUTES, type SiteRoute } from '../support/site/routes.ts';
import { signedRequest } from '../support/site/signed-request.ts';

const SEARCH: SiteRoute = {
  ...ROUTES.createOrder,
  ...{ route_id: 'orders-search', method: 'QUERY', path_template: '/v1/search' },
};
const BODY = 'state=open';

const proxies = useProxies();
const upstreamWith = useUpstreams();
let bundle = '';
let opened: OpenedVerifier;
beforeAll(async () => {
  const { site } = proxies;
  bundle = await site.makeBundle({ moreRoutes: [SEARCH] });
  const snapshot = await loadSnapshot(site, bundle);
  if (snapshot !== undefined) proxies.snapshot = snapshot;
  opened = await openVerifier(await usualOptions(site, bundle));
  await untilReady(opened.verifier);
});
afterAll(() => opened.verifier.close());

const search = (body: string | undefined) => {
  const { site } = proxies;
  const caller = derivedKeyCaller(site);
  // RFC 10008 section 2: without it, a server must refuse the request; Fastify does.
  const otherHeaders = [['content-type', 'text/plain']] as const;
  return signedRequest(site, { caller, route: SEARCH, otherHeaders, ...(body !== undefined && { body }) });
};

/** Statuses of the signed request, of one with another body, and of one without. */
async function answersOf(client: WireClient): Promise<readonly unknown[]> {
  const outcomes: unknown[] = [];
  for (const sent of [BODY, 'state=closed', '']) {
    const { body, status } = await client.send({ ...search(BODY), body: sent });
    outcomes.push(status === 200 ? 200 : JSON.parse(body.toString()).detail);
  }
  outcomes.push((await client.send(search(undefined))).status);
  return outcomes;
}
const EXPECTED = [200, 'content-sha256', 'content-sha256', 200];

it.each([
  ['HTTP/1.1', http1Client],
  ['HTTP/2', http2Client],
] as const)('the reverse proxy, over %s', async (_protocol, clientOf) => {
  const arrived: string[] = [];
  const upstream = await upstreamWith(async (request, response) => {
    const body = Buffer.concat(await request.toArray()).toString();
    arrived.push(`${request.method} ${request.url} ${body}`);
    response.end('found');
  });
  const { address } = await proxies.open(upstream.url);
  expect(await answersOf(clientOf(address))).toEqual(EXPECTED);
  expect(arrived).toEqual([`QUERY /v1/search ${BODY}`, 'QUERY /v1/search ']);
});

describe.each(KINDS)('the middleware: %s', (kind) => {
  let app: App;
  beforeAll(async () => {
    app = await startApp(kind, opened.verifier);
  });
  afterAll(() => app.close());

  it('allows only the signed body', async () => {
    expect(await answersOf(http1Client(app.address))).toEqual(EXPECTED);
    expect(app.handled.map(({ body, method }) => `${method} ${body}`)).toEqual([`QUERY ${BODY}`, 'QUERY ']);
  });
});
