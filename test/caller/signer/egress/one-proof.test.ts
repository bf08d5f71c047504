/** One proof, one delivery, through the egress proxy: what an upstream gets that fails on a reused connection. */
import { request as httpRequest } from 'node:http';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { ORIGIN, useEgress } from '../../../support/caller/egress-fixture.ts';
import { useProxies } from '../../../support/points/proxy-fixture.ts';
import { FAULTS, Upstream } from '../../sdk/node/upstreams.ts';

const proxies = useProxies();
const egressTo = useEgress();

let upstream: Upstream;
beforeAll(async () => {
  upstream = await Upstream.start();
});
afterAll(() => upstream.close());

/** Not `fetch`, which sends again after a 421. */
function send(method: string, url: string): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const request = httpRequest(
      url,
      { method, headers: { 'idempotency-key': 'k' }, agent: false },
      (answer) => {
        answer.resume().once('end', () => resolve(answer.statusCode));
      },
    );
    request.once('error', reject).end(method === 'GET' ? undefined : 'x'.repeat(200_000));
  });
}

const REQUESTS = [
  ['GET', '/v1/orders/1'],
  ['PUT', '/v1/orders/1'],
  ['POST', '/v1/orders'],
] as const;

it.each(FAULTS.flatMap((fault) => REQUESTS.map((request) => [...request, ...fault] as const)))(
  '%s %s, and the upstream %s: delivered once',
  async (method, path, _what, fault) => {
    const routes = [{ prefix: '', origin: ORIGIN, url: upstream.origin }];
    const { signed, url } = await egressTo(upstream.origin, proxies.site, { routes });
    upstream.arrived.length = 0;
    upstream.behaviours = [{ kind: 'answer', status: 200 }, fault];
    const statuses: (number | undefined)[] = [];
    for (let i = 0; i < 3; i++) statuses.push(await send(method, `${url}${path}`));
    expect(statuses).toEqual([200, fault.kind === 'answer' ? fault.status : 502, 200]);
    expect(upstream.jtis).toEqual(signed.map(({ jti }) => jti));
    expect(new Set(upstream.jtis).size).toBe(3);
  },
);
