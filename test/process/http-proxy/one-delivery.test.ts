/** One proof, one delivery over HTTP/2, which the signer's egress may speak: no stream is opened a second time. */
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { openNegotiatedPool } from '../../../src/process/http-proxy/negotiated-pool.ts';
import type { UpstreamPool } from '../../../src/process/http-proxy/upstream-pool.ts';
import { HTTP2_OCCASIONS, startCountingHttp2Upstream } from '../../support/fakes/counting-http2-upstream.ts';
import type { CountingUpstream } from '../../support/fakes/counting-upstream.ts';
import { makeCertificates, type TestCertificates } from '../../support/harness/certificates.ts';

const HOST = 'api.shop.example';
const METHODS = ['GET', 'HEAD', 'OPTIONS', 'POST', 'PUT', 'DELETE'];

let certificates: TestCertificates;
let upstream: CountingUpstream;
let pool: UpstreamPool;
beforeAll(async () => {
  certificates = await makeCertificates(HOST, 'spiffe://shop.example/a');
  upstream = await startCountingHttp2Upstream({
    cert: certificates.server.cert,
    key: certificates.server.key,
  });
  pool = openNegotiatedPool(new URL(`https://127.0.0.1:${upstream.port}`), {
    tls: { ca: certificates.ca.cert, client: undefined, serverName: HOST },
    ...{ maxConnections: 8, responseTimeoutMs: 1_000, idleTimeoutMs: 5_000, onConnect: () => undefined },
  });
});
afterAll(async () => {
  await pool.destroy();
  await upstream.stop();
  await certificates.remove();
});

it.each(METHODS)(
  '%s reaches the upstream once at most, whatever it does',
  async (method) => {
    for (const [index, { before, event }] of HTTP2_OCCASIONS.entries()) {
      await send(method, `/?id=before${method}${index}&event=${before}`);
      await send(method, `/?id=${method}${index}&event=${event}`);
    }
    const counts = HTTP2_OCCASIONS.map((_, index) => upstream.deliveries.get(`${method}${index}`) ?? 0);
    expect(counts.filter((count) => count > 1)).toEqual([]);
    expect(counts.filter((count) => count === 1).length).toBeGreaterThan(10);
  },
  60_000,
);

/** Resolves when the exchange has ended, in whatever way. */
function send(method: string, target: string): Promise<void> {
  return new Promise((resolve) => {
    pool.dispatch(
      {
        ...{ method, target, headers: ['host', HOST, 'idempotency-key', 'k1'] },
        ...{ body: undefined, lengthBytes: undefined },
      },
      {
        onRequestStart: () => undefined,
        onResponseStart: () => undefined,
        onResponseData: () => undefined,
        onResponseEnd: () => resolve(),
        onResponseError: () => resolve(),
      },
    );
  });
}
