/** What `proofgate proxy` forwards, over HTTP/1.1 and HTTP/2. */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { headerValues } from '../../../src/tools/conformance/wire/exchange.ts';
import { http1Client } from '../../../src/tools/conformance/wire/http1.ts';
import { http2Client } from '../../../src/tools/conformance/wire/http2.ts';
import { derivedKeyCaller } from '../../support/site/callers.ts';
import { expectOwnHeader, OWN_HEADER_CASES } from '../../support/site/own-header.ts';
import { ROUTES } from '../../support/site/routes.ts';
import { signedRequest } from '../../support/site/signed-request.ts';
import { createSite, type Site } from '../../support/site/site.ts';
import { type ProxiedUpstream, startRecordedProxy } from './proxy-fixture.ts';

let site: Site;
let proxy: ProxiedUpstream;

beforeAll(async () => {
  site = await createSite();
  proxy = await startRecordedProxy(site);
});

afterAll(async () => {
  await proxy?.stop();
  await site?.remove();
});

const CLIENTS = [
  ['HTTP/1.1', http1Client],
  ['HTTP/2', http2Client],
] as const;

test.each(CLIENTS)('%s: an allowed request arrives unchanged, with context headers', async (_, client) => {
  const request = signedRequest(site, {
    caller: derivedKeyCaller(site),
    route: ROUTES.readOrder,
    target: '/v1/orders/a%20b?x=%2f&y=1',
    otherHeaders: [['x-proofgate-subject', 'client:admin']],
  });
  const response = await client(proxy.address).send(request);
  expect(response.status).toBe(200);
  const arrived = proxy.upstream.requests.at(-1);
  expect(arrived?.url).toBe('/v1/orders/a%20b?x=%2f&y=1');
  expect(headerValues(arrived?.headers ?? [], 'x-proofgate-subject')).toEqual(['client:billing']);
  expect(headerValues(arrived?.headers ?? [], 'authorization')).toEqual([]);
});

describe.each(CLIENTS)('%s leaves Authorization to the application', (_, client) => {
  test.each(OWN_HEADER_CASES)('$name', async (own) => {
    await expectOwnHeader(site, own, async (request) => {
      proxy.upstream.clear();
      const response = await client(proxy.address).send(request);
      return { response, arrived: [...proxy.upstream.requests] };
    });
  });
});

test.each(CLIENTS)(
  '%s: a body arrives byte for byte, and a changed one does not arrive',
  async (_, client) => {
    const body = Buffer.from('{"total":1}');
    const plan = { caller: derivedKeyCaller(site), route: ROUTES.createOrder, body };
    expect((await client(proxy.address).send(signedRequest(site, plan))).status).toBe(200);
    expect(proxy.upstream.requests.at(-1)?.body).toEqual(body);
    proxy.upstream.clear();
    const changed = { ...signedRequest(site, plan), body: '{"total":2}' };
    const response = await client(proxy.address).send(changed);
    expect(response.status).toBe(403);
    expect(JSON.parse(response.body.toString())).toMatchObject({ detail: 'content-sha256' });
    expect(proxy.upstream.requests).toEqual([]);
  },
);
