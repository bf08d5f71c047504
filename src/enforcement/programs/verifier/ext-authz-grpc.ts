/** Plans the verifier's gRPC server from its settings: address and TLS certificate. */

import { followTlsFiles, planListenerTls } from '../../../process/connections/listener-tls.ts';
import { openExtAuthzServer } from '../../ext-authz-grpc/ext-authz-server.ts';
import type { PlannedServer } from '../enforcement-process.ts';
import type { VerifierSettings } from './verifier-settings.ts';

/** @throws CliError with exit code 2 */
export async function planExtAuthzGrpc(settings: VerifierSettings): Promise<PlannedServer> {
  const { listen } = settings;
  const tlsPlan = await planListenerTls(
    { check: 'tls', port: 'gRPC port', flagPrefix: 'tls' },
    {
      certFile: settings.tlsCertFile,
      keyFile: settings.tlsKeyFile,
      clientCaFile: settings.tlsClientCaFile,
      clientSans: settings.tlsClientSans,
    },
  );
  return {
    name: 'listen',
    listen,
    async open({ logger, ...inputs }) {
      const server = await openExtAuthzServer({
        ...inputs,
        listen,
        tls: tlsPlan,
        bodyMode: settings.envoyBody,
        maxMessageBytes: settings.maxMessageBytes,
        maxConnections: settings.maxConnections,
        reflection: settings.grpcReflection,
      });
      const tls =
        tlsPlan &&
        followTlsFiles({
          plan: tlsPlan,
          take: (material) => server.setTlsMaterial(material),
          metrics: inputs.metrics.extAuthz,
          logger,
        });
      return {
        ...server,
        checks: () => (tls === undefined ? [] : [tls.check()]),
        drain: async (timeoutMs) => {
          tls?.close();
          await server.drain(timeoutMs);
        },
      };
    },
  };
}
