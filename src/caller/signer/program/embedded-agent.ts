/** Runs the agent in the signer's process, so that one container enrolls and signs. */
import { faultName } from '../../../process/program/errors.ts';
import type { Environment } from '../../../process/program/output.ts';
import type { Logger } from '../../../process/telemetry/logger.ts';
import { keepKeyFile } from '../../agent/agent-process.ts';
import type { AgentProbes } from '../../agent/agent-run.ts';
import type { AgentValues } from '../../agent/agent-settings.ts';

export interface EmbeddedAgent extends AgentProbes {
  stop(): Promise<void>;
}

/** Resolves when settings and files are valid. @throws as `keepKeyFile` */
export function startEmbeddedAgent(
  settings: AgentValues,
  env: Environment,
  logger: Logger,
): Promise<EmbeddedAgent> {
  const controller = new AbortController();
  return new Promise((resolve, reject) => {
    let hasStarted = false;
    const ended = keepKeyFile(settings, {
      ...{ env, logger, stop: controller.signal },
      serve: async (probes) => {
        const stop = async () => {
          controller.abort();
          await ended;
        };
        hasStarted = true;
        resolve({ ...probes, stop });
        return async () => undefined;
      },
    }).catch((error: unknown) => {
      if (!hasStarted) return reject(error);
      // The installed key stays in use until it expires.
      logger.error({ event: 'renewal_stopped', fault: faultName(error) }, 'the key is not renewed any more');
    });
  });
}
