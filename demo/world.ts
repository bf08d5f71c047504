/**
 * Everything that runs: an upstream, a real Envoy with the shipped configuration, the sidecar, and what keeps the bundle
 * fresh. Each is on a free loopback port or on a socket file in the demo's folder.
 */
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Child, startChild } from '../test/e2e/harness/child.ts';
import { envoyVersions, type RunningEnvoy, startEnvoy } from '../test/e2e/harness/envoy.ts';
import { type Service, startService } from '../test/e2e/harness/sidecar.ts';
import { startUpstream, type Upstream } from '../test/e2e/harness/upstream.ts';
import { httpGet, waitFor } from '../test/e2e/harness/wait.ts';
import { isRecord, parseJson, stringMember } from './answer.ts';
import { DemoFiles } from './files.ts';
import { messageOf, type Parts, SetupError } from './parts.ts';
import { ProofgateCli, proofgateChild } from './proofgate-cli.ts';
import { authSite, bundleYaml, type Caller, callers, profileYaml } from './site.ts';

export interface World {
  readonly files: DemoFiles;
  readonly cli: ProofgateCli;
  readonly upstream: Upstream;
  readonly envoy: RunningEnvoy;
  /** Where callers send their requests, and what they sign for. */
  readonly origin: string;
  readonly verifier: Service;
  readonly verifierVersion: string;
  /** `http://HOST:PORT` of /readyz and /metrics. */
  readonly adminUrl: string;
  readonly freshener: Child;
  /** Publishes a bundle in which this key is revoked, and returns when the verifier has it. */
  revoke(caller: Caller): Promise<void>;
}

const freshenEvery = '3s';
/** Longest path of a socket file on Linux is 107 bytes, on macOS 103. */
const maxSocketPathBytes = 103;

/** @throws SetupError */
export async function startWorld(parts: Parts): Promise<World> {
  const files = await makeFolder(parts);
  const cli = await parts.start({
    name: 'proofgate',
    start: async () => new ProofgateCli(),
    stop: (started) => started.stop(),
  });
  const [{ upstream, envoy }, publicKeys] = await Promise.all([
    startGateway(parts, files),
    step('keys', () => makeKeys(cli, files)),
  ]);
  const origin = `http://${envoy.host}:${envoy.port}`;
  const publisher = new Publisher({ cli, files, origin, publicKeys });
  await step('bundle', () => publisher.publishFirst());
  const [sidecar, freshener] = await Promise.all([startSidecar(parts, files), startFreshener(parts, files)]);
  const { adminUrl } = sidecar;
  const revoke = async (caller: Caller) => waitForRevision(adminUrl, await publisher.publishRevoked(caller));
  return { files, cli, upstream, envoy, origin, ...sidecar, freshener, revoke };
}

async function makeFolder(parts: Parts): Promise<DemoFiles> {
  const directory = await parts.start({
    name: 'temporary folder',
    advice: `is ${tmpdir()} writable? TMPDIR names another place`,
    start: () => mkdtemp(join(tmpdir(), 'proofgate-demo-')),
    stop: (path) => rm(path, { recursive: true, force: true, maxRetries: 10, retryDelay: 50 }),
  });
  const files = new DemoFiles(directory);
  if (Buffer.byteLength(files.socket) > maxSocketPathBytes) {
    throw new SetupError('temporary folder', `${directory} is too long`, 'set TMPDIR to a shorter path');
  }
  await mkdir(files.state);
  return files;
}

async function startGateway(parts: Parts, files: DemoFiles) {
  const upstream = await parts.start({
    name: 'upstream',
    advice: 'can this machine listen on 127.0.0.1?',
    start: () => startUpstream(),
    stop: (started) => started.stop(),
  });
  const version = envoyVersions[envoyVersions.length - 1] ?? '';
  const envoy = await parts.start({
    name: `Envoy ${version}`,
    start: () =>
      startEnvoy(version, {
        verifier: { kind: 'unix', path: files.socket },
        upstream: { host: upstream.host, port: upstream.port },
      }),
    stop: (started) => started.stop(),
  });
  return { upstream, envoy };
}

