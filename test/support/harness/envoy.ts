/**
 * A real Envoy as a child process: finds the binary, starts it on free loopback ports, waits for it, stops it and removes its
 * files.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { httpGet, remainingMs, waitFor } from '../wait.ts';
import { checkoutPath } from './checkout.ts';
import { type Child, describeExit, type ExitStatus, startChild } from './child.ts';
import { adaptShipped, type EnvoyAdaptation } from './envoy-config.ts';

/** What the suite runs against: the oldest that the shipped configuration loads in, and the newest known. */
export const envoyVersions = ['1.36.2', '1.40.0'] as const;

export interface RunningEnvoy {
  readonly version: string;
  readonly host: string;
  /** Where callers connect. */
  readonly port: number;
  readonly adminPort: number;
  readonly pid: number;
  /** The access log: one JSON object a line, flushed when a request ends or a second later. */
  readonly accessLog: readonly string[];
  /** Warnings and errors. */
  readonly stderrLines: readonly string[];
  /** Settles when the process has ended, on request or by itself. Never rejects. */
  readonly exited: Promise<ExitStatus>;
  /** A counter or gauge of the admin interface; 0 when Envoy has not made it yet. */
  stat(name: string): Promise<number>;
  stop(): Promise<void>;
}

const host = '127.0.0.1';

/**
 * The binary of one version: `PROOFGATE_ENVOY_1_36` (major and minor), else what scripts/install-envoy.sh made.
 *
 * @throws with the command that installs it
 */
function envoyBinary(version: string): string {
  const [major = '', minor = ''] = version.split('.');
  const override = process.env[`PROOFGATE_ENVOY_${major}_${minor}`];
  if (override !== undefined) return override;
  const lib = checkoutPath('.venv', `envoy-${version}`, 'lib');
  const pythons = existsSync(lib) ? readdirSync(lib).filter((name) => name.startsWith('python3')) : [];
  const binary = pythons
    .map((name) => join(lib, name, 'site-packages', 'envoy', '_bin', 'envoy'))
    .find((path) => existsSync(path));
  if (binary === undefined)
    throw new Error(`no Envoy ${version} here: run scripts/install-envoy.sh ${version}`);
  return binary;
}

/** `envoy --mode validate`; `undefined` when Envoy accepts the configuration, otherwise its error. */
export async function validateConfig(version: string, yaml: string): Promise<string | undefined> {
  const folder = await mkdtemp(join(tmpdir(), 'pg-envoy-'));
  try {
    const path = join(folder, 'envoy.yaml');
    await writeFile(path, yaml);
    const args = ['--mode', 'validate', '-c', path, '--log-level', 'warning'];
    const ended = spawnSync(envoyBinary(version), args, { encoding: 'utf8', timeout: remainingMs(20_000) });
    return ended.status === 0 ? undefined : (ended.error?.message ?? ended.stderr);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** The shipped configuration, adapted, in a running Envoy. */
export function startEnvoy(version: string, adaptation: EnvoyAdaptation): Promise<RunningEnvoy> {
  const { concurrency } = adaptation;
  return startEnvoyWith(version, adaptShipped(adaptation), {
    listener: 'ingress',
    ...(concurrency && { concurrency }),
  });
}

export interface EnvoyRun {
  /** Name of the listener that callers connect to. */
  readonly listener: string;
  /** Threads that serve. Default 1. */
  readonly concurrency?: number;
}

/** @param yaml a bootstrap whose admin interface is on a free loopback port */
export async function startEnvoyWith(version: string, yaml: string, run: EnvoyRun): Promise<RunningEnvoy> {
  const binary = envoyBinary(version);
  const folder = await mkdtemp(join(tmpdir(), 'pg-envoy-'));
  const configPath = join(folder, 'envoy.yaml');
  const adminAddressPath = join(folder, 'admin');
  let child: Child | undefined;
  const stop = async () => {
    await child?.stop();
    await rm(folder, { recursive: true, force: true });
  };
  try {
    await writeFile(configPath, yaml, { mode: 0o600 });
    child = startChild({
      command: binary,
      args: envoyArgs(configPath, adminAddressPath, run.concurrency),
    });
    const adminPort = await waitUntilLive(child, adminAddressPath);
    return {
      version,
      host,
      port: await listenerPort(adminPort, run.listener),
      adminPort,
      pid: child.pid,
      accessLog: child.stdoutLines,
      stderrLines: child.stderrLines,
      exited: child.exited,
      stat: (name) => readStat(adminPort, name),
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

function envoyArgs(configPath: string, adminAddressPath: string, concurrency = 1): readonly string[] {
  const args = `--concurrency ${concurrency} --disable-hot-restart --log-level warning --file-flush-interval-msec 50`;
  return [...args.split(' '), '-c', configPath, '--admin-address-path', adminAddressPath];
}

async function waitUntilLive(child: Child, adminAddressPath: string): Promise<number> {
  const adminPort = await waitFor('Envoy to be live', async () => {
    if (child.exitStatus() !== undefined) return 0;
    const address = await readFile(adminAddressPath, 'utf8');
    const port = Number(/:(\d+)$/.exec(address)?.[1]);
    return (await httpGet(`http://${host}:${port}/ready`)).status === 200 ? port : undefined;
  });
  const status = child.exitStatus();
  if (status !== undefined)
    throw new Error(`Envoy ended at start: ${describeExit(status, child.stderrLines)}`);
  return adminPort;
}

/** One line a listener: `ingress::127.0.0.1:40123`. */
function listenerPort(adminPort: number, name: string): Promise<number> {
  return waitFor('the listener to be bound', async () => {
    const { text } = await httpGet(`http://${host}:${adminPort}/listeners`);
    const line = text.split('\n').find((one) => one.startsWith(`${name}::`));
    const port = Number(/:(\d+)$/.exec(line ?? '')?.[1] ?? 0);
    return port > 0 ? port : undefined;
  });
}

async function readStat(adminPort: number, name: string): Promise<number> {
  const filter = encodeURIComponent(`^${name.replaceAll('.', '\\.')}$`);
  const { text } = await httpGet(`http://${host}:${adminPort}/stats?filter=${filter}`);
  return Number(/: (\d+)$/m.exec(text)?.[1] ?? 0);
}
