/**
 * The enrollment plane as it runs in production: a cluster's token issuer over TLS, `proofgate control` as a process, its
 * operator with the bootstrap token, and the command line of both.
 */
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseControlUrl } from '../../../src/caller/enroll/control-url.ts';
import { ControlClient } from '../../../src/cli/ctl/client/control-client.ts';
import { isJsonObject, type JsonObject, parseStrictJson } from '../../../src/protocol/strict-json.ts';
import { runInProcess } from '../cli/in-process.ts';
import { type ServiceAccountIssuer, startServiceAccountIssuer } from '../fakes/service-account-issuer.ts';
import { type CertificateFiles, makeCertificates, type TestCertificates } from '../harness/certificates.ts';
import { freePort } from '../harness/free-port.ts';
import { type CommandResult, runProofgate } from '../harness/proofgate-command.ts';
import type { Service } from '../harness/sidecar.ts';
import { Secrets } from '../site/secrets.ts';
import { waitFor } from '../wait.ts';
import { type InstanceSettings, startInstance } from './control-instance.ts';
import { AUDIENCE, POLICIES, type PolicyName, SITE_ID, siteYaml } from './site-declaration.ts';

export interface ControlStageOptions {
  /** `postgres://…`; without it the embedded database. */
  readonly databaseUrl?: string;
  readonly flags?: readonly string[];
  /** Control's port. Default: a free one. */
  readonly port?: number;
  /** Declares no site. */
  readonly isEmpty?: boolean;
  /** The origin that requests will be signed for. */
  readonly origin?: string;
  readonly targets?: readonly string[];
  readonly sourceCapacity?: number;
  readonly maxStalenessSeconds?: number;
  /** Further environment variables of Control. */
  readonly env?: Readonly<Record<string, string>>;
  /** Files of released programs. Default: the one under test. */
  readonly controlRelease?: string | undefined;
  readonly commandRelease?: string | undefined;
  /** Runs each command as a process of its own. Default false: in this process, which costs a tenth; a release is always a process. */
  readonly commandProcesses?: boolean;
}

export interface TokenWish {
  readonly expiresInSeconds?: number;
  readonly claims?: { readonly [name: string]: unknown };
  readonly header?: { readonly [name: string]: unknown };
}

/** A key file of a workload, with the output of `enroll`. */
export interface EnrolledKey {
  readonly keyFile: string;
  readonly keyId: string;
  readonly status: string;
  readonly expiresAt: string;
}

/** Path of a list, where `ctl` has a shorter name. */
const PATHS: Readonly<Record<string, string>> = { keys: 'derived-keys', policies: 'enrollment-policies' };

/** Verbs that ask before they act. */
const ASKING: ReadonlySet<string> = new Set(['detach', 'raise-floor', 'retire', 'revoke']);

/** From an image or a package there is only the program: ../harness/program.ts. */
const IS_PACKAGED = process.env.PROOFGATE_TEST_PROGRAM !== undefined;

/** The result as that of a process. */
async function runHere(args: readonly string[]): Promise<CommandResult> {
  const { exitCode, stderr, stdout } = await runInProcess(args);
  return { exitCode, stdout: stdout.trimEnd(), stderr: stderr.trimEnd() };
}

export class ControlStage {
  readonly directory: string;
  readonly dataDirectory: string;
  readonly issuer: ServiceAccountIssuer;
  readonly secrets = new Secrets();
  /** Runs the commands; undefined: the program under test. */
  commandRelease: string | undefined;
  readonly #certificates: TestCertificates;
  readonly #options: ControlStageOptions;
  readonly #port: number;
  readonly #outputs: string[] = [];
  #control: Service | undefined;
  #names = 0;

  private constructor(
    directory: string,
    issuer: ServiceAccountIssuer,
    certificates: TestCertificates,
    port: number,
    options: ControlStageOptions,
  ) {
    this.directory = directory;
    this.dataDirectory = join(directory, 'data');
    this.issuer = issuer;
    this.#certificates = certificates;
    this.#port = port;
    this.#options = options;
    this.commandRelease = options.commandRelease;
  }

  /** Control runs, and holds the declared site. */
  static async start(options: ControlStageOptions = {}): Promise<ControlStage> {
    const directory = await mkdtemp(join(tmpdir(), 'pg-control-'));
    await mkdir(join(directory, 'data'));
    const certificates = await makeCertificates('localhost', 'spiffe://shop.example/x', ['127.0.0.1']);
    await writeFile(join(directory, 'ca.pem'), certificates.ca.cert);
    const issuer = await startServiceAccountIssuer({
      certificate: certificates.server,
      hostname: '127.0.0.1',
      path: '/id/4f2a',
    });
    const stage = new ControlStage(
      directory,
      issuer,
      certificates,
      options.port ?? (await freePort()),
      options,
    );
    try {
      await stage.startControl();
      if (options.isEmpty !== true) await stage.applySite();
      return stage;
    } catch (error) {
      await stage.stop();
      throw error;
    }
  }