/** @returns public keys by the callers' names */
async function makeKeys(cli: ProofgateCli, files: DemoFiles): Promise<ReadonlyMap<string, unknown>> {
  const keygen = (out: string, publicOut: string) =>
    cli.runForJson(['keygen', '--out', out, '--public-out', publicOut]);
  await Promise.all([
    keygen(files.signerKey, files.signerPublicKey),
    ...Object.values(callers).map((caller) => keygen(files.key(caller), files.publicKey(caller))),
  ]);
  const entries = Object.values(callers).map(async (caller) => {
    const { kty, crv, x } = JSON.parse(await readFile(files.publicKey(caller), 'utf8'));
    return [caller.name, { kty, crv, x }] as const;
  });
  return new Map(await Promise.all(entries));
}

interface PublisherInputs {
  readonly cli: ProofgateCli;
  readonly files: DemoFiles;
  readonly origin: string;
  readonly publicKeys: ReadonlyMap<string, unknown>;
}

/** Writes `bundle.yaml`, and signs it as a person would. */
class Publisher {
  readonly #inputs: PublisherInputs;
  readonly #startedAtMs = Date.now();

  constructor(inputs: PublisherInputs) {
    this.#inputs = inputs;
  }

  async publishFirst(): Promise<void> {
    const { files, origin } = this.#inputs;
    const profiles = Object.values(callers).map((caller) =>
      writeFile(files.profile(caller), profileYaml(caller, origin)),
    );
    await Promise.all(profiles);
    await this.#publish([], []);
  }

  /** @returns the new revision */
  publishRevoked(caller: Caller): Promise<number> {
    return this.#publish([caller], ['--previous', this.#inputs.files.bundle]);
  }

  async #publish(revoked: readonly Caller[], more: readonly string[]): Promise<number> {
    const { cli, files, origin, publicKeys } = this.#inputs;
    const yaml = bundleYaml({ origin, publicKeys, revoked, startedAtMs: this.#startedAtMs });
    await writeFile(files.bundleYaml, yaml);
    const args = ['bundle', 'sign', files.bundleYaml, '--key', files.signerKey, '--out', files.bundle];
    const made = await cli.runForJson([...args, ...more]);
    if (!isRecord(made) || typeof made.revision !== 'number') throw new Error('bundle sign told no revision');
    return made.revision;
  }
}

async function startSidecar(parts: Parts, files: DemoFiles) {
  const verifier = await parts.start({
    name: 'sidecar (proofgate verifier)',
    start: () =>
      startService({
        ...proofgateChild([
          ...['verifier', '--auth-site', authSite, '--state-dir', files.state],
          ...['--bundle', files.bundle, '--bundle-key', files.signerPublicKey],
          ...['--listen', `unix:${files.socket}`, '--admin-listen', '127.0.0.1:0'],
          ...['--replay', 'memory', '--audit-file', files.audit],
        ]),
        readyUrl: (lines) => {
          const address = listeningMember(lines, 'admin_listen');
          return address && `http://${address}/readyz`;
        },
      }),
    stop: (started) => started.stop(),
  });
  const adminUrl = `http://${listeningMember(verifier.stderrLines, 'admin_listen')}`;
  const verifierVersion = listeningMember(verifier.stderrLines, 'version') ?? '';
  return { verifier, verifierVersion, adminUrl };
}

/** A member of the log line with which the verifier says where it listens. */
function listeningMember(lines: readonly string[], name: string): string | undefined {
  const found = lines.map(parseJson).find((line) => isRecord(line) && line.msg === 'listening');
  return stringMember(found, name);
}

function startFreshener(parts: Parts, files: DemoFiles): Promise<Child> {
  const args = ['bundle', 'freshen', files.bundle, '--key', files.signerKey, '--every', freshenEvery];
  return parts.start({
    name: 'proofgate bundle freshen',
    start: async () => {
      const child = startChild(proofgateChild(args));
      await child.waitForLine(/is the latest as of/).catch(async (error: unknown) => {
        await child.stop();
        throw error;
      });
      return child;
    },
    stop: (started) => started.stop(),
  });
}

async function waitForRevision(adminUrl: string, revision: number): Promise<void> {
  await waitFor(`the sidecar to have bundle revision ${revision}`, 10_000, async () => {
    const { text } = await httpGet(`${adminUrl}/metrics`);
    const loaded = Number(/^proofgate_bundle_revision (\d+)$/m.exec(text)?.[1]);
    return loaded >= revision ? true : undefined;
  });
}

async function step<T>(name: string, run: () => Promise<T>): Promise<T> {
  try {
    return await run();
  } catch (error) {
    throw new SetupError(name, messageOf(error), '');
  }
}
