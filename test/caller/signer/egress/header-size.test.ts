/** Headers that no gateway takes once passport and proof are beside them: the signer says so, and sends nothing. */
import { expect, it } from '@jest/globals';
import type { HeaderLine } from '../../../../src/tools/conformance/wire/exchange.ts';
import { http1Client } from '../../../../src/tools/conformance/wire/http1.ts';
import { useEgress } from '../../../support/caller/egress-fixture.ts';
import { useProxies, useUpstreams } from '../../../support/points/proxy-fixture.ts';

const proxies = useProxies();
const upstreamWith = useUpstreams();
const egressTo = useEgress();

it.each<[string, readonly HeaderLine[], number]>([
  ['a large token', [['Authorization', `Bearer ${'x'.repeat(10_000)}`]], 200],
  ['a token that leaves no room', [['Authorization', `Bearer ${'x'.repeat(60_500)}`]], 400],
  ['many lines', Array.from({ length: 90 }, (_, at): HeaderLine => [`x-own-${at}`, '']), 200],
  ['lines that leave no room', Array.from({ length: 98 }, (_, at): HeaderLine => [`x-own-${at}`, '']), 400],
])('%s', async (_what, headers, expected) => {
  const arrived: string[] = [];
  const upstream = await upstreamWith((request, response) => {
    arrived.push(request.url ?? '');
    response.end('done');
  });
  const verifying = await proxies.open(upstream.url);
  const egress = await egressTo(`http://127.0.0.1:${verifying.address.port}`, proxies.site);
  const { host, port } = egress.address;
  const request = { method: 'GET', authority: `${host}:${port}`, target: '/v1/bearer', headers };
  const { body, status } = await http1Client(egress.address).send(request);
  expect([status, arrived.length]).toEqual([expected, expected === 200 ? 1 : 0]);
  if (expected === 400)
    expect(JSON.parse(body.toString()).type).toBe('urn:proofgate:fault:credentials_too_large');
});
