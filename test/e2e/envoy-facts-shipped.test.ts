/** Tests the shipped envoy/envoy.yaml: every Envoy version accepts it, its alternatives work, and its comments are true. */
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { CONTEXT_HEADERS } from '../../src/protocol/wire-names.ts';
import { headerValues, type WireAddress } from '../../src/tools/conformance/wire/exchange.ts';
import { http1Client } from '../../src/tools/conformance/wire/http1.ts';
import { http2Client } from '../../src/tools/conformance/wire/http2.ts';
import { makeCertificates, type TestCertificates } from '../support/harness/certificates.ts';
import { validateConfig } from '../support/harness/envoy.ts';
import { shippedText } from '../support/harness/envoy-config.ts';
import {
  checkedHttp,
  checkOf,
  forwardedRequest,
  type RecordedEnvoy,
  startRecordedEnvoy,
} from '../support/harness/fixture.ts';
import { tlsEdits } from '../support/harness/tls-edits.ts';
import { LANE_ENVOYS } from './lane-envoys.ts';

const spiffeId = 'spiffe://example.test/billing';
const authority = 'api.example';

describe.each(LANE_ENVOYS)('Envoy %s', (version) => {
  it('accepts the shipped configuration as it is', async () => {
    expect(await validateConfig(version, shippedText())).toBeUndefined();
  });

  it('accepts it with health checks of several verifiers', async () => {
    expect(shippedText(false, false, true)).not.toBe(shippedText());
    expect(await validateConfig(version, shippedText(false, false, true))).toBeUndefined();
  });
});

describe.each(LANE_ENVOYS)('Envoy %s with the optional blocks', (version) => {
  let certificates: TestCertificates;
  let recorded: RecordedEnvoy;
  let tls: NonNullable<WireAddress['tls']>;
  beforeAll(async () => {
    certificates = await makeCertificates(authority, spiffeId);
    recorded = await startRecordedEnvoy(version, { optionalBlocks: true, edits: tlsEdits(certificates) });
    tls = { ca: certificates.ca.cert, servername: authority };
  });
  afterAll(async () => {
    // The certificates go first: they are there even when no Envoy came up.
    await certificates.remove();
    await recorded.stop();
  });

  const clients = () => [http1Client({ ...recorded.envoy, tls }), http2Client({ ...recorded.envoy, tls })];

  it('speaks HTTP/1.1 and HTTP/2 over TLS on one port, scheme https', async () => {
    for (const client of clients()) {
      const measured = await recorded.measure(client, { method: 'GET', target: '/', authority });
      expect(checkedHttp(measured)).toMatchObject({ scheme: 'https', protocol: client.protocol });
    }
  });

  it('tells the verifier who the caller is by certificate', async () => {
    const { cert, key } = certificates.client;
    const client = http1Client({ ...recorded.envoy, tls: { ...tls, cert, key } });
    const { source } = checkOf(
      await recorded.measure(client, { method: 'GET', target: '/', authority }),
    ).attributes;
    expect(source.principal).toBe(spiffeId);
    expect(decodeURIComponent(source.certificate)).toBe(cert);
  });

  it('opens a path without a check, and even there no request counts as verified', async () => {
    const names = Object.values(CONTEXT_HEADERS);
    const headers = names.map((name) => [name, 'mine'] as const);
    for (const client of clients()) {
      const measured = await recorded.measure(client, {
        method: 'GET',
        target: '/healthz',
        authority,
        headers,
      });
      expect(measured.checks).toEqual([]);
      const arrived = forwardedRequest(measured).headers;
      expect(names.flatMap((name) => headerValues(arrived, name))).toEqual([]);
    }
  });

  it('streams an unbound body through, larger than any that it would hold', async () => {
    const body = Buffer.alloc(3_000_000, 9);
    for (const client of clients()) {
      const measured = await recorded.measure(client, {
        method: 'PUT',
        target: '/v1/uploads',
        authority,
        body,
      });
      expect(checkedHttp(measured).raw_body.length).toBe(0);
      expect(forwardedRequest(measured).body.equals(body)).toBe(true);
    }
  });
});
