/** The compiled verifier as a process of its own, with access to its audit events and its decision counters. */
import { mkdtemp, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { DecisionEvent } from '../../../src/process/telemetry/decision-event.ts';
import { describeExit, type ExitStatus } from '../harness/child.ts';
import type { VerifierAddress } from '../harness/envoy-config.ts';
import { type Service, startProofgate } from '../harness/sidecar.ts';
import { httpGet, waitFor } from '../wait.ts';
import { AuditTrail } from './audit-trail.ts';
import { AUTH_SITE, type Site } from './site.ts';

export interface VerifierOptions {
  readonly bundleDirectory: string;
  /** Default `verifier`. */
  readonly program?: 'verifier' | 'proxy';
  /** `memory` or a Redis URL; it goes through the environment, where a password is not in the process list. */
  readonly replay: string;
  /** Default `unix`, the shipped form. `tcp` picks a free port; or a given port of loopback. */
  readonly listen?: 'unix' | 'tcp' | { readonly port: number };
  /** Default a file with `--audit required`, so that an answer's event is there when the answer is. */
  readonly audit?: 'required_file' | 'best_effort_stdout' | 'full_disk';
  /** Another file than {@link audit} would have. */
  readonly auditFile?: string;
  /** Which probe must answer 200 before the tests begin. Default `readyz`. */
  readonly awaited?: 'readyz' | 'livez';
  readonly flags?: readonly string[];
  /** Further environment variables. */
  readonly env?: Readonly<Record<string, string>>;
  /** Listens on the address of this earlier process. */
  readonly successorOf?: VerifierProcess;
}

export interface VerifierProcess {
  readonly pid: number;
  readonly address: VerifierAddress;
  readonly exited: Promise<ExitStatus>;
  /** Decisions so far, by {@link decisionKey}. */
  decisions(): Promise<ReadonlyMap<string, number>>;
  /** How many requests have passed steps 1 to 5, or failed one of them: they are answered, or wait for the replay store. */
  examined(): Promise<number>;
  auditEvents(): Promise<readonly DecisionEvent[]>;
  auditEvent(decisionId: string): Promise<DecisionEvent>;
  /** Address of `/livez`. */
  readonly livezUrl: string;
  /** Status and text of a probe. */
  probe(path: '/livez' | '/readyz' | '/metrics'): Promise<{ readonly status: number; readonly text: string }>;
  signal(signal: NodeJS.Signals): void;
  /** All of its output, by destination. */
  outputs(): Promise<ReadonlyMap<string, string>>;
  /** SIGTERM, then expects exit 0, unless the process ended earlier. */
  stop(): Promise<void>;
}

export function decisionKey(outcome: string, reason = '', detail = '', routeId = ''): string {
  return `${outcome} ${reason} ${detail} ${routeId}`;
}

export async function startVerifier(
  site: Pick<Site, 'directory' | 'bundleKeyFile'>,
  options: VerifierOptions,
): Promise<VerifierProcess> {
  const folder = await mkdtemp(join(site.directory, 'verifier-'));
  const listen = listenAddress(folder, options);
  const auditFile = options.auditFile ?? AUDIT_FILE[options.audit ?? 'required_file'](folder);
  const service = await startProofgate(
    [
      ...[
        options.program ?? 'verifier',
        '--auth-site',
        AUTH_SITE,
        '--state-dir',
        folder,
        '--log-level',
        'trace',
      ],
      ...['--bundle', options.bundleDirectory, '--bundle-key', site.bundleKeyFile],
      ...['--listen', listen, '--admin-listen', '127.0.0.1:0', '--audit-file', auditFile],
      ...['--audit', options.audit === 'best_effort_stdout' ? 'best-effort' : 'required'],
      ...(options.flags ?? []),
    ],
    {
      env: { ...options.env, PROOFGATE_REPLAY: options.replay },
      readyUrl: (lines) => {
        const admin = listening(lines)?.admin_listen;
        return admin === undefined ? undefined : `http://${admin}/${options.awaited ?? 'readyz'}`;
      },
    },
  );
  return verifierProcess(service, auditFile);
}

const AUDIT_FILE: {
  readonly [A in NonNullable<VerifierOptions['audit']>]: (folder: string) => string;
} = {
  required_file: (folder) => join(folder, 'audit.jsonl'),
  best_effort_stdout: () => '-',
  full_disk: () => '/dev/full',
};

function listenAddress(folder: string, { listen, successorOf }: VerifierOptions): string {
  if (successorOf !== undefined) {
    const { address } = successorOf;
    return address.kind === 'unix' ? `unix:${address.path}` : `${address.host}:${address.port}`;
  }
  if (typeof listen === 'object') return `127.0.0.1:${listen.port}`;
  return listen === 'tcp' ? '127.0.0.1:0' : `unix:${join(folder, 'v.sock')}`;
}

interface ListeningLine {
  readonly listen: string;
  readonly admin_listen: string;
}

function listening(lines: readonly string[]): ListeningLine | undefined {
  const line = lines.find((candidate) => candidate.includes('"msg":"listening"'));
  return line === undefined ? undefined : JSON.parse(line);
}

function verifierProcess(service: Service, auditFile: string): VerifierProcess {
  const { admin_listen = '', listen = '' } = listening(service.stderrLines) ?? {};
  const probe = (path: string) => httpGet(`http://${admin_listen}${path}`);
  const auditText = () =>
    auditFile.endsWith('.jsonl') ? readFile(auditFile, 'utf8') : service.stdoutLines.join('\n');
  const trail = new AuditTrail(auditFile);
  const auditEvents = async (): Promise<readonly DecisionEvent[]> =>
    auditFile.endsWith('.jsonl') ? trail.decisions() : decisionsIn(service.stdoutLines);
  let lastMetrics = '';
  const metrics = async () => {
    if (service.exitStatus() === undefined) lastMetrics = (await probe('/metrics')).text;
    return lastMetrics;
  };
  return {
    pid: service.pid,
    address: parseAddress(listen),
    exited: service.exited,
    decisions: async () => parseDecisions(await metrics()),
    examined: async () => Number(EXAMINED_LINE.exec(await metrics())?.[1] ?? 0),
    auditEvents,
    auditEvent: (decisionId) =>
      waitFor(`the audit event of ${decisionId}`, async () =>
        (await auditEvents()).find(({ decision_id }) => decision_id === decisionId),
      ),
    livezUrl: `http://${admin_listen}/livez`,
    probe,
    signal: service.signal,
    outputs: async () =>
      new Map([
        ['the log', service.stderrLines.join('\n')],
        ['standard output', service.stdoutLines.join('\n')],
        ['the audit file', await auditText()],
        ['the metrics', await metrics()],
      ]),
    stop: () => stopOrderly(service),
  };
}

async function stopOrderly(service: Service): Promise<void> {
  const ended = service.exitStatus();
  if (ended === undefined) return service.stop();
  if (ended.code !== 0 && ended.signal !== 'SIGKILL')
    throw new Error(`the verifier ended early: ${describeExit(ended, service.stderrLines)}`);
}

function parseAddress(listen: string): VerifierAddress {
  if (listen.startsWith('unix:')) return { kind: 'unix', path: listen.slice('unix:'.length) };
  const [host = '', port] = listen.split(':');
  return { kind: 'tcp', host, port: Number(port) };
}

function decisionsIn(lines: readonly string[]): readonly DecisionEvent[] {
  // The last line may be incomplete.
  const complete = lines.filter((line) => line.endsWith('}'));
  const events = complete.map((line): DecisionEvent => JSON.parse(line));
  return events.filter(({ event }) => event === 'proofgate.decision');
}

const DECISIONS_LINE =
  /^proofgate_decisions_total\{outcome="([^"]*)",reason="([^"]*)",detail="([^"]*)",route_id="([^"]*)"\} (\d+)$/gm;

const EXAMINED_LINE = /^proofgate_step_duration_seconds_count\{step="pipeline"\} (\d+)$/m;

function parseDecisions(text: string): ReadonlyMap<string, number> {
  return new Map(
    [...text.matchAll(DECISIONS_LINE)].map(([, outcome = '', reason, detail, routeId, count]) => [
      decisionKey(outcome, reason, detail, routeId),
      Number(count),
    ]),
  );
}
