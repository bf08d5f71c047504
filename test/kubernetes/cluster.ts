/**
 * A real kube-apiserver with a real etcd, on loopback, in its own folder, without controllers, scheduler and kubelet. It
 * serves the issuer and key set of its tokens at its address.
 */
import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from '@jest/globals';
import { type ApiAnswer, type ApiCall, callApi } from '../support/control/control-program.ts';
import { makeCertificates, type TestCertificates } from '../support/harness/certificates.ts';
import { checkoutPath } from '../support/harness/checkout.ts';
import { type Child, describeExit, startChild } from '../support/harness/child.ts';
import { freePort } from '../support/harness/free-port.ts';
import { httpGet, waitFor } from '../support/wait.ts';

export const KUBERNETES_CACHE = checkoutPath('.cache', 'kubernetes');
const HELM_INSTALLED = checkoutPath('.cache', 'helm', 'installed');

/** A skipped test states the reason in its name; the scripts print more. */
export function describeCluster(name: string, tests: () => void): void {
  if (existsSync(`${KUBERNETES_CACHE}/installed`) && existsSync(HELM_INSTALLED)) describe(name, tests);
  // Does not run `tests`: they render with helm while they are defined.
  else it.skip(`${name} (kube-apiserver and helm are not there: both are built with Go)`, () => {});
}

interface ServerSettings {
  readonly folder: string;
  readonly port: number;
  readonly etcdUrl: string;
  readonly certificates: TestCertificates;
}

export class Cluster {
  readonly url: string;
  /** CA of the server's certificate as PEM, which a cluster publishes as ConfigMap kube-root-ca.crt. */
  readonly ca: string;
  /** For helm: server, CA and the administrator's token. */
  readonly kubeconfig: string;
  readonly folder: string;
  readonly #token: string;
  readonly #stop: () => Promise<void>;

  private constructor(
    { folder, port, certificates }: ServerSettings,
    token: string,
    stop: () => Promise<void>,
  ) {
    this.folder = folder;
    this.url = `https://127.0.0.1:${port}`;
    this.ca = certificates.ca.cert;
    this.kubeconfig = join(folder, 'kubeconfig');
    this.#token = token;
    this.#stop = stop;
  }

  get issuer(): string {
    return this.url;
  }

  get jwksUri(): string {
    return `${this.url}/openid/v1/jwks`;
  }

  /** Resolves when the server is ready; a failed start leaves nothing behind. */
  static async start(): Promise<Cluster> {
    const folder = await mkdtemp(join(tmpdir(), 'pg-kube-'));
    const children: Child[] = [];
    const ends: (() => Promise<unknown>)[] = [() => rm(folder, { recursive: true, force: true })];
    const stop = async () => {
      for (const child of children.splice(0).reverse()) await child.stop();
      for (const end of ends.splice(0)) await end();
    };
    try {
      const certificates = await makeCertificates('localhost', 'spiffe://x/y', ['127.0.0.1']);
      ends.push(() => certificates.remove());
      const etcdUrl = await startEtcd(folder, children);
      const settings = { folder, port: await freePort(), etcdUrl, certificates };
      const token = await writeFiles(settings);
      children.push(
        startChild({ command: `${KUBERNETES_CACHE}/bin/kube-apiserver`, args: argsOf(settings) }),
      );
      const cluster = new Cluster(settings, token, stop);
      await becomesReady('kube-apiserver', children.at(-1), async () => {
        const { status } = await cluster.call({ path: '/readyz' });
        return status === 200;
      });
      return cluster;
    } catch (error) {
      await stop();
      throw error;
    }
  }

  /** Calls as administrator, unless the call states another user. */
  call(call: ApiCall): Promise<ApiAnswer> {
    return callApi(this.url, { ca: this.ca, token: this.#token, ...call });
  }

  stop(): Promise<void> {
    return this.#stop();
  }
}

/** @returns the address of etcd */
async function startEtcd(folder: string, children: Child[]): Promise<string> {
  const [client, peer] = [await freePort(), await freePort()].map((port) => `http://127.0.0.1:${port}`);
  const args = [
    ...['--name', 'default', '--data-dir', join(folder, 'etcd'), '--log-level', 'error', '--unsafe-no-fsync'],
    ...['--listen-client-urls', `${client}`, '--advertise-client-urls', `${client}`],
    ...['--listen-peer-urls', `${peer}`, '--initial-advertise-peer-urls', `${peer}`],
    ...['--initial-cluster', `default=${peer}`],
  ];
  children.push(startChild({ command: `${KUBERNETES_CACHE}/bin/etcd`, args }));
  await becomesReady('etcd', children.at(-1), async () => {
    const { status } = await httpGet(`${client}/health`);
    return status === 200;
  });
  return `${client}`;
}

async function becomesReady(
  name: string,
  child: Child | undefined,
  isReady: () => Promise<boolean>,
): Promise<void> {
  await waitFor(`${name} to be ready`, async () => {
    if (child?.exitStatus() !== undefined) return true;
    return (await isReady()) ? true : undefined;
  });
  const ended = child?.exitStatus();
  if (ended !== undefined) throw new Error(`${name} ended: ${describeExit(ended, child?.stderrLines ?? [])}`);
}

/** @returns the administrator's token */
async function writeFiles({ folder, port, certificates }: ServerSettings): Promise<string> {
  const token = randomBytes(24).toString('base64url');
  const write = (name: string, content: string) =>
    writeFile(join(folder, name), content, { mode: 0o600, flag: 'wx' });
  await write('tokens.csv', `${token},administrator,1,"system:masters"\n`);
  const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  await write('tokens.key', privateKey.export({ format: 'pem', type: 'pkcs8' }).toString());
  await write('tokens.pub', publicKey.export({ format: 'pem', type: 'spki' }).toString());
  await write('kubeconfig', JSON.stringify(kubeconfig(`https://127.0.0.1:${port}`, certificates, token)));
  return token;
}

function kubeconfig(server: string, { ca }: TestCertificates, token: string): object {
  const certificate = Buffer.from(ca.cert).toString('base64');
  return {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'test', cluster: { server, 'certificate-authority-data': certificate } }],
    users: [{ name: 'administrator', user: { token } }],
    contexts: [{ name: 'test', context: { cluster: 'test', user: 'administrator' } }],
    'current-context': 'test',
  };
}

function argsOf({ folder, port, etcdUrl, certificates }: ServerSettings): readonly string[] {
  const url = `https://127.0.0.1:${port}`;
  return [
    `--etcd-servers=${etcdUrl}`,
    '--bind-address=127.0.0.1',
    '--advertise-address=127.0.0.1',
    `--secure-port=${port}`,
    `--tls-cert-file=${certificates.server.certPath}`,
    `--tls-private-key-file=${certificates.server.keyPath}`,
    `--token-auth-file=${join(folder, 'tokens.csv')}`,
    '--authorization-mode=RBAC',
    `--service-account-issuer=${url}`,
    `--service-account-jwks-uri=${url}/openid/v1/jwks`,
    `--service-account-signing-key-file=${join(folder, 'tokens.key')}`,
    `--service-account-key-file=${join(folder, 'tokens.pub')}`,
    '--service-cluster-ip-range=10.96.0.0/16',
    // Loopback addresses cannot be Endpoints of the Service `kubernetes`.
    '--endpoint-reconciler-type=none',
    // A controller would remove its finalizer from claims, but none runs.
    '--disable-admission-plugins=StorageObjectInUseProtection',
    '--enable-admission-plugins=PodSecurity,ServiceAccount',
  ];
}