  /** For localhost and 127.0.0.1, of the CA that Control trusts for issuers. */
  get issuerCertificate(): CertificateFiles {
    return this.#certificates.server;
  }

  get controlUrl(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  get control(): Service {
    if (this.#control === undefined) throw new Error('Control does not run');
    return this.#control;
  }

  get tokenFile(): string {
    return join(this.dataDirectory, 'bootstrap-token');
  }

  async startControl(changes: Partial<InstanceSettings> = {}): Promise<void> {
    this.#control = await startInstance(this.instanceSettings(changes));
    this.secrets.add('the bootstrap token', (await readFile(this.tokenFile, 'utf8')).trim());
  }

  /** Settings of the fixture's Control, or of another instance beside it. */
  instanceSettings(changes: Partial<InstanceSettings> = {}): InstanceSettings {
    const { flags = [], databaseUrl, controlRelease, env } = this.#options;
    return {
      port: this.#port,
      dataDirectory: this.dataDirectory,
      publicUrl: this.controlUrl,
      caFile: join(this.directory, 'ca.pem'),
      databaseUrl,
      env,
      release: controlRelease,
      ...changes,
      flags: [...flags, ...(changes.flags ?? [])],
    };
  }

  /** @param signal SIGTERM waits for an orderly end */
  async stopControl(signal: 'SIGTERM' | 'SIGKILL' = 'SIGTERM'): Promise<void> {
    const control = this.control;
    this.#control = undefined;
    if (signal === 'SIGKILL') {
      control.signal('SIGKILL');
      await control.exited;
    } else await control.stop();
    this.#outputs.push(...control.stderrLines, ...control.stdoutLines);
  }

  /** Declares the site; what of it is there already stays. */
  async applySite(changes: Partial<ControlStageOptions> = {}): Promise<JsonObject> {
    const {
      origin = 'http://api.shop.example',
      targets = [],
      sourceCapacity,
      maxStalenessSeconds,
    } = { ...this.#options, ...changes };
    const { issuer } = this;
    const file = join(this.directory, 'site.yaml');
    const declared = {
      ...{ origin, issuer, targets },
      ...(sourceCapacity === undefined ? {} : { sourceCapacity }),
      ...(maxStalenessSeconds === undefined ? {} : { maxStalenessSeconds }),
    };
    await writeFile(file, siteYaml(declared));
    return this.ctl('apply', '-f', file, '--token-dir', this.directory);
  }

  /** An operator's command that succeeds. */
  async ctl(...args: readonly string[]): Promise<JsonObject> {
    const result = await this.tryCtl(...args);
    if (result.exitCode !== 0) throw new Error(`ctl ${args.join(' ')}: ${result.stderr}`);
    const answer = parseStrictJson(result.stdout);
    if (!isJsonObject(answer)) throw new Error(`ctl ${args.join(' ')} did not answer an object`);
    return answer;
  }

  async tryCtl(...args: readonly string[]): Promise<CommandResult> {
    const connection = ['--control-url', this.controlUrl, '--token-file', this.tokenFile, '--output', 'json'];
    // Control before declarations needs the command line of its version to apply a site file.
    const { commandRelease = args[0] === 'apply' ? this.#options.controlRelease : undefined } = this;
    const command = ['ctl', ...args, ...connection];
    const asks = ASKING.has(args[0] ?? '') || (args[0] === 'apply' && args.includes('--prune'));
    if (!asks) return this.#run(command, commandRelease);
    const result = await this.#run([...command, '--yes'], commandRelease);
    // Releases before 0.3.1 do not ask, and do not know the flag.
    const isUnknown = commandRelease !== undefined && result.stderr.includes('unknown_flag');
    return isUnknown ? this.#run(command, commandRelease) : result;
  }

  async list(kind: string): Promise<readonly JsonObject[]> {
    return this.#withApi((api) => api.list(`/v1/sites/${SITE_ID}/${PATHS[kind] ?? kind}`));
  }

  async policy(name: PolicyName): Promise<JsonObject> {
    const policies = await this.#withApi((api) => api.list(`/v1/sites/${SITE_ID}/enrollment-policies`));
    const found = policies.find((each) => each.display_name === name);
    if (found === undefined) throw new Error(`there is no policy ${name}`);
    return found;
  }

  /** A projected token. */
  workloadToken(policy: PolicyName, wish: TokenWish = {}): string {
    const { serviceAccount } = POLICIES[policy];
    const token = this.issuer.token({ namespace: 'prod', serviceAccount, audience: AUDIENCE, ...wish });
    this.secrets.add('a workload token', token.split('.')[2] ?? '');
    return token;
  }

  /** The same in a file. */
  async tokenFor(policy: PolicyName, wish: TokenWish = {}): Promise<string> {
    const file = join(this.directory, this.#nextName('token'));
    await writeFile(file, this.workloadToken(policy, wish), { mode: 0o600 });
    return file;
  }

  newKeyFile(): string {
    return join(this.directory, this.#nextName('key'));
  }

  /** Runs `proofgate enroll` with a token for the policy, and returns its result, success or not. */
  async tryEnroll(
    policy: PolicyName,
    options: {
      readonly keyFile?: string;
      readonly reuse?: boolean;
      readonly tokenFile?: string;
      readonly flags?: readonly string[];
    } = {},
  ): Promise<CommandResult & { readonly keyFile: string }> {
    const { keyFile = this.newKeyFile(), reuse = false, flags = [] } = options;
    const tokenFile = options.tokenFile ?? (await this.tokenFor(policy));
    const { reference } = await this.policy(policy);
    const result = await this.#run([
      ...['enroll', '--control-url', this.controlUrl, '--policy', String(reference), '--output', 'json'],
      ...['--proof-file', tokenFile, reuse ? '--private-key-file' : '--private-key-out', keyFile],
      ...['--poll-interval', '200ms', '--timeout', '30s', ...flags],
    ]);
    return { ...result, keyFile };
  }

  /** As {@link tryEnroll}; it must succeed. */
  async enroll(...args: Parameters<ControlStage['tryEnroll']>): Promise<EnrolledKey> {
    const { exitCode, stdout, stderr, keyFile } = await this.tryEnroll(...args);
    if (exitCode !== 0) throw new Error(`enroll: ${stderr}`);
    const answer = parseStrictJson(stdout);
    if (!isJsonObject(answer)) throw new Error('enroll did not answer an object');
    return {
      keyFile,
      keyId: String(answer.key_id),
      status: String(answer.status),
      expiresAt: String(answer.expires_at),
    };
  }

  /** A draft beside the active revision, validated and activated; waits until it is the active one. */
  activateNewRevision(sourceId: string): Promise<void> {
    return this.#withApi(async (api) => {
      const { body } = await api.create(`/v1/sources/${sourceId}/revisions`, { body: {} });
      const path = `/v1/sources/${sourceId}/revisions/${String(body.revision)}`;
      const validated = await api.act(`${path}/validate`);
      await api.act(`${path}/activate`, { body: { expected_scope: validated.body.detected_scope } });
      await waitFor('the new revision to be active', async () =>
        (await api.get(path)).body.state === 'active' ? true : undefined,
      );
    });
  }

  setOnRetire(sourceId: string, keyPolicy: 'keep' | 'revoke'): Promise<void> {
    return this.#withApi(async (api) => {
      const path = `/v1/sources/${sourceId}`;
      await api.patch(path, { body: { on_retire: keyPolicy }, etag: (await api.get(path)).etag });
    });
  }

