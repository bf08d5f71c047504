/** Throw-away certificates for TLS tests, made by the openssl program; they are not kept. */
import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { remainingMs } from '../wait.ts';

export interface CertificateFiles {
  readonly certPath: string;
  readonly keyPath: string;
  /** PEM. */
  readonly cert: string;
  readonly key: string;
}

export interface TestCertificates {
  readonly ca: CertificateFiles;
  readonly server: CertificateFiles;
  readonly client: CertificateFiles;
  remove(): Promise<void>;
}

const run = promisify(execFile);
const newKey = '-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -sha256 -days 2'.split(' ');

/**
 * A CA, a server certificate for `serverName` and a client certificate.
 *
 * @param clientUri the client's URI subject alternative name, such as a SPIFFE ID
 * @param serverAddresses IP addresses that the server's certificate is good for as well
 * @param otherNames further names of it
 */
export async function makeCertificates(
  serverName: string,
  clientUri: string,
  serverAddresses: readonly string[] = [],
  otherNames: readonly string[] = [],
): Promise<TestCertificates> {
  const names = [serverName, ...otherNames].map((name) => `DNS:${name}`);
  const serverNames = [...names, ...serverAddresses.map((address) => `IP:${address}`)].join(',');
  const folder = await mkdtemp(join(tmpdir(), 'pg-certs-'));
  const remove = () => rm(folder, { recursive: true, force: true });
  try {
    const ca = await issue(folder, 'ca', 'basicConstraints=critical,CA:TRUE', undefined);
    const leaf = (name: string, alternativeName: string) =>
      issue(folder, name, `basicConstraints=critical,CA:FALSE\nsubjectAltName=${alternativeName}`, ca);
    const server = await leaf('server', serverNames);
    return { ca, server, client: await leaf('client', `URI:${clientUri}`), remove };
  } catch (error) {
    await remove();
    throw error;
  }
}

async function issue(
  folder: string,
  name: string,
  extensions: string,
  issuer: CertificateFiles | undefined,
): Promise<CertificateFiles> {
  const configPath = join(folder, `${name}.cnf`);
  const certPath = join(folder, `${name}.crt`);
  const keyPath = join(folder, `${name}.key`);
  await writeFile(
    configPath,
    `[req]\ndistinguished_name=dn\nx509_extensions=ext\n[dn]\n[ext]\n${extensions}\n`,
  );
  const files = ['-config', configPath, '-keyout', keyPath, '-out', certPath];
  const signer = issuer === undefined ? [] : ['-CA', issuer.certPath, '-CAkey', issuer.keyPath];
  await run('openssl', ['req', '-x509', ...newKey, '-subj', `/CN=${name}`, ...files, ...signer], {
    timeout: remainingMs(20_000),
  });
  return { certPath, keyPath, cert: await readFile(certPath, 'utf8'), key: await readFile(keyPath, 'utf8') };
}
