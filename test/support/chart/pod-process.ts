/**
 * Runs a rendered container as a process: with its arguments, its volumes in a folder of this machine, and its ports on
 * loopback.
 */
import { chmod, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { freePort } from '../harness/free-port.ts';
import { type CommandResult, runProofgate } from '../harness/proofgate-command.ts';
import { type Service, startProofgate } from '../harness/sidecar.ts';
import type { Container } from './chart.ts';

const LISTEN = /^(--(?:admin-|http-)?listen=)(?:0\.0\.0\.0|127\.0\.0\.1|\[::\]):(\d+)$/;

export interface PodFolder {
  /** Path on this machine for a path of the container. */
  at(path: string): string;
  read(path: string): Promise<string>;
  /** Writes a file of a volume. @param mode default: 0440, as for a Secret */
  put(path: string, content: string, mode?: number): Promise<void>;
  remove(): Promise<void>;
}

/** @param folders paths of volumes that are empty at first */
export async function makePodFolder(folders: readonly string[] = []): Promise<PodFolder> {
  const root = await mkdtemp(join(tmpdir(), 'pg-pod-'));
  const at = (path: string) => join(root, path);
  for (const folder of folders) await mkdir(at(folder), { recursive: true });
  return {
    at,
    read: (path) => readFile(at(path), 'utf8'),
    put: async (path, content, mode = 0o440) => {
      await mkdir(dirname(at(path)), { recursive: true });
      await writeFile(at(path), content);
      await chmod(at(path), mode);
    },
    remove: () => rm(root, { recursive: true, force: true }),
  };
}

export interface StartedContainer {
  readonly service: Service;
  /** Address on this machine for a port of the container. */
  address(port: number): string;
}

/** @throws Error when the container's own probe does not succeed in time, or the process exits first */
export async function startContainer(
  container: Container,
  pod: PodFolder,
  env: Readonly<Record<string, string>> = {},
  ports: ReadonlyMap<number, number> = new Map(),
): Promise<StartedContainer> {
  const taken = new Map(ports);
  for (const port of portsOf(container)) {
    if (!taken.has(port)) taken.set(port, await freePort());
  }
  const address = (port: number) => `127.0.0.1:${taken.get(port)}`;
  const { path, port } = container.readinessProbe?.httpGet ?? { path: '/', port: 0 };
  const probed = container.ports?.find(({ containerPort, name }) => [name, containerPort].includes(port));
  const service = await startProofgate(argsHere(container, pod, address), {
    env,
    readyUrl: `http://${address(probed?.containerPort ?? 0)}${path}`,
  });
  return { service, address };
}

/** Ports that the pod declares, and ports that listen only inside the pod. */
function portsOf({ args, ports = [] }: Container): readonly number[] {
  const listened = args.flatMap((arg) => LISTEN.exec(arg)?.[2] ?? []);
  return [...ports.map(({ containerPort }) => containerPort), ...listened.map(Number)];
}

/** Runs to completion, as an init container or a test does. */
export function runContainer(
  container: Container,
  pod: PodFolder,
  env: Readonly<Record<string, string>> = {},
): Promise<CommandResult> {
  const args = argsHere(container, pod, (port) => `127.0.0.1:${port}`);
  return runProofgate(args, env);
}

function argsHere({ args }: Container, pod: PodFolder, address: (port: number) => string): readonly string[] {
  return args.map((arg) => {
    const [, flag = '', prefix = '', path = ''] = /^(--[a-z-]+=)(unix:|[a-z.]+=)?(\/.*)$/.exec(arg) ?? [];
    if (flag !== '') return `${flag}${prefix}${pod.at(path)}`;
    const [, listen = '', port] = LISTEN.exec(arg) ?? [];
    return listen === '' ? arg : `${listen}${address(Number(port))}`;
  });
}
