/**
 * Tests Envoy's configuration as the chart renders it and as the documents ship it, in real Envoys: with the verifier on TCP,
 * on TCP with mTLS, and on a socket.
 */
import { afterAll, beforeAll, it } from '@jest/globals';
import { parseDocument } from 'yaml';
import { describeChart, objectsIn, renderText } from '../../support/chart/chart.ts';
import { makeCertificates, type TestCertificates } from '../../support/harness/certificates.ts';
import { envoyVersions } from '../../support/harness/envoy.ts';
import { shipped, shippedText } from '../../support/harness/envoy-config.ts';
import { expectFailedCheck } from '../../support/harness/failed-check.ts';
import { useSite } from '../../support/site/site-fixture.ts';
import type { VerifierOptions } from '../../support/site/verifier.ts';
import { expectChecked, expectClosedWithout, expectStrict, type Scheme } from './checked-requests.ts';
import { type Parties, startConfigured } from './generated-gateway.ts';

const SERVICE = 'rel-proofgate-verifier.gateway.svc';
const SHIPPED_NAME = 'verifier.shop.example';
const GATEWAY_URI = 'spiffe://shop.example/gateway';

const fixture = useSite();
let certificates: TestCertificates;
beforeAll(async () => {
  certificates = await makeCertificates(SERVICE, GATEWAY_URI, [], [SHIPPED_NAME]);
});
afterAll(async () => {
  await certificates?.remove();
});

/** Of test/helm/values. */
function rendered(file: string): string {
  const map = objectsIn(renderText({ file })).find(({ metadata }) => metadata.name.endsWith('-envoy'));
  const text = map?.data?.['envoy.yaml'];
  if (text === undefined) throw new Error(`${file} renders no configuration of Envoy`);
  return text;
}

/** Replaces what differs on this machine: addresses, and files of certificates. */
function here(text: string, { upstream, verifier }: Parties): string {
  const config = parseDocument(text);
  const endpoint = ['load_assignment', 'endpoints', 0, 'lb_endpoints', 0, 'endpoint', 'address'];
  const free = { socket_address: { address: '127.0.0.1', port_value: 0 } };
  config.setIn(['admin', 'address'], free);
  config.setIn(['static_resources', 'listeners', 0, 'address'], free);
  const at = (host: string, port: number) => ({ socket_address: { address: host, port_value: port } });
  config.setIn([...shipped.upstreamCluster, ...endpoint], at(upstream.host, upstream.port));
  const address =
    verifier.kind === 'unix' ? { pipe: { path: verifier.path } } : at(verifier.host, verifier.port);
  config.setIn([...shipped.verifierCluster, ...endpoint], address);
  config.setIn([...shipped.extAuthz, 'grpc_service', 'timeout'], '8s');
  const common = [...shipped.verifierCluster, 'transport_socket', 'typed_config', 'common_tls_context'];
  if (config.hasIn(common)) {
    const certificate = [...common, 'tls_certificates', 0];
    const { ca, client } = certificates;
    for (const [path, file] of [
      [[...certificate, 'certificate_chain', 'filename'], client.certPath],
      [[...certificate, 'private_key', 'filename'], client.keyPath],
      [[...common, 'validation_context', 'trusted_ca', 'filename'], ca.certPath],
    ] as const) {
      if (!config.hasIn(path)) throw new Error(`nothing names a file at ${path.join('.')}`);
      config.setIn(path, file);
    }
  }
  return config.toString();
}

interface Case {
  readonly name: string;
  readonly text: () => string;
  readonly scheme: Scheme;
  readonly listen: NonNullable<VerifierOptions['listen']>;
  readonly isMutual?: boolean;
}

const CASES: readonly Case[] = [
  { name: 'the chart, TCP', text: () => rendered('envoy-plain'), scheme: 'https', listen: 'tcp' },
  {
    name: 'the chart, TCP with mTLS',
    text: () => rendered('envoy-mtls'),
    scheme: 'http',
    listen: 'tcp',
    isMutual: true,
  },
  { name: 'the chart, loopback', text: () => rendered('sidecar-loopback'), scheme: 'http', listen: 'tcp' },
  { name: 'the chart, a socket', text: () => rendered('envoy-socket'), scheme: 'http', listen: 'unix' },
  { name: 'the documents, TCP', text: () => shippedText(), scheme: 'http', listen: 'tcp' },
  {
    name: 'the documents, TCP with mTLS',
    text: () => shippedText(false, true),
    scheme: 'http',
    listen: 'tcp',
    isMutual: true,
  },
  { name: 'the documents, a socket', text: () => shippedText(), scheme: 'http', listen: 'unix' },
];

function mutualTls(): readonly string[] {
  const { ca, server } = certificates;
  return [
    ...['--tls-cert-file', server.certPath, '--tls-key-file', server.keyPath],
    ...['--tls-client-ca-file', ca.certPath, '--tls-client-san', GATEWAY_URI],
  ];
}

describeChart('Envoy, configured by', () => {
  const all = envoyVersions.flatMap((version) => CASES.map((one) => ({ ...one, version })));

  it.each(all)(
    '$name, $version: asks about every request, and allows none without an answer',
    async (one) => {
      const { isMutual = false, listen, scheme, text, version } = one;
      const verifier = await fixture.verifier({ listen, flags: isMutual ? mutualTls() : [] });
      const bootstrap = (parties: Parties) => here(text(), parties);
      const gateway = await startConfigured(version, verifier, { bootstrap, listener: 'ingress' });
      fixture.stops.push(gateway.stop);
      const asked = { gateway, site: fixture.site, scheme };
      await expectChecked(asked);
      await expectStrict(asked);
      expectFailedCheck(await expectClosedWithout(asked), 'no_answer');
    },
  );
});
