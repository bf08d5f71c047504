/** A real SPIRE server with SQLite, short lives and a bundle endpoint, and the commands of its operator. */
import { execFile } from 'node:child_process';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { type Child, describeExit, startChild } from '../../support/harness/child.ts';
import { freePort } from '../../support/harness/free-port.ts';
import { remainingMs, waitFor } from '../../support/wait.ts';
import { OWN_USER, spireProgram } from './spire-programs.ts';

export interface SpireServerOptions {
  readonly trustDomain: string;
  /** An existing folder of its own, which the caller removes. Short: socket paths have at most 108 bytes. */
  readonly folder: string;
  /** Default 60 s. */
  readonly svidTtlSeconds?: number;
  /** `iss` of JWT-SVIDs. */
  readonly jwtIssuer?: string;
}

export interface SpireEntry {
  /** Path of the SPIFFE ID, with a leading slash. */
  readonly path: string;
  /** Path of the agent's SPIFFE ID. */
  readonly agentPath: string;
  readonly hint?: string;
  /** Trust domains whose bundles the workload gets too. */
  readonly federatesWith?: readonly string[];
}

/** IDs of the server's X.509 authorities. */
export interface LocalAuthorities {
  readonly active: string;
  readonly prepared?: string;
  readonly old?: string;
}

const COMMAND_TIMEOUT_MS = 30_000;
const run = promisify(execFile);

export class SpireServer {
  readonly trustDomain: string;
  readonly port: number;
  readonly socketPath: string;
  /** URL of the bundle endpoint, profile https_spiffe, whose certificate is for `spiffe://<trust domain>/spire/server`. */
  readonly bundleEndpoint: string;
  readonly #folder: string;
  readonly #configFile: string;
  #child: Child | undefined;

  private constructor(options: SpireServerOptions, port: number, bundlePort: number) {
    this.trustDomain = options.trustDomain;
    this.port = port;
    this.bundleEndpoint = `https://127.0.0.1:${bundlePort}`;
    this.#folder = options.folder;
    this.socketPath = join(options.folder, 's.sock');
    this.#configFile = join(options.folder, 'server.json');
  }

