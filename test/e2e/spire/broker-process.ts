/** `proofgate broker` as a process of its own. */

import type { CertificateFiles } from '../../support/harness/certificates.ts';
import { freePort } from '../../support/harness/free-port.ts';
import { type Service, startProofgate } from '../../support/harness/sidecar.ts';
import { httpGet } from '../../support/wait.ts';
import { BROKER_ISSUER, type BrokerSite } from './broker-site.ts';

export interface BrokerOptions {
  readonly site: BrokerSite;
  /** Of the listener; good for 127.0.0.1, or an X.509-SVID. */
  readonly certificate: Pick<CertificateFiles, 'certPath' | 'keyPath'>;
  readonly flags: readonly string[];
  /** Default: a free one. */
  readonly port?: number;
}

export interface BrokerProcess {
  /** `--public-url`. */
  readonly url: string;
  readonly port: number;
  readonly service: Service;
  metrics(): Promise<string>;
  stop(): Promise<void>;
}

export async function startBroker(options: BrokerOptions): Promise<BrokerProcess> {
  const { certificate, flags, site } = options;
  const port = options.port ?? (await freePort());
  const url = `https://127.0.0.1:${port}`;
  const service = await startProofgate(
    [
      ...['broker', '--public-url', url, '--issuer', BROKER_ISSUER, '--listen', `127.0.0.1:${port}`],
      ...['--tls-cert-file', certificate.certPath, '--tls-key-file', certificate.keyPath],
      ...['--key-dir', site.keyDirectory, '--software-keys', site.softwareKeysFile],
      ...['--profiles', site.profilesDirectory, '--admin-listen', '127.0.0.1:0', ...flags],
    ],
    { readyUrl: (lines) => adminUrl(lines, '/readyz') },
  );
  return {
    ...{ url, port, service },
    metrics: async () => {
      const address = adminUrl(service.stderrLines, '/metrics');
      if (address === undefined) throw new Error('the broker does not listen');
      return (await httpGet(address)).text;
    },
    stop: () => service.stop(),
  };
}

/** Undefined until the log says where it listens. */
function adminUrl(lines: readonly string[], path: string): string | undefined {
  const line = lines.find((candidate) => candidate.includes('"msg":"listening"'));
  if (line === undefined) return undefined;
  const { admin_listen }: { readonly admin_listen: string } = JSON.parse(line);
  return `http://${admin_listen}${path}`;
}
