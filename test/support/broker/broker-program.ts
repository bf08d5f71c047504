/** Runs `proofgate broker` as a process with keys, certificates and trust bundles of its own, and calls it like a workload. */
import { mkdir, mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { Agent, request } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type RotatedKey, rotateKey } from '../../../src/broker/program/rotate-key.ts';
import type { RotateKeySettings } from '../../../src/broker/program/rotate-key-settings.ts';
import { LAUNCHER } from '../cli/compiled-cli.ts';
import type { SpiffeAuthority } from '../fakes/spiffe-authority.ts';
import { type CertificateFiles, makeCertificates, type TestCertificates } from '../harness/certificates.ts';
import { type Child, describeExit, startChild } from '../harness/child.ts';
import { freePort } from '../harness/free-port.ts';
import { httpGet, waitFor } from '../wait.ts';

export interface BrokerFolder {
  readonly path: string;
  readonly keyDir: string;
  /** Trust bundle of `shop.example`. */
  readonly bundleFile: string;
  readonly tls: TestCertificates;
  /** Runs `broker rotate-key`. */
  rotate(trustDomain: string, step?: Partial<RotateKeySettings>): Promise<RotatedKey>;
  /** Replaces a file atomically, as a deployment does. */
  put(name: string, content: string): Promise<string>;
  putCertificate(from: CertificateFiles): Promise<void>;
  remove(): Promise<void>;
}

/** Has one signing key for the authority's trust domain. */
export async function makeBrokerFolder(authority: SpiffeAuthority): Promise<BrokerFolder> {
  const path = await mkdtemp(join(tmpdir(), 'proofgate-broker-'));
  const keyDir = join(path, 'keys');
  await mkdir(keyDir);
  const tls = await makeCertificates('localhost', 'spiffe://nobody.example/x', ['127.0.0.1']);
  const folder: BrokerFolder = {
    path,
    keyDir,
    bundleFile: join(path, 'bundle.pem'),
    tls,
    rotate: (trustDomain, step = {}) =>
      rotateKey({
        keyDir,
        trustDomain,
        algorithm: 'Ed25519',
        activate: undefined,
        remove: undefined,
        ...step,
      }),
    async put(name, content) {
      await writeFile(join(path, `${name}.new`), content, { mode: 0o600 });
      await rename(join(path, `${name}.new`), join(path, name));
      return join(path, name);
    },
    async putCertificate({ cert, key }) {
      await folder.put('tls.crt', cert);
      await folder.put('tls.key', key);
    },
    async remove() {
      await tls.remove();
      await rm(path, { recursive: true });
    },
  };
  await folder.put('bundle.pem', authority.pem);
  await folder.putCertificate(tls.server);
  await folder.rotate(authority.trustDomain);
  return folder;
}

export interface BrokerAnswer {
  readonly status: number;
  readonly headers: { readonly [name: string]: string | readonly string[] | undefined };
  readonly body: { readonly [member: string]: unknown };
}

/** A certificate of a client, and its connections. */
export class Caller {
  readonly agent: Agent;

  constructor(ca: string, svid?: { readonly cert: string; readonly key: string }) {
    // Sessions are kept, so that a broker that resumed them would be noticed.
    this.agent = new Agent({ ca, keepAlive: true, maxSockets: 1, ...svid });
  }

  /** @param body undefined: GET; null: POST without a body */
  call(url: string, path: string, body?: object | null): Promise<BrokerAnswer> {
    const hasBody = body !== undefined && body !== null;
    return new Promise((resolve, reject) => {
      const asked = request(`${url}${path}`, {
        agent: this.agent,
        method: body === undefined ? 'GET' : 'POST',
        headers: !hasBody ? {} : { 'content-type': 'application/json' },
      });
      asked.on('error', reject);
      asked.on('response', (response) => {
        const chunks: Buffer[] = [];
        response.on('data', (chunk: Buffer) => chunks.push(chunk));
        response.on('error', reject);
        response.on('end', () =>
          resolve({
            status: response.statusCode ?? 0,
            headers: response.headers,
            body: JSON.parse(Buffer.concat(chunks).toString('utf8')),
          }),
        );
      });
      asked.end(hasBody ? JSON.stringify(body) : undefined);
    });
  }

  passport(url: string, audience = 'https://api.shop.example'): Promise<BrokerAnswer> {
    return this.call(url, '/v1/passports', { audience, proof: { kind: 'mtls' } });
  }

  /** Number of open connections. */
  get connections(): number {
    return Object.values(this.agent.sockets).concat(Object.values(this.agent.freeSockets)).flat().length;
  }

  close(): void {
    this.agent.destroy();
  }
}

export interface BrokerProgram {
  readonly child: Child;
  /** `https://127.0.0.1:…`, also its public URL. */
  readonly url: string;
  readonly adminUrl: string;
  metric(name: string): Promise<number>;
  readiness(): Promise<{
    readonly status: string;
    readonly checks: readonly { readonly name: string; readonly ok: boolean; readonly warning?: string }[];
  }>;
}

export interface BrokerProgramOptions {
  readonly flags?: readonly string[];
  /** Plain HTTP on this Unix socket instead of TLS. */
  readonly socketPath?: string;
  /** Default: 200, ready. */
  readonly readyStatus?: 200 | 503;
  /** Port of an earlier broker, to be its successor. Default: a free one. */
  readonly port?: number;
}

/** @throws when the process is not ready in time or exits first; it leaves nothing running */
export async function startBrokerProgram(
  folder: BrokerFolder,
  { flags = [], port, readyStatus = 200, socketPath }: BrokerProgramOptions = {},
): Promise<BrokerProgram> {
  const address = `127.0.0.1:${port ?? (await freePort())}`;
  const adminListen = `127.0.0.1:${await freePort()}`;
  const url = `https://${address}`;
  const listener =
    socketPath === undefined
      ? {
          listen: address,
          'tls-cert-file': join(folder.path, 'tls.crt'),
          'tls-key-file': join(folder.path, 'tls.key'),
        }
      : { listen: `unix:${socketPath}` };
  const settings = {
    ...listener,
    'admin-listen': adminListen,
    'public-url': url,
    'key-dir': folder.keyDir,
    // Tests ask until something has changed.
    'address-rate': 100_000,
    'identity-rate': 100_000,
    'spiffe-bundle': `shop.example=${folder.bundleFile}`,
  };
  const own = Object.entries(settings).map(([flag, value]) => `--${flag}=${value}`);
  const child = startChild({ command: process.execPath, args: [LAUNCHER, 'broker', ...own, ...flags] });
  const adminUrl = `http://${adminListen}`;
  try {
    await waitFor('the broker to be ready', async () => {
      const ended = child.exitStatus();
      if (ended !== undefined) return ended;
      return (await httpGet(`${adminUrl}/readyz`)).status === readyStatus ? 'ready' : undefined;
    });
    const ended = child.exitStatus();
    if (ended !== undefined) throw new Error(`it ended: ${describeExit(ended, child.stderrLines)}`);
  } catch (error) {
    await child.stop();
    throw error;
  }
  return {
    child,
    url,
    adminUrl,
    async metric(name) {
      const { text } = await httpGet(`${adminUrl}/metrics`);
      const line = text.split('\n').find((one) => one.startsWith(`${name} `));
      return Number(line?.slice(name.length) ?? Number.NaN);
    },
    readiness: async () => JSON.parse((await httpGet(`${adminUrl}/readyz`)).text),
  };
}
