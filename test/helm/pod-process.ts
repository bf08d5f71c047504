/**
 * A rendered container as a process: with the arguments that the chart gave it, its volumes in a folder of this machine and its ports
 * on loopback.
 */
import { chmod, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { type CommandResult, runProofgate } from '../e2e/harness/proofgate-command.ts';
import { type Service, startProofgate } from '../e2e/harness/sidecar.ts';
import { freePort } from '../fakes/free-port.ts';
import type { Container } from './chart.ts';

/** With the fence of a new replay store, on a machine that is busy testing. */
const READY_TIMEOUT_MS = 120_000;

const LISTEN = /^(--(?:admin-)?listen=)(?:0\.0\.0\.0|127\.0\.0\.1|\[::\]):(\d+)$/;

export interface PodFolder {
  /** Where a path of the container is. */
  at(path: string): string;
  read(path: string): Promise<string>;
  /** As a volume would have it. @param mode 0440 as of a Secret, unless it says otherwise */
  put(path: string, content: string, mode?: number): Promise<void>;
  remove(): Promise<void>;
}

/** @param folders of volumes that are empty at first */
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
  /** Where a port of the container is. */
  address(port: number): string;
}

/** @throws Error when it is not ready, by the container's own probe, or ends first */
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
    readyTimeoutMs: READY_TIMEOUT_MS,
  });
  return { service, address };
}

/** Those that the pod names, and those that are listened on for the pod alone. */
function portsOf({ args, ports = [] }: Container): readonly number[] {
  const listened = args.flatMap((arg) => LISTEN.exec(arg)?.[2] ?? []);
  return [...ports.map(({ containerPort }) => containerPort), ...listened.map(Number)];
}

/** To its end, as an init container or a test runs. */
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
    const [, flag = '', prefix = '', path = ''] = /^(--[a-z-]+=)(unix:)?(\/.*)$/.exec(arg) ?? [];
    if (flag !== '') return `${flag}${prefix}${pod.at(path)}`;
    const [, listen = '', port] = LISTEN.exec(arg) ?? [];
    return listen === '' ? arg : `${listen}${address(Number(port))}`;
  });
}
