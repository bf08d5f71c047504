/** A signer whose clock stood still or ran ahead, in front of a verifier whose clock is right. */
import { get, type IncomingMessage } from 'node:http';
import { expect, it } from '@jest/globals';
import { headerValues } from '../../../../src/tools/conformance/wire/exchange.ts';
import { http1Client } from '../../../../src/tools/conformance/wire/http1.ts';
import { useEgress } from '../../../support/caller/egress-fixture.ts';
import { useProxies, useUpstreams } from '../../../support/points/proxy-fixture.ts';

const proxies = useProxies();
const upstreamWith = useUpstreams();
const egressTo = useEgress();

it.each([
  ['proof_not_yet_valid', 45],
  ['proof_expired', -120],
])(
  'a denial by %s says that the clock is %d s ahead, and the next request after a jump is allowed',
  async (detail, ahead) => {
    const upstream = await upstreamWith((_request, response) =>
      response.writeHead(200, { 'x-proofgate-clock-ahead': '7' }).end('done'),
    );
    const verifying = await proxies.open(upstream.url);
    let offsetMs = ahead * 1000;
    const egress = await egressTo(`http://127.0.0.1:${verifying.address.port}`, proxies.site, {
      nowMs: () => Date.now() + offsetMs,
    });
    const send = async () => {
      const { host, port } = egress.address;
      const { body, headers, status } = await http1Client(egress.address).send({
        ...{ method: 'GET', authority: `${host}:${port}`, target: '/v1/orders/4711' },
      });
      return { status, body: body.toString(), clock: headerValues(headers, 'x-proofgate-clock-ahead') };
    };
    const denied = await send();
    // A passport of the earlier time may be in use.
    expect([denied.status, JSON.parse(denied.body).reason]).toEqual([401, 'invalid_request_proof']);
    expect(JSON.parse(denied.body).detail.replace('passport', 'proof')).toBe(detail);
    const [said = 'none', ...more] = denied.clock;
    expect([Math.abs(Number(said) - ahead) <= 2, more, egress.wrongClocks]).toEqual([
      true,
      [],
      [Number(said)],
    ]);
    offsetMs = 0;
    expect(await send()).toEqual({ status: 200, body: 'done', clock: [] });
  },
);

it('no upstream says it in a trailer', async () => {
  const upstream = await upstreamWith((_request, response) => {
    response.writeHead(200, { trailer: 'x-proofgate-clock-ahead, x-sum' });
    response.addTrailers({ 'x-proofgate-clock-ahead': '7', 'x-sum': '9' });
    response.end('done');
  });
  const verifying = await proxies.open(upstream.url);
  const egress = await egressTo(`http://127.0.0.1:${verifying.address.port}`, proxies.site);
  const response = await new Promise<IncomingMessage>((resolve, reject) =>
    get(`${egress.url}/v1/orders/4711`, { headers: { te: 'trailers', connection: 'te' } }, resolve).on(
      'error',
      reject,
    ),
  );
  await response.toArray();
  expect([response.statusCode, response.trailers]).toEqual([200, { 'x-sum': '9' }]);
});
