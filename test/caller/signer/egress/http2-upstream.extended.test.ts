/** How long the egress proxy relays a response over an HTTP/2 connection that the upstream closes. */
import { createSecureServer } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { useEgress } from '../../../support/caller/egress-fixture.ts';
import { makeCertificates, type TestCertificates } from '../../../support/harness/certificates.ts';
import { useProxies } from '../../../support/points/proxy-fixture.ts';
import { AUTHORITY } from '../../../support/site/routes.ts';

const EVENTS = 45;

const proxies = useProxies();
const egressTo = useEgress();
let certificates: TestCertificates;
beforeAll(async () => {
  certificates = await makeCertificates(AUTHORITY, 'spiffe://shop.example/a');
});
afterAll(() => certificates.remove());

// The proxy asks each connection every 30 seconds whether it lives.
it('lets a response go on long after GOAWAY', async () => {
  const { cert, key } = certificates.server;
  const upstream = createSecureServer({ cert, key });
  upstream.on('stream', (stream) => {
    stream.on('error', () => undefined);
    stream.respond({ ':status': 200, 'content-type': 'text/event-stream' });
    stream.session?.close();
    const timer = setInterval(() => stream.write('data: 1\n\n'), 1_000);
    stream.once('close', () => clearInterval(timer));
  });
  await new Promise<void>((resolve) => upstream.listen(0, '127.0.0.1', resolve));
  const { port } = upstream.address() as AddressInfo;
  const egress = await egressTo(`https://127.0.0.1:${port}`, proxies.site, { caPem: certificates.ca.cert });
  const { body } = await fetch(`${egress.url}/v1/orders/1`);
  let events = 0;
  for await (const _event of body ?? []) {
    events += 1;
    if (events === EVENTS) break;
  }
  upstream.close();
  expect(events).toBe(EVENTS);
});
