/**
 * A real PostgreSQL server on a free loopback port, for tests. Its data survives a crash, because `fsync` is on. It sorts by a
 * language, not by bytes, and requires a password.
 *
 * `initdb` and the server refuse to run as root. Under root they run as `postgres` or `nobody`, which then owns the data.
 */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, readdirSync } from 'node:fs';
import { chown, cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import pg from 'pg';
import { waitUntil } from '../wait.ts';
import { freePort } from './free-port.ts';

/** Debian's directory for programs that are not on the path. */
const DEBIAN_VERSIONS = '/usr/lib/postgresql';
const USER = 'proofgate';
const run = promisify(execFile);

export interface PostgresOptions {
  /** PEM files: the server offers TLS. */
  readonly tls?: { readonly certPath: string; readonly keyPath: string };
}

export class TestPostgresServer {
  readonly port: number;
  /** Password of the only user. */
  readonly password: string;
  readonly #directory: string;
  readonly #owner: Owner;
  readonly #settings: readonly string[];
  #process: ChildProcess | undefined;
  #databases = 0;

  private constructor(
    port: number,
    password: string,
    directory: string,
    owner: Owner,
    settings: readonly string[],
  ) {
    this.port = port;
    this.password = password;
    this.#directory = directory;
    this.#owner = owner;
    this.#settings = settings;
  }

  /** Takes a second or two: makes a cluster, and starts it. */
  static async start(options: PostgresOptions = {}): Promise<TestPostgresServer> {
    const directory = await mkdtemp(join(tmpdir(), 'proofgate-postgres-'));
    const owner = await ownerOfData();
    if (owner.uid !== undefined && owner.gid !== undefined) await chown(directory, owner.uid, owner.gid);
    const password = randomBytes(18).toString('base64url');
    await makeCluster(directory, owner, password);
    const settings = options.tls === undefined ? [] : await tlsSettings(directory, owner, options.tls);
    const server = new TestPostgresServer(await freePort(), password, directory, owner, settings);
    await server.startAgain();
    return server;
  }

  /**
   * @param template URL of a database of the server that is copied, and has no connection; undefined: an empty one
   * @returns the URL of a new database
   */
  async createDatabase(template?: string): Promise<string> {
    this.#databases += 1;
    const name = `test_${this.#databases}`;
    const copied = template === undefined ? '' : ` template ${new URL(template).pathname.slice(1)}`;
    await this.query(this.urlOf('postgres'), `create database ${name}${copied}`);
    return this.urlOf(name);
  }

  urlOf(database: string, host = '127.0.0.1'): string {
    return `postgres://${USER}:${this.password}@${host}:${this.port}/${database}`;
  }

  /** One statement on a connection of its own. */
  async query(url: string, text: string, values: readonly unknown[] = []): Promise<pg.QueryResultRow[]> {
    const client = new pg.Client({ connectionString: url });
    client.on('error', () => {});
    await client.connect();
    try {
      return (await client.query(text, [...values])).rows;
    } finally {
      await client.end();
    }
  }

  /** Restarts on the same port, with its data. */
  async startAgain(): Promise<void> {
    await waitUntil(async () => {
      // A server that was killed leaves its shared memory until the last of its processes has noticed.
      if (this.#process === undefined || this.#process.exitCode !== null) this.#process = this.#spawn();
      return this.query(this.urlOf('postgres'), 'select 1').then(
        () => true,
        () => false,
      );
    });
  }

  #spawn(): ChildProcess {
    const fixed = ['-D', join(this.#directory, 'data'), '-p', `${this.port}`];
    const settings = [
      'listen_addresses=127.0.0.1',
      'unix_socket_directories=',
      'fsync=on',
      ...this.#settings,
    ];
    const args = [...fixed, ...settings.flatMap((setting) => ['-c', setting])];
    const child = spawn(programPath('postgres'), args, {
      stdio: 'ignore',
      cwd: this.#directory,
      ...this.#owner,
    });
    child.on('error', () => {});
    running.add(child);
    child.on('exit', () => running.delete(child));
    return child;
  }

  /** `SIGKILL`: all of its processes at once, as a crash. `SIGQUIT`: at once, too. `SIGINT`: orderly. */
  async kill(signal: 'SIGKILL' | 'SIGQUIT' | 'SIGINT' = 'SIGKILL'): Promise<void> {
    const child = this.#process;
    this.#process = undefined;
    if (child?.pid === undefined || child.exitCode !== null) return;
    const hasExited = once(child, 'exit');
    const sessions = signal === 'SIGKILL' ? await childrenOf(child.pid) : [];
    child.kill(signal);
    // Otherwise one that is serving a client may go on for a moment, and commit.
    for (const pid of sessions) killIfThere(pid);
    await hasExited;
    await waitUntil(async () => (await Promise.all(sessions.map(isRunning))).every((runs) => !runs));
  }

  async stop(): Promise<void> {
    await this.kill('SIGQUIT');
    await rm(this.#directory, { recursive: true, force: true, maxRetries: 5 });
  }
}

const running = new Set<ChildProcess>();
process.on('exit', () => {
  for (const child of running) child.kill('SIGQUIT');
});

interface ProcessLine {
  readonly state: string;
  readonly parent: number;
}

/** From `/proc/<pid>/stat`, proc(5): what follows the name, which is in parentheses. */
async function processLine(pid: number | string): Promise<ProcessLine | undefined> {
  const text = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '');
  const [state, parent] = text.slice(text.lastIndexOf(')') + 2).split(' ');
  return state === undefined || parent === undefined ? undefined : { state, parent: Number(parent) };
}

async function childrenOf(parent: number): Promise<readonly number[]> {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  const lines = await Promise.all(pids.map(processLine));
  return pids.filter((_, at) => lines[at]?.parent === parent).map(Number);
}

async function isRunning(pid: number): Promise<boolean> {
  const line = await processLine(pid);
  return line !== undefined && line.state !== 'Z';
}

function killIfThere(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // The process has ended meanwhile.
  }
}

/** The user that the server runs as; empty for the current user. */
interface Owner {
  readonly uid?: number;
  readonly gid?: number;
}

async function ownerOfData(): Promise<Owner> {
  if (process.getuid?.() !== 0) return {};
  const lines = (await readFile('/etc/passwd', 'utf8')).split('\n').map((line) => line.split(':'));
  for (const name of ['postgres', 'nobody']) {
    const [, , uid, gid] = lines.find(([first]) => first === name) ?? [];
    if (uid !== undefined && gid !== undefined) return { uid: Number(uid), gid: Number(gid) };
  }
  throw new Error('neither a user postgres nor a user nobody, and PostgreSQL does not run as root');
}

async function makeCluster(directory: string, owner: Owner, password: string): Promise<void> {
  const passwordFile = join(directory, 'password');
  await writeFile(passwordFile, password, { mode: 0o600 });
  if (owner.uid !== undefined && owner.gid !== undefined) await chown(passwordFile, owner.uid, owner.gid);
  const args = ['-D', join(directory, 'data'), '-U', USER, '--pwfile', passwordFile, '-A', 'scram-sha-256'];
  const language = ['-E', 'UTF8', '--locale=C', '--locale-provider=icu', '--icu-locale=en'];
  await run(programPath('initdb'), [...args, ...language, '--no-sync', '--no-instructions'], {
    cwd: directory,
    ...owner,
  });
}

async function tlsSettings(
  directory: string,
  owner: Owner,
  tls: { readonly certPath: string; readonly keyPath: string },
): Promise<readonly string[]> {
  const files = { ssl_cert_file: tls.certPath, ssl_key_file: tls.keyPath };
  const settings = ['ssl=on'];
  for (const [setting, source] of Object.entries(files)) {
    const path = join(directory, setting);
    await cp(source, path);
    if (owner.uid !== undefined && owner.gid !== undefined) await chown(path, owner.uid, owner.gid);
    settings.push(`${setting}=${path}`);
  }
  return settings;
}

export function programPath(name: string): string {
  const versions = existsSync(DEBIAN_VERSIONS) ? readdirSync(DEBIAN_VERSIONS) : [];
  const newestFirst = versions.sort((a, b) => Number(b) - Number(a));
  const paths = newestFirst.map((version) => join(DEBIAN_VERSIONS, version, 'bin', name));
  return paths.find((path) => existsSync(path)) ?? name;
}
