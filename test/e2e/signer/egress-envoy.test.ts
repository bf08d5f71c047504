/** envoy/egress.yaml with the signer in front of the shipped gateway: what was signed is what arrives, once, or nothing does. */
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Registry } from 'prom-client';
import { parseDocument } from 'yaml';
import { type HeaderLine, headerValues, type WireRequest } from '../../../src/conformance/wire/exchange.ts';
import { http1Client } from '../../../src/conformance/wire/http1.ts';
import { http2Client } from '../../../src/conformance/wire/http2.ts';
import type { CheckServer } from '../../../src/enforcement/ext-authz-grpc/check-server.ts';
import { openExtAuthzSigner } from '../../../src/signer/ext-authz/ext-authz-signer.ts';
import {
  createExtAuthzServerMetrics,
  createRpcMetrics,
} from '../../../src/telemetry/ext-authz-server-metrics.ts';
import { billingSigner } from '../../signer/egress/egress-fixture.ts';
import { useEnvironment } from '../environment/environment.ts';
import type { Gateway } from '../environment/gateway.ts';
import { AUTHORITY } from '../environment/routes.ts';
import { makeCertificates, type TestCertificates } from '../harness/certificates.ts';
import { checkoutPath } from '../harness/checkout.ts';
import { type RunningEnvoy, startEnvoyWith } from '../harness/envoy.ts';
import { tlsEdits } from '../harness/tls-edits.ts';
import { LANE_ENVOYS } from '../lane-envoys.ts';

const environment = useEnvironment(['redis']);
let certificates: TestCertificates;
let folder: string;
beforeAll(async () => {
  certificates = await makeCertificates(AUTHORITY, 'spiffe://shop.example/ns/prod/sa/checkout');
  folder = await mkdtemp(join(tmpdir(), 'pg-egress-'));
});
afterAll(async () => {
  await certificates.remove();
  await rm(folder, { recursive: true });
});

const FIXED = 'static_resources listeners 0 filter_chains 0 filters 0 typed_config';
const AUTHZ = `${FIXED} http_filters 0 typed_config`;
const API = 'static_resources clusters 1';
const ENDPOINT = 'load_assignment endpoints 0 lb_endpoints 0 endpoint address';

/** The shipped file with a test's addresses, certificates and patience. */
async function egressConfig(socketPath: string, gateway: Gateway): Promise<string> {
  const config = parseDocument(await readFile(checkoutPath('envoy', 'egress.yaml'), 'utf8'));
  const { host, port } = gateway.envoy;
  const edits: readonly (readonly [path: string, value: unknown])[] = [
    ['admin address socket_address port_value', 0],
    ['static_resources listeners 0 address socket_address port_value', 0],
    [`${FIXED} route_config virtual_hosts 0 domains`, [AUTHORITY]],
    [`${AUTHZ} grpc_service timeout`, '8s'],
    [`static_resources clusters 0 ${ENDPOINT} pipe path`, socketPath],
    ['static_resources clusters 0 connect_timeout', '8s'],
    [`${API} ${ENDPOINT} socket_address`, { address: host, port_value: port }],
    [
      `${API} transport_socket typed_config common_tls_context validation_context trusted_ca filename`,
      certificates.ca.certPath,
    ],
  ];
  for (const [path, value] of edits) {
    const steps = path.split(' ').map((step) => (/^\d+$/.test(step) ? Number(step) : step));
    if (!config.hasIn(steps)) throw new Error(`egress.yaml has no ${path}`);
    config.setIn(steps, config.createNode(value));
  }
  return config.toString();
}

