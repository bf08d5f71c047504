/** `proofgate proxy` behind nginx with deploy/nginx/proxy.conf: bodies, targets and headers arrive as they were signed. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { headerValues } from '../../../src/tools/conformance/wire/exchange.ts';
import { nginx, startNginxBeforeProxy } from '../../support/proxies/nginx.ts';
import type { ForwardProxy } from '../../support/proxies/proxy.ts';
import { derivedKeyCaller } from '../../support/site/callers.ts';
import { AUTHORITY, ROUTES } from '../../support/site/routes.ts';
import { type RequestPlan, signedRequest, withHeader } from '../../support/site/signed-request.ts';
import { createSite, type Site } from '../../support/site/site.ts';
import { type ProxiedUpstream, startRecordedProxy } from './proxy-fixture.ts';

let site: Site;
let proxy: ProxiedUpstream;
let front: ForwardProxy;

beforeAll(async () => {
  expect(nginx.unavailable()).toBeUndefined();
  site = await createSite();
  proxy = await startRecordedProxy(site, { flags: ['--external-origin', `http://${AUTHORITY}`] });
  front = await startNginxBeforeProxy(proxy.address, AUTHORITY);
});
beforeEach(() => proxy.upstream.clear());
afterAll(async () => {
  await front?.stop();
  await proxy?.stop();
  await site?.remove();
});

const signed = (plan: Omit<RequestPlan, 'caller'>) =>
  signedRequest(site, { caller: derivedKeyCaller(site), ...plan });

describe.each(['http1', 'http2'] as const)('%s', (protocol) => {
  test.each([
    ['empty', ''],
    ['short', '{"total":1}'],
    ['of a megabyte', 'x'.repeat(1_048_576)],
  ])('a body %s arrives byte for byte, once', async (_, text) => {
    const body = Buffer.from(text);
    const response = await front[protocol].send(signed({ route: ROUTES.createOrder, body }));
    expect(response.status).toBe(200);
    expect(proxy.upstream.requests.map((arrived) => arrived.body.equals(body))).toEqual([true]);
  });

  test('a changed body does not arrive', async () => {
    const request = signed({ route: ROUTES.createOrder, body: Buffer.from('{"total":1}') });
    const response = await front[protocol].send({ ...request, body: '{"total":2}' });
    expect(response.status).toBe(403);
    expect(JSON.parse(response.body.toString())).toMatchObject({ detail: 'content-sha256' });
    expect(proxy.upstream.requests).toEqual([]);
  });

  test('a target with escapes and a query arrives as it was signed', async () => {
    const target = '/v1/orders/a%20b?x=%2f&y=1&&z';
    const response = await front[protocol].send(signed({ route: ROUTES.readOrder, target }));
    expect(response.status).toBe(200);
    expect(proxy.upstream.requests.map(({ url }) => url)).toEqual([target]);
  });

  test.each(['/v1//orders/1', '/v1/./orders/1', '/v1/orders/%31'])('%s is denied', async (target) => {
    const response = await front[protocol].send(signed({ route: ROUTES.readOrder, target }));
    expect(response.status).toBe(403);
    expect(JSON.parse(response.body.toString())).toMatchObject({
      detail: 'path_not_canonical',
    });
    expect(proxy.upstream.requests).toEqual([]);
  });

  test('another host is 421; context headers are the proxy’s alone', async () => {
    const request = signed({
      route: ROUTES.readOrder,
      otherHeaders: [['x-proofgate-subject', 'client:admin']],
    });
    expect((await front[protocol].send({ ...request, authority: 'other.example' })).status).toBe(421);
    expect((await front[protocol].send(request)).status).toBe(200);
    const [arrived, ...others] = proxy.upstream.requests;
    expect(others).toEqual([]);
    expect(headerValues(arrived?.headers ?? [], 'x-proofgate-subject')).toEqual(['client:billing']);
    expect(headerValues(arrived?.headers ?? [], 'authorization')).toEqual([]);
  });

  test('a header with `_` reaches the proxy, which removes another spelling of its own and keeps others', async () => {
    const plan = { route: ROUTES.readOrder, signedHeaders: [{ name: 'x_tenant', value: 'a' }] };
    const request = withHeader(signed(plan), 'x_proofgate_subject', 'client:admin');
    expect((await front[protocol].send(request)).status).toBe(200);
    const [arrived] = proxy.upstream.requests;
    expect(headerValues(arrived?.headers ?? [], 'x_tenant')).toEqual(['a']);
    expect(headerValues(arrived?.headers ?? [], 'x_proofgate_subject')).toEqual([]);
  });
});

test('a body in chunks arrives', async () => {
  const body = Buffer.from('{"total":1}');
  const request = signed({ route: ROUTES.createOrder, body, framing: 'open' });
  expect((await front.http1.send(request)).status).toBe(200);
  expect(proxy.upstream.requests.map((arrived) => arrived.body)).toEqual([body]);
});
