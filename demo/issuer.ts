/**
 * A token issuer like a cluster's, for trying things out, together with what its kubelets do. `node .build/demo/issuer.js
 * DIRECTORY AUDIENCE [ACCOUNT…]` serves discovery and a key set on loopback, and keeps a fresh token of each service account in
 * DIRECTORY until it is stopped. DIRECTORY also gets `url`, the issuer's URL, and `ca.pem`, its CA certificate.
 */
import { mkdir, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import {
  type ServiceAccountIssuer,
  startServiceAccountIssuer,
} from '../test/support/fakes/service-account-issuer.ts';
import { makeCertificates } from '../test/support/harness/certificates.ts';
import { messageOf } from './parts.ts';

const loopback = '127.0.0.1';
const usualAccounts = ['billing', 'reporting'];
/** Token lifetime is an hour; this is well before its end. */
const renewalMs = 10 * 60_000;

async function main([directory, audience, ...accounts]: readonly string[]): Promise<number> {
  if (directory === undefined || audience === undefined) {
    console.error('error: usage: issuer.js DIRECTORY AUDIENCE [ACCOUNT…]');
    return 2;
  }
  try {
    await serve(directory, audience, accounts.length > 0 ? accounts : usualAccounts);
    return 0;
  } catch (error) {
    report(error);
    return 1;
  }
}

function report(error: unknown): void {
  console.error(`error: ${messageOf(error)}`);
}

async function serve(directory: string, audience: string, serviceAccounts: readonly string[]): Promise<void> {
  const stopped = new Promise((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, resolve);
  });
  const certificates = await makeCertificates('localhost', 'spiffe://demo.example/unused', [loopback]);
  await certificates.remove();
  const issuer = await startServiceAccountIssuer({ certificate: certificates.server, hostname: loopback });
  await mkdir(directory, { recursive: true });
  await writeFile(join(directory, 'ca.pem'), certificates.ca.cert);
  const projectTokens = () => project(issuer, directory, audience, serviceAccounts);
  await projectTokens();
  // Last, because a script that waits for this file then finds all others.
  await writeFile(join(directory, 'url'), `${issuer.issuer}\n`);
  console.log(
    `${issuer.issuer} signs tokens for ${audience}: ${directory}/{${serviceAccounts.join(',')}}.token`,
  );
  const renew = () => projectTokens().catch(report);
  const renewal = setInterval(renew, renewalMs);
  await stopped;
  clearInterval(renewal);
  await issuer.close();
}

/** Each token file is replaced atomically, so that a reader never sees half a token. */
async function project(
  issuer: ServiceAccountIssuer,
  directory: string,
  audience: string,
  serviceAccounts: readonly string[],
): Promise<void> {
  for (const serviceAccount of serviceAccounts) {
    const path = join(directory, `${serviceAccount}.token`);
    await writeFile(`${path}.new`, issuer.token({ serviceAccount, audience }), { mode: 0o600 });
    await rename(`${path}.new`, path);
  }
}

process.exitCode = await main(process.argv.slice(2));
