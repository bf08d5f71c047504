/** A real Traefik as a child process, with the shipped deploy/traefik/*.yaml and only the changes that a test needs: addresses, host. */
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Document, parseDocument } from 'yaml';
import { httpGet, waitFor } from '../wait.ts';
import { checkoutPath } from './checkout.ts';
import { type Child, describeExit, startChild } from './child.ts';
import type { ConfigPath } from './envoy-config.ts';
import { freePort } from './free-port.ts';

export interface TraefikEdit {
  readonly file: 'traefik.yaml' | 'proofgate.yaml';
  readonly path: ConfigPath;
  /** Undefined removes the path. */
  readonly value?: unknown;
}

export interface TraefikAdaptation {
  /** URL of the authorization request. */
  readonly verifierUrl: string;
  readonly upstream: { readonly host: string; readonly port: number };
  /** The blocks that the shipped files have commented out with this mark: `#|` TLS for callers, `#+` mutual TLS to the verifier. */
  readonly enabledMarks?: readonly ('#|' | '#+')[];
  /** Applied last, in order. */
  readonly edits?: readonly TraefikEdit[];
}

export interface RunningTraefik {
  readonly host: string;
  readonly port: number;
  readonly pid: number;
  /** Access log and warnings. */
  readonly lines: () => readonly string[];
  stop(): Promise<void>;
}

const host = '127.0.0.1';
const binary = checkoutPath('.cache', 'traefik', 'bin', 'traefik');

/** Why tests of Traefik cannot run here. */
export function traefikUnavailable(): string | undefined {
  return existsSync(binary) ? undefined : 'run scripts/install-traefik.sh, which needs Go';
}

/** Removes one setting of the entry point. */
export const withoutEntryPointSetting = (name: string): TraefikEdit => ({
  file: 'traefik.yaml',
  path: ['entryPoints', 'web', 'http', name],
});
export const forwardAuth: ConfigPath = ['http', 'middlewares', 'proofgate-check', 'forwardAuth'];

export async function startTraefik(adaptation: TraefikAdaptation): Promise<RunningTraefik> {
  const folder = await mkdtemp(join(tmpdir(), 'pg-traefik-'));
  let child: Child | undefined;
  const stop = async () => {
    await child?.stop();
    await rm(folder, { recursive: true, force: true });
  };
  try {
    const port = await freePort();
    const readyPort = await freePort();
    const routing = join(folder, 'proofgate.yaml');
    await writeFile(routing, await adapted('proofgate.yaml', adaptation, routingEdits(adaptation)));
    const install = join(folder, 'traefik.yaml');
    const edits = installEdits(port, readyPort, routing);
    await writeFile(install, await adapted('traefik.yaml', adaptation, edits));
    const started = startChild({ command: binary, args: [`--configFile=${install}`] });
    child = started;
    await waitUntilRouted(started, readyPort);
    const lines = () => [...started.stdoutLines, ...started.stderrLines];
    return { host, port, pid: started.pid, lines, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

type Edit = Omit<TraefikEdit, 'file'>;

function installEdits(port: number, readyPort: number, routing: string): readonly Edit[] {
  return [
    { path: ['entryPoints', 'web', 'address'], value: `${host}:${port}` },
    { path: ['entryPoints', 'ready'], value: { address: `${host}:${readyPort}` } },
    { path: ['providers', 'file', 'filename'], value: routing },
  ];
}

function routingEdits({ upstream, verifierUrl }: TraefikAdaptation): readonly Edit[] {
  return [
    {
      path: ['http', 'services', 'api', 'loadBalancer', 'servers', 0, 'url'],
      value: `http://${upstream.host}:${upstream.port}`,
    },
    { path: [...forwardAuth, 'address'], value: verifierUrl },
    {
      path: ['http', 'routers', 'ready'],
      value: { rule: 'PathPrefix(`/`)', entryPoints: ['ready'], service: 'noop@internal' },
    },
  ];
}

async function adapted(
  file: TraefikEdit['file'],
  { edits = [], enabledMarks = [] }: TraefikAdaptation,
  needed: readonly Edit[],
): Promise<string> {
  const config = parseDocument(
    enable(await readFile(checkoutPath('deploy', 'traefik', file), 'utf8'), enabledMarks),
  );
  for (const edit of [...needed, ...edits.filter((one) => one.file === file)]) apply(config, file, edit);
  return config.toString();
}

function enable(text: string, marks: readonly string[]): string {
  return marks.reduce(
    (so, mark) => so.replace(new RegExp(`^( *)${mark.replace(/[|+]/, '\\$&')} ?`, 'gm'), '$1'),
    text,
  );
}

function apply(config: Document, file: string, { path, value }: Edit): void {
  const parent = path.slice(0, -1);
  if (!config.hasIn(parent)) throw new Error(`traefik/${file} has no ${parent.join('.')}`);
  if (value === undefined) config.deleteIn(path);
  else config.setIn(path, config.createNode(value));
}

/** Traefik listens before it has loaded its routers; `noop@internal` answers 418 once it has all of them. */
async function waitUntilRouted(child: Child, readyPort: number): Promise<void> {
  await waitFor('Traefik to have its routers', async () => {
    if (child.exitStatus() !== undefined) return true;
    return (await httpGet(`http://${host}:${readyPort}/`)).status === 418;
  });
  const status = child.exitStatus();
  if (status !== undefined) {
    throw new Error(
      `Traefik ended at start: ${describeExit(status, [...child.stdoutLines, ...child.stderrLines])}`,
    );
  }
}
