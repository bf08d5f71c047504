/** The compiled verifier, restarted repeatedly over the same state. */
import { type Child, startChild } from '../../support/harness/child.ts';
import { proofgateCommand } from '../../support/harness/program.ts';
import { httpGet, waitFor } from '../../support/wait.ts';

export interface VerifierSettings {
  readonly args: readonly string[];
  /** `memory` or a Redis URL. */
  readonly replay: string;
}

export interface RunningVerifier {
  readonly child: Child;
  /** `HOST:PORT` of the gRPC service. */
  readonly address: string;
  readonly metrics: () => Promise<string>;
}

export function spawnVerifier({ args, replay }: VerifierSettings): Child {
  const fixed = ['--listen', '127.0.0.1:0', '--admin-listen', '127.0.0.1:0'];
  return startChild({
    ...proofgateCommand(['verifier', ...args, ...fixed]),
    env: { PROOFGATE_REPLAY: replay },
  });
}

/** Returns when it listens and is ready. @throws Error when it ends, or is not ready in time */
export async function startVerifier(settings: VerifierSettings): Promise<RunningVerifier> {
  const child = spawnVerifier(settings);
  const [line] = await child.waitForLine(/^.*"msg":"listening".*$/);
  const { admin_listen: admin, listen } = JSON.parse(line);
  let last = '';
  const isReady = async () => {
    const { status, text } = await httpGet(`http://${admin}/readyz`);
    last = text;
    return status === 200 ? true : undefined;
  };
  await waitFor('the verifier to be ready', isReady).catch((error: unknown) => {
    throw new Error(`${error}: ${last}`);
  });
  return { child, address: listen, metrics: async () => (await httpGet(`http://${admin}/metrics`)).text };
}
