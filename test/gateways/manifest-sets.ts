/** The manifests below envoy/ as they belong together: one set for each gateway, and each way to the verifier. */
import { readText } from '../docs/markdown.ts';

export interface ManifestSet {
  readonly name: string;
  /** Below envoy/. */
  readonly files: readonly string[];
}

export const MANIFEST_SETS: readonly ManifestSet[] = [
  {
    name: 'envoy-gateway-socket',
    files: ['envoy-gateway/gateway.yaml', 'envoy-gateway/verifier-socket.yaml', 'envoy-gateway/route.yaml'],
  },
  {
    name: 'envoy-gateway-mtls',
    files: ['envoy-gateway/gateway.yaml', 'envoy-gateway/verifier-mtls.yaml', 'envoy-gateway/route.yaml'],
  },
  {
    name: 'istio-gateway-socket',
    files: [
      ...['istio/mesh-config.yaml', 'istio/gateway.yaml', 'istio/route.yaml'],
      'istio/verifier-socket.yaml',
    ],
  },
  {
    name: 'istio-gateway-mtls',
    files: ['istio/mesh-config.yaml', 'istio/gateway.yaml', 'istio/route.yaml', 'istio/verifier-mtls.yaml'],
  },
  {
    name: 'istio-sidecar-loopback',
    files: ['istio/mesh-config.yaml', 'istio/sidecar.yaml', 'istio/verifier-loopback.yaml'],
  },
  { name: 'gateway-api', files: ['gateway-api/external-auth.yaml'] },
];

/** Of these sets' dumps (test/gateways/dumps) the clusters that lead to a verifier behind a Service. */
export const VERIFIER_SERVICES = [
  { dump: 'envoy-gateway-mtls', cluster: 'securitypolicy/gateway/proofgate/extauth/0' },
  { dump: 'istio-gateway-mtls', cluster: 'outbound|9191||verifier.proofgate.internal' },
] as const;

export function textOf({ files }: ManifestSet): string {
  return files.map((file) => readText(`envoy/${file}`).trimEnd()).join('\n');
}
