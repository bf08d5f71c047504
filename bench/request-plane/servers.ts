/** The processes under load: the verifier as it ships, and the floors. */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtemp, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { type Service, startProofgate } from '../../test/support/harness/sidecar.ts';
import type { FloorJob } from './floors.ts';
import type { GrpcTarget } from './load.ts';
import { AUTH_SITE, type BenchSite } from './site.ts';
import type { Workspace } from './workspace.ts';

export interface RunningServer extends GrpcTarget {
  stop(): Promise<void>;
}

export interface VerifierOptions {
  readonly site: Pick<BenchSite, 'bundleKeyFile'>;
  /** A directory with a bundle, or flags that say where it comes from. */
  readonly source: readonly string[];
  /** `memory` or a Redis URL. */
  readonly replay: string;
  /** For state and audit. */
  readonly workDirectory: string;
  readonly more?: readonly string[];
}

export interface RunningVerifier extends RunningServer {
  /** From the start of the process until `/readyz` says so. */
  readonly readyAfterMs: number;
  readonly adminUrl: string;
}

/** With metrics, and audit to a file. */
export async function startVerifier(options: VerifierOptions): Promise<RunningVerifier> {
  const { more = [], replay, site, source, workDirectory } = options;
  const own = await mkdtemp(join(workDirectory, 'verifier-'));
  const startMs = performance.now();
  const service = await startProofgate(
    [
      ...['verifier', '--auth-site', AUTH_SITE, '--state-dir', own, ...source],
      ...['--bundle-key', site.bundleKeyFile, '--listen', '127.0.0.1:0', '--admin-listen', '127.0.0.1:0'],
      ...['--replay', replay, ...(replay === 'memory' ? [] : ['--redis-timeout', '5s'])],
      ...['--audit-file', join(own, 'audit.jsonl'), ...more],
    ],
    {
      readyUrl: (lines) => listening(lines, 'admin_listen', (address) => `http://${address}/readyz`),
    },
  );
  const readyAfterMs = performance.now() - startMs;
  const adminUrl = listening(service.stderrLines, 'admin_listen', (address) => `http://${address}`) ?? '';
  return { ...targetOf(service), readyAfterMs, adminUrl, isGood: isAllowed, stop: () => service.stop() };
}

export interface SiteVerifierOptions {
  /** Default: `memory`. */
  readonly replay?: string;
  readonly more?: readonly string[];
}

/** On a site's own directory; ends with the workspace. */
export async function startSiteVerifier(
  workspace: Workspace,
  site: BenchSite,
  { replay = 'memory', more = [] }: SiteVerifierOptions = {},
): Promise<RunningVerifier> {
  const source = siteArguments(site);
  return workspace.started(
    await startVerifier({ site, source, replay, workDirectory: workspace.directory, more }),
  );
}

export function siteArguments(site: BenchSite): readonly string[] {
  return ['--bundle', site.directory];
}

/** Follows a Control on loopback. */
export async function controlArguments(
  url: string,
  token: string,
  directory: string,
): Promise<readonly string[]> {
  const tokenFile = join(directory, 'target-token');
  await writeFile(tokenFile, token, { mode: 0o600 });
  return ['--control-url', url, '--control-token-file', tokenFile];
}

function targetOf(service: Service): Pick<RunningServer, 'pid' | 'address'> {
  const address = listening(service.stderrLines, 'listen', (text) => text);
  if (address === undefined) throw new Error('the verifier does not say where it listens');
  return { pid: service.pid, address };
}

/** The same server, when it is to refuse: every answer holds the words, which are a reason and a detail. */
export function refusing(target: GrpcTarget, words: readonly string[]): GrpcTarget {
  return {
    ...target,
    isGood: (answer) => !isAllowed(answer) && words.every((word) => answer.includes(word)),
  };
}

/** An allowed answer contains the context headers; a denial contains none of them. */
function isAllowed(answer: Buffer): boolean {
  return answer.includes('x-proofgate-decision-id') && !answer.includes('application/problem+json');
}

export async function startFloor(job: FloorJob): Promise<RunningServer> {
  const script = new URL('floors.js', import.meta.url).pathname;
  const child = spawn(process.env.PROOFGATE_TEST_NODE ?? process.execPath, [script, JSON.stringify(job)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const { port } = await firstLine(child);
  const hasExited = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  return {
    pid: child.pid ?? 0,
    address: `127.0.0.1:${port}`,
    isGood: (answer) => answer.byteLength > (job.answer === undefined ? 1000 : 0),
    async stop() {
      child.kill();
      await hasExited;
    },
  };
}

function listening<T>(lines: readonly string[], member: string, use: (address: string) => T): T | undefined {
  const line = lines.find((candidate) => candidate.includes('"msg":"listening"'));
  return line === undefined ? undefined : use(JSON.parse(line)[member]);
}

function firstLine(child: ChildProcess): Promise<{ readonly port: number }> {
  return new Promise((resolve, reject) => {
    if (child.stdout === null) throw new Error('no output to read');
    createInterface({ input: child.stdout }).once('line', (line) => resolve(JSON.parse(line)));
    child.once('exit', () => reject(new Error('a floor ended before it had measured')));
  });
}
