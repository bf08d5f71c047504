/** `proofgate verifier --workers N` as it ships, on a real Redis, with clients on separate connections. */
import { existsSync, readFileSync } from 'node:fs';
import { mkdtemp } from 'node:fs/promises';
import { join } from 'node:path';
import { type CheckClient, openCheckClient, outcomeOfResponse } from '../../support/harness/check-client.ts';
import { startChild } from '../../support/harness/child.ts';
import { proofgateCommand } from '../../support/harness/program.ts';
import { type Service, startProofgate } from '../../support/harness/sidecar.ts';
import { httpGet, waitFor } from '../../support/wait.ts';
import { AUTH_SITE, type Proof, type ProofSource } from '../replay/proof-source.ts';

export interface WorkersOptions {
  readonly redisUrl: string;
  readonly workers: number;
  readonly flags?: readonly string[];
  /** Default: a file in the folder of this start. `-` is standard output. */
  readonly auditFile?: string;
  /** Default: a free port. */
  readonly listen?: string;
  /** Whether signals can be sent to all processes at once. Default false. */
  readonly ownProcessGroup?: boolean;
  /** Added to the environment of the primary, and so of its workers. */
  readonly env?: Readonly<Record<string, string>>;
}

export interface RunningVerifier {
  readonly service: Service;
  readonly listen: string;
  connect(): CheckClient;
  get(path: '/readyz' | '/metrics'): ReturnType<typeof httpGet>;
  /** Waits until `/readyz` answers with this status. */
  becomes(status: number): ReturnType<typeof httpGet>;
  /** Process IDs of the workers that run now. */
  workerPids(): readonly number[];
}

export interface RunningWorkers extends RunningVerifier {
  readonly folder: string;
  readonly auditFile: string;
}

export function verifierArgs(source: ProofSource, folder: string): readonly string[] {
  return [
    ...['verifier', '--auth-site', AUTH_SITE, '--state-dir', folder, '--redis-timeout', '2s'],
    ...['--bundle', source.bundleDirectory, '--bundle-key', source.bundleKeyFile],
  ];
}

export async function startWorkers(source: ProofSource, options: WorkersOptions): Promise<RunningWorkers> {
  const folder = await mkdtemp(join(source.directory, 'workers-'));
  const auditFile = options.auditFile ?? join(folder, 'audit.jsonl');
  const args = [
    ...verifierArgs(source, folder),
    ...['--workers', String(options.workers), '--listen', options.listen ?? '127.0.0.1:0'],
    ...['--audit-file', auditFile, ...(options.flags ?? [])],
  ];
  return { folder, auditFile, ...(await startVerifier(args, options)) };
}

/** Starts a verifier on a free admin port, and returns when it is ready. */
export async function startVerifier(
  args: readonly string[],
  { env, ownProcessGroup = false, redisUrl }: Pick<WorkersOptions, 'env' | 'ownProcessGroup' | 'redisUrl'>,
): Promise<RunningVerifier> {
  const service = await startProofgate([...args, '--admin-listen', '127.0.0.1:0'], {
    env: { PROOFGATE_REPLAY: redisUrl, ...env },
    ownProcessGroup,
    readyUrl: (lines) => {
      const admin = listening(lines)?.admin_listen;
      return admin === undefined ? undefined : `http://${admin}/readyz`;
    },
  });
  const { admin_listen = '', listen = '' } = listening(service.stderrLines) ?? {};
  const get = (path: '/readyz' | '/metrics') => httpGet(`http://${admin_listen}${path}`);
  return {
    service,
    listen,
    connect: () => openCheckClient(listen),
    get,
    becomes: (status) =>
      waitFor(`/readyz to be ${status}`, async () => {
        const answer = await get('/readyz');
        return answer.status === status ? answer : undefined;
      }),
    workerPids: () => childrenOf(service.pid),
  };
}

/** Runs until it ends by itself. */
export async function runToEnd(args: readonly string[], redisUrl: string) {
  const child = startChild({
    ...proofgateCommand(args),
    env: { PROOFGATE_REPLAY: redisUrl },
  });
  const status = await child.exited;
  return { ...status, stderr: child.stderrLines };
}

interface Listening {
  readonly listen: string;
  readonly admin_listen: string;
}

function listening(lines: readonly string[]): Listening | undefined {
  const line = lines.find((candidate) => candidate.includes('"msg":"listening"'));
  return line === undefined ? undefined : JSON.parse(line);
}

function childrenOf(pid: number): readonly number[] {
  const file = `/proc/${pid}/task/${pid}/children`;
  if (!existsSync(file)) return [];
  return readFileSync(file, 'utf8').split(' ').filter(Boolean).map(Number);
}

export function isAlive(pid: number): boolean {
  return existsSync(`/proc/${pid}`) && !/^State:\tZ/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
}

/** The decision, or `no answer` where the RPC failed: Envoy then refuses. */
export async function outcomeOf(client: CheckClient, proof: Proof): Promise<string> {
  return client.checkBytes(proof.checkRequest).then(outcomeOfResponse, () => 'no answer');
}

/** Decisions by worker, as `/metrics` counts them. */
export function decisionsByWorker(metrics: string): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const [, labels = '', count] of metrics.matchAll(/^proofgate_decisions_total\{([^}]*)\} (\d+)$/gm)) {
    const worker = /worker="([^"]*)"/.exec(labels)?.[1] ?? '';
    counts.set(worker, (counts.get(worker) ?? 0) + Number(count));
  }
  return counts;
}
