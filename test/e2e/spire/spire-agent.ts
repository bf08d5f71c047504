/** A real SPIRE agent that attests workloads by their user. */
import { execFile } from 'node:child_process';
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { mkdir, mkdtemp, readdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { type Child, describeExit, startChild } from '../../support/harness/child.ts';
import { remainingMs, waitFor } from '../../support/wait.ts';
import { spireProgram } from './spire-programs.ts';
import type { SpireServer } from './spire-server.ts';

export interface SpireAgentOptions {
  readonly server: SpireServer;
  /** An existing folder of its own, which the caller removes. Short: socket paths have at most 108 bytes. */
  readonly folder: string;
  /** Path of its SPIFFE ID: the parent of its workloads' entries. */
  readonly path: string;
  /** Default: the server's, P-256. */
  readonly svidKeyType?: 'rsa-2048';
}

export interface PemSvid {
  /** Leaf first. */
  readonly chain: string;
  readonly chainPath: string;
  readonly key: string;
  readonly keyPath: string;
}

/** Name of the authority that signed the SVID; SPIRE gives each one a serial number. */
export function authorityOf({ chain }: Pick<PemSvid, 'chain'>): string {
  return new X509Certificate(chain).issuer;
}

const FETCH_TIMEOUT_MS = 10_000;
const run = promisify(execFile);

export class SpireAgent {
  readonly path: string;
  readonly socketPath: string;
  readonly #configFile: string;
  readonly #dataFolder: string;
  #child: Child | undefined;

  private constructor({ folder, path }: SpireAgentOptions) {
    this.path = path;
    this.socketPath = join(folder, 'public', 'api.sock');
    this.#configFile = join(folder, 'agent.json');
    this.#dataFolder = join(folder, 'data');
  }

  static async start(options: SpireAgentOptions): Promise<SpireAgent> {
    const agent = new SpireAgent(options);
    await mkdir(agent.#dataFolder, { recursive: true });
    await writeFile(agent.#configFile, JSON.stringify(await configuration(options, agent.socketPath)));
    await agent.#run(['-joinToken', await options.server.joinToken(options.path)]);
    return agent;
  }

  /** As the SPIFFE Workload Endpoint specification, section 4, writes it. */
  get endpoint(): string {
    return `unix://${this.socketPath}`;
  }

  /** With the identity from before: a join token is good for one start. */
  startAgain(): Promise<void> {
    return this.#run([]);
  }

  async #run(flags: readonly string[]): Promise<void> {
    const child = startChild({
      command: spireProgram('spire-agent'),
      args: ['run', '-config', this.#configFile, ...flags],
    });
    this.#child = child;
    await waitFor(`SPIRE agent ${this.path} to be ready`, async () => {
      if (child.exitStatus() !== undefined) return true;
      await run(spireProgram('spire-agent'), ['healthcheck', '-socketPath', this.socketPath]);
      return true;
    });
    const ended = child.exitStatus();
    if (ended !== undefined)
      throw new Error(`SPIRE agent ended at start: ${describeExit(ended, child.stdoutLines)}`);
  }

  async stop(): Promise<void> {
    await this.#child?.stop();
    this.#child = undefined;
  }

  /** The X.509-SVID that this process has now, in PEM, as `spire-agent api fetch x509` writes it. */
  async x509Svid(spiffeId: string): Promise<PemSvid> {
    const folder = await mkdtemp(join(dirname(this.#configFile), 'svids-'));
    await this.#ask('x509', ['-write', folder]);
    const files = (await readdir(folder)).filter((name) => /^svid\.\d+\.pem$/.test(name));
    for (const file of files) {
      const path = join(folder, file);
      const chain = await readFile(path, 'utf8');
      const { subjectAltName } = new X509Certificate(chain);
      if (subjectAltName !== `URI:${spiffeId}`) continue;
      const keyPath = path.replace(/\.pem$/, '.key');
      return { chain, chainPath: path, key: await readFile(keyPath, 'utf8'), keyPath };
    }
    throw new Error(`no X.509-SVID for ${spiffeId}`);
  }

  /** The agent's own SVID, `/spire/agent/…`, from its files. */
  async ownSvid(): Promise<Pick<PemSvid, 'chain' | 'key'>> {
    const read = async (name: string) => JSON.parse(await readFile(join(this.#dataFolder, name), 'utf8'));
    const { svid }: { readonly svid: readonly string[] } = await read('agent-data.json');
    const { keys }: { readonly keys: Readonly<Record<string, string>> } = await read('keys.json');
    const chain = svid.map((pem) => Buffer.from(pem, 'base64').toString('utf8')).join('');
    const leaf = new X509Certificate(chain);
    const key = Object.values(keys)
      .map((der) => createPrivateKey({ key: Buffer.from(der, 'base64'), format: 'der', type: 'pkcs8' }))
      .find((candidate) => leaf.checkPrivateKey(candidate));
    if (key === undefined) throw new Error("the agent's files have no key of its SVID");
    return { chain, key: key.export({ type: 'pkcs8', format: 'pem' }).toString() };
  }

  /**
   * Until the agent's own SVID is of another authority. The agent replaces it seconds after those of its workloads. With
   * one of a revoked authority it no longer serves them, because the server refuses it.
   */
  async waitForOwnSvidAfter(formerAuthority: string): Promise<void> {
    await waitFor(`an SVID of another authority for agent ${this.path} itself`, async () => {
      return authorityOf(await this.ownSvid()) !== formerAuthority || undefined;
    });
  }

  /** SPIFFE IDs of the X.509-SVIDs that this process gets; none while no entry has arrived. */
  async spiffeIds(): Promise<readonly string[]> {
    try {
      const fetched: { readonly svids: readonly { readonly spiffe_id: string }[] } = JSON.parse(
        await this.#ask('x509', ['-output', 'json']),
      );
      return fetched.svids.map(({ spiffe_id }) => spiffe_id);
    } catch (error) {
      if (/PermissionDenied/.test(String(error))) return [];
      throw error;
    }
  }

  /** A JWT-SVID, as `spire-agent api fetch jwt` gets it. */
  async jwtSvid(spiffeId: string, audience: string): Promise<string> {
    const stdout = await this.#ask('jwt', ['-output', 'json', '-spiffeID', spiffeId, '-audience', audience]);
    const [{ svids }]: readonly [{ readonly svids: readonly { readonly svid: string }[] }] =
      JSON.parse(stdout);
    const [svid] = svids;
    if (svid === undefined) throw new Error(`no JWT-SVID for ${spiffeId}`);
    return svid.svid;
  }

  async #ask(kind: 'x509' | 'jwt', flags: readonly string[]): Promise<string> {
    const args = ['api', 'fetch', kind, '-socketPath', this.socketPath, ...flags];
    const { stdout } = await run(spireProgram('spire-agent'), args, {
      timeout: remainingMs(FETCH_TIMEOUT_MS),
    });
    return stdout;
  }

  /** Until the entry of the SPIFFE ID has come from the server, or has gone. */
  async waitForId(spiffeId: string, wanted: 'present' | 'absent' = 'present'): Promise<void> {
    await waitFor(`${spiffeId} to be ${wanted} at the agent`, async () => {
      const isPresent = (await this.spiffeIds()).includes(spiffeId);
      return isPresent === (wanted === 'present') || undefined;
    });
  }
}

async function configuration(
  { folder, server, svidKeyType }: SpireAgentOptions,
  socketPath: string,
): Promise<object> {
  const data = join(folder, 'data');
  const plugin = (name: string, plugin_data: object) => [{ [name]: { plugin_data } }];
  return {
    agent: {
      ...{ data_dir: data, log_level: 'INFO', socket_path: socketPath, trust_domain: server.trustDomain },
      ...{ server_address: '127.0.0.1', server_port: `${server.port}` },
      ...{ trust_bundle_path: await server.bundleFile('pem') },
      ...(svidKeyType === undefined ? {} : { workload_x509_svid_key_type: svidKeyType }),
      experimental: [{ sync_interval: '1s' }],
    },
    plugins: {
      NodeAttestor: plugin('join_token', {}),
      KeyManager: plugin('disk', { directory: data }),
      // Without the limit the agent reads the whole program of a workload at each call, to hash it.
      WorkloadAttestor: plugin('unix', { discover_workload_path: true, workload_size_limit: -1 }),
    },
  };
}