  /** For what a test only looks up: a command takes a hundred times as long. */
  async #withApi<T>(use: (api: ControlClient) => Promise<T>): Promise<T> {
    const api = await this.api();
    try {
      return await use(api);
    } finally {
      await api.close();
    }
  }

  /** The API with the bootstrap token. To be closed. */
  async api(): Promise<ControlClient> {
    const token = (await readFile(this.tokenFile, 'utf8')).trim();
    return new ControlClient({ url: parseControlUrl(this.controlUrl), token, caPem: undefined });
  }

  key(keyId: string): Promise<JsonObject> {
    return this.get(`/v1/derived-keys/${keyId}`);
  }

  /** What the API answers at the path. A command line would cost a process each time that a test asks. */
  get(path: string): Promise<JsonObject> {
    return this.#withApi(async (api) => (await api.get(path)).body);
  }

  /** Waits until a revision of the source is in the state. */
  async awaitSource(sourceId: string, state: string): Promise<void> {
    await this.#withApi((api) =>
      waitFor(`source ${sourceId} to be ${state}`, async () => {
        const { revisions } = (await api.get(`/v1/sources/${sourceId}`)).body;
        const states = Array.isArray(revisions) ? revisions.map((each: JsonObject) => each.state) : [];
        return states.includes(state) ? true : undefined;
      }),
    );
  }

  /** Any command, its output kept for the search for secrets. */
  run(args: readonly string[]): Promise<CommandResult> {
    return this.#run(args);
  }

  async #run(args: readonly string[], release = this.commandRelease): Promise<CommandResult> {
    const isProcess = this.#options.commandProcesses === true || release !== undefined || IS_PACKAGED;
    const result = isProcess ? await runProofgate(args, {}, release) : await runHere(args);
    this.#outputs.push(args.join(' '), result.stdout, result.stderr);
    return result;
  }

  #nextName(kind: string): string {
    this.#names += 1;
    return `${kind}-${this.#names}`;
  }

  /** All output of Control and of all commands, including their arguments. */
  outputs(): string {
    const { stderrLines = [], stdoutLines = [] } = this.#control ?? {};
    return [...this.#outputs, ...stderrLines, ...stdoutLines].join('\n');
  }

  async stop(): Promise<void> {
    if (this.#control !== undefined) await this.stopControl();
    await this.issuer.close();
    await this.#certificates.remove();
    await rm(this.directory, { recursive: true, force: true });
  }
}