describe.each(LANE_ENVOYS)('Envoy %s', (version) => {
  let gateway: Gateway;
  let signer: CheckServer;
  let egress: RunningEnvoy;
  let signed: string[];
  let internalErrors: unknown[];
  beforeAll(async () => {
    const tls = { ca: certificates.ca.cert, servername: AUTHORITY };
    gateway = await environment.gateway(version, 'redis', {
      name: 'tls',
      tls,
      edits: tlsEdits(certificates),
    });
    const socketPath = join(folder, `signer-${version}.sock`);
    signed = [];
    internalErrors = [];
    const registry = new Registry();
    signer = await openExtAuthzSigner({
      listen: `unix:${socketPath}`,
      maxMessageBytes: 4_194_304,
      metrics: { extAuthz: createExtAuthzServerMetrics(registry), rpc: createRpcMetrics(registry) },
      signer: billingSigner(environment.site),
      unsigned: 'deny',
      onPassed: () => undefined,
      onSigned: ({ url }) => void signed.push(`${url.origin}${url.target}`),
      onRefused: () => undefined,
      onInternalError: (error) => void internalErrors.push(error),
    });
    signer.setServing(true);
    egress = await startEnvoyWith(version, await egressConfig(socketPath, gateway), { listener: 'egress' });
  });
  afterAll(async () => {
    await egress.stop();
    await signer.drain(1_000);
    expect(internalErrors).toEqual([]);
  });

  async function send(protocol: 'HTTP/1.1' | 'HTTP/2', request: Partial<WireRequest>) {
    gateway.upstream.clear();
    signed.splice(0);
    const client = protocol === 'HTTP/1.1' ? http1Client(egress) : http2Client(egress);
    const whole = { method: 'GET', target: '/v1/orders/7', authority: AUTHORITY, headers: [], ...request };
    const { status } = await client.send(whole);
    return { status, signed: [...signed], arrived: [...gateway.upstream.requests] };
  }

  describe.each(['HTTP/1.1', 'HTTP/2'] as const)('%s', (protocol) => {
    it.each([
      ['/v1/orders/7'],
      ['/v1/orders/7?full=1&a=%20&a=..%2F'],
      ['/v1/orders/a%20b'],
      ['/v1/orders/%E2%82%AC'],
      ['/v1/orders/~-._!$&()*+,=:@'],
      ['/v1/orders/%61', '/v1/orders/a'],
      ['/v1/x/../orders/7', '/v1/orders/7'],
    ])('what is signed for %s arrives', async (target, sent = target) => {
      const outcome = await send(protocol, { target });
      expect(outcome).toMatchObject({
        status: 200,
        signed: [`https://${AUTHORITY}${sent}`],
        arrived: [{ method: 'GET', url: sent }],
      });
    });

    it.each([0, 1, 1_024, 1_000_000])('a body of %d bytes arrives', async (bytes) => {
      const body = Buffer.alloc(bytes, 0xfe);
      const { arrived, status } = await send(protocol, { method: 'POST', target: '/v1/orders', body });
      expect([status, arrived.length, arrived[0]?.body.equals(body)]).toEqual([200, 1, true]);
    });

    it("removes the application's own credentials, and keeps its other headers", async () => {
      const headers: readonly HeaderLine[] = [
        ['x-proofgate-subject', 'client:admin'],
        ['x-proofgate-signature', 'mine'],
        ['authorization', 'Passport mine'],
        ['x-tenant', 'one'],
        ['x-tenant', 'two'],
      ];
      const { arrived, status } = await send(protocol, { headers });
      const values = (name: string) => headerValues(arrived[0]?.headers ?? [], name);
      expect([status, arrived.length]).toEqual([200, 1]);
      expect(values('x-proofgate-subject')).toEqual(['client:billing']);
      expect(values('x-tenant').join(',').replaceAll(' ', '')).toBe('one,two');
      expect(values('x-proofgate-signature')).toEqual([]);
    });

    it.each<[string, Partial<WireRequest>, number]>([
      ['a request without a profile', { target: '/v1/other' }, 502],
      ['an encoded slash', { target: '/v1/orders/a%2Fb' }, 400],
      ['two slashes', { target: '//v1/orders/7' }, 400],
      ['a path parameter', { target: '/v1/orders/7;a=1' }, 400],
      ['another host', { authority: 'evil.example' }, 404],
      ['a request of a web page', { headers: [['origin', 'https://evil.example']] }, 403],
      [
        'a body that is too long',
        { method: 'POST', target: '/v1/orders', body: Buffer.alloc(1_200_000) },
        413,
      ],
    ])('%s does not leave', async (_name, request, expected) => {
      expect(await send(protocol, request)).toEqual({ status: expected, signed: [], arrived: [] });
    });

    it('no header of the application makes Envoy send twice', async () => {
      const headers: readonly HeaderLine[] = [
        ['x-envoy-retry-on', '4xx,5xx,retriable-4xx'],
        ['x-envoy-max-retries', '3'],
        ['x-envoy-retriable-status-codes', '200,403'],
      ];
      const { arrived, signed: proofs, status } = await send(protocol, { headers });
      expect([status, proofs.length, arrived.length]).toEqual([200, 1, 1]);
    });
  });

  it('sends nothing while no signer answers', async () => {
    await signer.drain(1_000);
    expect(await send('HTTP/1.1', {})).toEqual({ status: 502, signed: [], arrived: [] });
  });
});
