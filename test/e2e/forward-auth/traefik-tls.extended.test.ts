/** The optional blocks of deploy/traefik/: TLS for callers, mutual TLS to the verifier. */
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import {
  headerValues,
  pairs,
  type WireRequest,
  type WireResponse,
} from '../../../src/tools/conformance/wire/exchange.ts';
import { http1Client } from '../../../src/tools/conformance/wire/http1.ts';
import { http2Client } from '../../../src/tools/conformance/wire/http2.ts';
import { makeCertificates, type TestCertificates } from '../../support/harness/certificates.ts';
import {
  forwardAuth,
  type RunningTraefik,
  startTraefik,
  traefikUnavailable,
} from '../../support/harness/traefik.ts';
import { startUpstream, type Upstream } from '../../support/harness/upstream.ts';
import { AUTHORITY } from '../../support/site/routes.ts';
import { type RecordingCheck, startRecordingCheck } from './recording-check.ts';

const suite = traefikUnavailable() === undefined ? describe : describe.skip;
const REQUEST: WireRequest = { method: 'GET', target: '/a', authority: AUTHORITY };

suite('deploy/traefik/ with its blocks of TLS', () => {
  let certificates: TestCertificates;
  let check: RecordingCheck;
  let upstream: Upstream;
  let traefik: RunningTraefik;

  const start = (withCertificate: boolean) => {
    const { ca, client, server } = certificates;
    const tls = { ca: ca.certPath, ...(withCertificate && { cert: client.certPath, key: client.keyPath }) };
    const callers = { certFile: server.certPath, keyFile: server.keyPath };
    return startTraefik({
      verifierUrl: `https://127.0.0.1:${check.port}/check/all-proofs`,
      upstream,
      enabledMarks: ['#|', '#+'],
      edits: [
        { file: 'proofgate.yaml', path: [...forwardAuth, 'tls'], value: tls },
        { file: 'proofgate.yaml', path: ['tls', 'stores', 'default', 'defaultCertificate'], value: callers },
      ],
    });
  };

  beforeAll(async () => {
    certificates = await makeCertificates(AUTHORITY, 'spiffe://shop.example/gateway', ['127.0.0.1']);
    const { ca, server } = certificates;
    const client = { requestCert: true, rejectUnauthorized: true };
    check = await startRecordingCheck({ cert: server.cert, key: server.key, ca: ca.cert, ...client });
    upstream = await startUpstream();
    traefik = await start(true);
  });
  afterAll(async () => {
    await traefik.stop();
    await Promise.all([check.stop(), upstream.stop()]);
    await certificates.remove();
  });

  const address = ({ host, port }: RunningTraefik) => ({
    host,
    port,
    tls: { ca: certificates.ca.cert, servername: AUTHORITY },
  });

  it('serves HTTP/1.1 and HTTP/2 over TLS, and tells the verifier https', async () => {
    for (const client of [http1Client(address(traefik)), http2Client(address(traefik))]) {
      check.clear();
      upstream.clear();
      const { status } = await client.send({ ...REQUEST, scheme: 'https' });
      expect([status, upstream.requests.length]).toEqual([200, 1]);
      const told = check.checks.map(({ rawHeaders }) => headerValues(pairs(rawHeaders), 'x-forwarded-proto'));
      expect(told).toEqual([['https']]);
    }
  });

  it('denies every request when it cannot show the verifier a certificate', async () => {
    const stranger = await start(false);
    upstream.clear();
    const response: WireResponse = await http1Client(address(stranger)).send(REQUEST);
    await stranger.stop();
    expect([response.status, upstream.requests]).toEqual([500, []]);
  });
});
