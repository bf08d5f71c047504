/** SPIRE's OIDC discovery provider: discovery document and keys of a server's JWT-SVIDs, over HTTPS. */

import { writeFile } from 'node:fs/promises';
import { get } from 'node:https';
import { join } from 'node:path';
import type { CertificateFiles } from '../../support/harness/certificates.ts';
import { describeExit, startChild } from '../../support/harness/child.ts';
import { freePort } from '../../support/harness/free-port.ts';
import { waitFor } from '../../support/wait.ts';
import { spireProgram } from './spire-programs.ts';

export interface OidcProviderOptions {
  /** Socket of the SPIRE server's API. */
  readonly serverSocketPath: string;
  /** `https://127.0.0.1:<port>`; `jwt_issuer` of the server too. */
  readonly issuer: string;
  readonly certificate: CertificateFiles;
  /** For its configuration. */
  readonly folder: string;
}

export interface OidcProvider {
  readonly jwksUri: string;
  /** Waits until the key set contains the key. */
  publishes(keyId: string): Promise<true>;
  stop(): Promise<void>;
}

/** The issuer has to be known before the server starts, which writes it into its tokens. */
export async function newOidcIssuer(): Promise<string> {
  return `https://127.0.0.1:${await freePort()}`;
}

export async function startOidcProvider(options: OidcProviderOptions): Promise<OidcProvider> {
  const { certificate, folder, issuer, serverSocketPath } = options;
  const { host, hostname } = new URL(issuer);
  const configFile = join(folder, 'oidc.json');
  const configuration = {
    ...{ domains: [hostname], jwt_issuer: issuer, log_level: 'INFO' },
    serving_cert_file: [
      { addr: host, cert_file_path: certificate.certPath, key_file_path: certificate.keyPath },
    ],
    server_api: [{ address: `unix://${serverSocketPath}`, poll_interval: '1s' }],
  };
  await writeFile(configFile, JSON.stringify(configuration));
  const child = startChild({
    command: spireProgram('oidc-discovery-provider'),
    args: ['-config', configFile],
  });
  const keySet = () => textOf(`${issuer}/keys`);
  await waitFor('the OIDC discovery provider to have keys', async () => {
    return child.exitStatus() !== undefined || (await keySet()).includes('"kid"') || undefined;
  });
  const ended = child.exitStatus();
  if (ended !== undefined) throw new Error(`it ended at start: ${describeExit(ended, child.stdoutLines)}`);
  return {
    jwksUri: `${issuer}/keys`,
    publishes: (keyId) =>
      waitFor(`the provider to publish ${keyId}`, async () =>
        (await keySet()).includes(`"${keyId}"`) ? true : undefined,
      ),
    stop: async () => void (await child.stop()),
  };
}

/** Trusts any certificate: the test looks at what is published, and Control checks who publishes it. */
function textOf(url: string): Promise<string> {
  return new Promise((resolve, reject) => {
    get(url, { rejectUnauthorized: false, agent: false, timeout: 2_000 }, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('end', () => resolve(Buffer.concat(chunks).toString('utf8')));
    }).on('error', reject);
  });
}
