/** The compiled verifier as a process of its own, on any replay store, under any clock. */
import { mkdtemp } from 'node:fs/promises';
import { join } from 'node:path';
import { startProofgate } from '../../support/harness/sidecar.ts';
import { httpGet, type ProbeAnswer } from '../../support/wait.ts';
import { AUTH_SITE, type ProofSource } from './proof-source.ts';
import { grpcTarget, type Target } from './targets.ts';

export interface ReplayVerifierOptions {
  readonly name: string;
  /** `memory` or a Redis URL. */
  readonly replay: string;
  /** Default `400ms`, for machines that are busy testing. */
  readonly redisTimeout?: string;
  readonly flags?: readonly string[];
  /** Added to this process's environment. */
  readonly env?: Readonly<Record<string, string>>;
  /** Which probe must answer 200 before the campaign begins. Default `readyz`. */
  readonly awaited?: 'readyz' | 'livez';
}

export interface ReplayVerifier {
  readonly pid: number;
  readonly host: string;
  readonly port: number;
  readonly target: Target;
  probe(path: '/readyz' | '/metrics'): Promise<ProbeAnswer>;
  stop(): Promise<void>;
}

export async function startReplayVerifier(
  source: ProofSource,
  { name, replay, redisTimeout = '400ms', flags = [], env = {}, awaited = 'readyz' }: ReplayVerifierOptions,
): Promise<ReplayVerifier> {
  const folder = await mkdtemp(join(source.directory, `${name}-`));
  const service = await startProofgate(
    [
      ...['verifier', '--auth-site', AUTH_SITE, '--state-dir', folder],
      ...['--bundle', source.bundleDirectory, '--bundle-key', source.bundleKeyFile],
      ...['--listen', '127.0.0.1:0', '--admin-listen', '127.0.0.1:0'],
      ...['--audit-file', join(folder, 'audit.jsonl')],
      ...(replay === 'memory' ? [] : ['--redis-timeout', redisTimeout]),
      ...flags,
    ],
    {
      env: { ...env, PROOFGATE_REPLAY: replay },
      readyUrl: (lines) => {
        const admin = listening(lines)?.admin_listen;
        return admin === undefined ? undefined : `http://${admin}/${awaited}`;
      },
    },
  );
  const { listen = '', admin_listen } = listening(service.stderrLines) ?? {};
  const [host = '', port] = listen.split(':');
  const target = grpcTarget(name, listen);
  return {
    pid: service.pid,
    host,
    port: Number(port),
    target,
    probe: (path) => httpGet(`http://${admin_listen}${path}`),
    stop: async () => {
      target.close();
      await service.stop();
    },
  };
}

interface ListeningLine {
  readonly listen: string;
  readonly admin_listen: string;
}

function listening(lines: readonly string[]): ListeningLine | undefined {
  const line = lines.find((candidate) => candidate.includes('"msg":"listening"'));
  return line === undefined ? undefined : JSON.parse(line);
}