  static async start(options: SpireServerOptions): Promise<SpireServer> {
    const [port, bundlePort] = [await freePort(), await freePort()];
    const server = new SpireServer(options, port, bundlePort);
    await mkdir(join(options.folder, 'data'), { recursive: true });
    await writeFile(server.#configFile, JSON.stringify(configuration(options, port, bundlePort)));
    await server.startAgain();
    return server;
  }

  /** With the keys and entries from before. */
  async startAgain(): Promise<void> {
    await rm(this.socketPath, { force: true });
    const child = startChild({
      command: spireProgram('spire-server'),
      args: ['run', '-config', this.#configFile],
    });
    this.#child = child;
    await waitFor(`SPIRE server of ${this.trustDomain} to be ready`, async () => {
      const ended = child.exitStatus();
      if (ended !== undefined) return true;
      await this.#command(['healthcheck']);
      return true;
    });
    const ended = child.exitStatus();
    if (ended !== undefined)
      throw new Error(`SPIRE server ended at start: ${describeExit(ended, child.stdoutLines)}`);
  }

  async stop(): Promise<void> {
    await this.#child?.stop();
    this.#child = undefined;
  }

  /** The trust bundle: certificates in PEM, or a SPIFFE bundle document. */
  async bundle(format: 'pem' | 'spiffe'): Promise<string> {
    return await this.#command(['bundle', 'show', '-format', format]);
  }

  async bundleFile(format: 'pem' | 'spiffe'): Promise<string> {
    const path = join(this.#folder, `bundle.${format}`);
    await writeFile(path, await this.bundle(format));
    return path;
  }

  async joinToken(agentPath: string): Promise<string> {
    const { value } = await this.#json<{ value: string }>([
      'token',
      'generate',
      '-spiffeID',
      this.id(agentPath),
    ]);
    return value;
  }

  id(path: string): string {
    return `spiffe://${this.trustDomain}${path}`;
  }

  /** An entry for the user of this process. @returns its entry ID */
  async createEntry(entry: SpireEntry): Promise<string> {
    const { results } = await this.#json<EntryResults>([
      ...['entry', 'create', '-selector', OWN_USER],
      ...['-spiffeID', this.id(entry.path), '-parentID', this.id(entry.agentPath)],
      ...(entry.hint === undefined ? [] : ['-hint', entry.hint]),
      ...(entry.federatesWith ?? []).flatMap((domain) => ['-federatesWith', `spiffe://${domain}`]),
    ]);
    const [result] = results;
    if (result?.status.code !== 0) throw new Error(`entry create: ${result?.status.message}`);
    return result.entry.id;
  }

  async deleteEntry(entryId: string): Promise<void> {
    await this.#command(['entry', 'delete', '-entryID', entryId]);
  }

  /** Fetches the other server's bundle from its endpoint from now on. */
  async federateWith(other: SpireServer): Promise<void> {
    await this.#command([
      ...['federation', 'create', '-trustDomain', other.trustDomain],
      ...['-bundleEndpointURL', other.bundleEndpoint, '-bundleEndpointProfile', 'https_spiffe'],
      ...['-endpointSpiffeID', other.id('/spire/server')],
      ...['-trustDomainBundlePath', await other.bundleFile('spiffe'), '-trustDomainBundleFormat', 'spiffe'],
    ]);
  }

  /** Fetches the other server's bundle now, not only at the refresh hint. */
  async refreshFederated(other: SpireServer): Promise<void> {
    await this.#command(['federation', 'refresh', '-id', `spiffe://${other.trustDomain}`]);
  }

  async authorities(): Promise<LocalAuthorities> {
    const shown = await this.#json<{ [K in keyof LocalAuthorities]: { authority_id: string } }>([
      ...X509_AUTHORITY,
      'show',
    ]);
    return {
      active: shown.active.authority_id,
      ...(shown.prepared && { prepared: shown.prepared.authority_id }),
      ...(shown.old && { old: shown.old.authority_id }),
    };
  }

  /** Makes the next X.509 authority and publishes it in the bundle. @returns its ID */
  async prepareAuthority(): Promise<string> {
    await this.#command([...X509_AUTHORITY, 'prepare']);
    const { prepared } = await this.authorities();
    if (prepared === undefined) throw new Error('no authority is prepared');
    return prepared;
  }

  async changeAuthority(change: 'activate' | 'taint' | 'revoke', authorityId: string): Promise<void> {
    await this.#command([...X509_AUTHORITY, change, '-authorityID', authorityId]);
  }

  /** Publishes the next key of JWT-SVIDs. @returns its `kid` */
  async prepareJwtKey(): Promise<string> {
    const { prepared_authority } = await this.#json<{ prepared_authority: { authority_id: string } }>([
      ...['localauthority', 'jwt', 'prepare'],
    ]);
    return prepared_authority.authority_id;
  }

  /** Signs new JWT-SVIDs with it. */
  async activateJwtKey(keyId: string): Promise<void> {
    await this.#command(['localauthority', 'jwt', 'activate', '-authorityID', keyId]);
  }

  async #json<T>(args: readonly string[]): Promise<T> {
    return JSON.parse(await this.#command([...args, '-output', 'json']));
  }

  async #command(args: readonly string[]): Promise<string> {
    const { stdout } = await run(spireProgram('spire-server'), [...args, '-socketPath', this.socketPath], {
      timeout: remainingMs(COMMAND_TIMEOUT_MS),
    });
    return stdout;
  }
}

interface EntryResults {
  readonly results: readonly {
    readonly entry: { readonly id: string };
    readonly status: { readonly code: number; readonly message: string };
  }[];
}

const X509_AUTHORITY = ['localauthority', 'x509'];

function configuration(options: SpireServerOptions, port: number, bundlePort: number): object {
  const { folder, jwtIssuer, svidTtlSeconds = 60, trustDomain } = options;
  const plugin = (name: string, data: object) => [{ [name]: { plugin_data: data } }];
  return {
    server: {
      ...{ bind_address: '127.0.0.1', bind_port: `${port}`, socket_path: join(folder, 's.sock') },
      ...{ trust_domain: trustDomain, data_dir: join(folder, 'data'), log_level: 'INFO' },
      ...{ ca_ttl: '1h', agent_ttl: '30m', ca_key_type: 'ec-p256' },
      ...{ default_x509_svid_ttl: `${svidTtlSeconds}s`, default_jwt_svid_ttl: '60s' },
      ...(jwtIssuer === undefined ? {} : { jwt_issuer: jwtIssuer }),
      federation: [
        { bundle_endpoint: [{ address: '127.0.0.1', port: bundlePort, profile: [{ https_spiffe: {} }] }] },
      ],
      experimental: [{ cache_reload_interval: '1s' }],
    },
    plugins: {
      DataStore: plugin('sql', {
        database_type: 'sqlite3',
        connection_string: join(folder, 'data', 'datastore.sqlite3'),
      }),
      NodeAttestor: plugin('join_token', {}),
      KeyManager: plugin('disk', { keys_path: join(folder, 'data', 'keys.json') }),
    },
  };
}
