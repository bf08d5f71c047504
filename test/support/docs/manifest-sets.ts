/** Sets of manifests below envoy/ that belong together: one for each gateway and each connection to the verifier. */
import { readText } from './markdown.ts';

export interface ManifestSet {
  readonly name: string;
  /** Paths below envoy/. */
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

/** For requests that leave, signed. */
export const EGRESS_SET: ManifestSet = {
  name: 'egress-istio',
  files: ['istio/mesh-config.yaml', 'istio/egress.yaml'],
};

/** Clusters of a verifier behind a Service, in the dumps of these sets (test/gateways/dumps). */
export const VERIFIER_SERVICES = [
  { dump: 'envoy-gateway-mtls', cluster: 'securitypolicy/gateway/proofgate/extauth/0' },
  { dump: 'istio-gateway-mtls', cluster: 'outbound|9191||verifier.proofgate.internal' },
] as const;

export function textOf({ files }: ManifestSet): string {
  return files.map((file) => readText(`envoy/${file}`).trimEnd()).join('\n');
}
