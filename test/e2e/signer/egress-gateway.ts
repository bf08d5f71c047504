/** An egress Envoy, or Istio's sidecar, with the signer's own process, in front of the shipped gateway with the verifier. */
import { readFileSync } from 'node:fs';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseDocument } from 'yaml';
import { writeBillingKey } from '../../support/caller/egress-fixture.ts';
import { staticBootstrap } from '../../support/docs/static-bootstrap.ts';
import type { TestCertificates } from '../../support/harness/certificates.ts';
import { checkoutPath } from '../../support/harness/checkout.ts';
import { type RunningEnvoy, startEnvoyWith } from '../../support/harness/envoy.ts';
import { startProofgate } from '../../support/harness/sidecar.ts';
import { tlsEdits } from '../../support/harness/tls-edits.ts';
import type { Environment } from '../../support/site/environment.ts';
import type { Gateway, GatewayOptions } from '../../support/site/gateway.ts';
import { AUTHORITY } from '../../support/site/routes.ts';
import type { Site } from '../../support/site/site.ts';
import { httpGet } from '../../support/wait.ts';

export interface SignerProcess {
  readonly socketPath: string;
  /** Requests that it signed. */
  signed(): Promise<number>;
  stop(): Promise<void>;
}

/** `proofgate signer` with the usual caller's key and an ext_authz listener. */
async function startSignerProcess(site: Site): Promise<SignerProcess> {
  const folder = await mkdtemp(join(tmpdir(), 'pg-signer-'));
  const keyFile = join(folder, 'key.pem');
  await writeBillingKey(site, keyFile);
  const socketPath = join(folder, 'signer.sock');
  const adminOf = (lines: readonly string[]): string | undefined => {
    const line = lines.find((one) => one.includes('"msg":"listening"'));
    return line === undefined ? undefined : `http://${JSON.parse(line).admin_listen}`;
  };
  const service = await startProofgate(
    [
      ...['signer', '--key', keyFile, '--ext-authz-listen', `unix:${socketPath}`],
      ...['--admin-listen', '127.0.0.1:0', '--drain-timeout', '1s'],
    ],
    { readyUrl: (lines) => adminOf(lines) && `${adminOf(lines)}/readyz` },
  );
  const lines = () => [...service.stdoutLines, ...service.stderrLines];
  return {
    socketPath,
    signed: async () => {
      const { text } = await httpGet(`${adminOf(lines())}/metrics`);
      return Number(/^proofgate_signer_signed_total\{part="ext_authz"\} (\d+)/m.exec(text)?.[1] ?? 0);
    },
    stop: async () => {
      await service.stop();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

export interface EgressParties {
  readonly signer: Pick<SignerProcess, 'socketPath'>;
  readonly gateway: Pick<Gateway, 'envoy'>;
  readonly certificates: Pick<TestCertificates, 'ca'>;
}

/** @param certificates one set a suite: its gateways are kept */
export async function startEgressParties(
  environment: Environment,
  version: string,
  certificates: TestCertificates,
  upstream: Pick<GatewayOptions, 'openUpstream' | 'upstream'> = {},
): Promise<{ readonly gateway: Gateway; readonly signer: SignerProcess }> {
  const gateway = await environment.gateway(version, 'usual', {
    name: 'tls',
    ...upstream,
    tls: { ca: certificates.ca.cert, servername: AUTHORITY },
    edits: tlsEdits(certificates),
  });
  return { gateway, signer: await startSignerProcess(environment.site) };
}

/** What Istio's pilot made of envoy/istio/egress.yaml. */
export const ISTIO_DUMP = readFileSync(
  checkoutPath('test', 'gateways', 'dumps', 'egress-istio.json'),
  'utf8',
);

/** {@link ISTIO_DUMP} with a test's addresses, certificates and patience. @param elsewhere where requests for other hosts go */
export async function startIstioEgress(
  version: string,
  { certificates, gateway, signer }: EgressParties,
  elsewhere: { readonly host: string; readonly port: number },
  dump = ISTIO_DUMP,
): Promise<RunningEnvoy> {
  const listener = '0.0.0.0_80';
  const { host, port } = gateway.envoy;
  const bootstrap = staticBootstrap(JSON.parse(dump), {
    listener,
    clusters: {
      'proofgate-signer': { kind: 'unix', path: signer.socketPath },
      [`outbound|80||${AUTHORITY}`]: { kind: 'tcp', host, port },
      PassthroughCluster: { kind: 'tcp', host: elsewhere.host, port: elsewhere.port },
    },
    secrets: { 'file-root:system': { caPath: certificates.ca.certPath } },
  });
  return startEnvoyWith(version, bootstrap, { listener });
}

/** envoy/egress.yaml with a test's addresses, certificates and patience. */
export async function startEgressEnvoy(version: string, parties: EgressParties): Promise<RunningEnvoy> {
  return startEnvoyWith(version, await egressConfig(parties), { listener: 'egress' });
}

const FIXED = 'static_resources listeners 0 filter_chains 0 filters 0 typed_config';
const AUTHZ = `${FIXED} http_filters 0 typed_config`;
const API = 'static_resources clusters 1';
const ENDPOINT = 'load_assignment endpoints 0 lb_endpoints 0 endpoint address';

async function egressConfig({ certificates, gateway, signer }: EgressParties): Promise<string> {
  const config = parseDocument(await readFile(checkoutPath('envoy', 'egress.yaml'), 'utf8'));
  const { host, port } = gateway.envoy;
  const edits: readonly (readonly [path: string, value: unknown])[] = [
    ['admin address socket_address port_value', 0],
    ['static_resources listeners 0 address socket_address port_value', 0],
    [`${FIXED} route_config virtual_hosts 0 domains`, [AUTHORITY]],
    [`${AUTHZ} grpc_service timeout`, '8s'],
    [`static_resources clusters 0 ${ENDPOINT} pipe path`, signer.socketPath],
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
