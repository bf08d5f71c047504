/** Envoy with ext_authz over gRPC, from the shipped configuration. */

import { startPointVerifier } from '../../conformance/point-verifier.ts';
import { envoyVersions } from '../harness/envoy.ts';
import type { UpstreamOptions } from '../harness/upstream.ts';
import { startGateway } from '../site/gateway.ts';
import type { EnforcementPointDriver } from './enforcement-point.ts';

/** @param upstream how Envoy speaks to the API */
export const envoyGrpc = (
  version: string,
  upstream: Pick<UpstreamOptions, 'protocol'> = {},
): EnforcementPointDriver => ({
  name: `envoy-grpc-${version}`,
  protocols: ['HTTP/1.1', 'HTTP/2'],
  start: async (options) => {
    const verifier = await startPointVerifier(options);
    const { openUpstream } = options;
    const gateway = await startGateway(version, verifier, {
      upstream,
      ...(openUpstream && { openUpstream }),
    }).catch(async (error: unknown) => {
      await verifier.stop();
      throw error;
    });
    return {
      address: gateway.envoy,
      upstream: gateway.upstream,
      pid: verifier.pid,
      decisions: () => verifier.auditEvents(),
      stop: async () => {
        await gateway.stop();
        await verifier.stop();
      },
    };
  },
});

export const ENVOY_GRPC: readonly EnforcementPointDriver[] = envoyVersions.map((version) =>
  envoyGrpc(version),
);
