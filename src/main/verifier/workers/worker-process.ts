/** One of several verifier processes: everything but what the primary does for all of them. */

import { EXIT_CODES, toCliError } from '../../../program/errors.ts';
import type { CliContext } from '../../../program/output.ts';
import { leaveSignalsToParent } from '../../../program/stop-signal.ts';
import { runVerifier } from '../verifier-process.ts';
import type { VerifierSettings } from '../verifier-settings.ts';
import { createWorkerBundle } from './worker-bundle.ts';
import { WorkerChannel } from './worker-channel.ts';
import { WORKER_NUMBER } from './worker-messages.ts';

/** Returns when the primary has said so and everything in flight has been answered; what fails is told to the primary. */
export async function runWorker(settings: VerifierSettings, context: CliContext): Promise<void> {
  const worker = process.env[WORKER_NUMBER] ?? '';
  // Whoever signals all processes at once, as systemd does, means that the primary is to have its workers leave in order.
  // Without a primary there are no workers: Node ends them.
  leaveSignalsToParent();
  const channel = new WorkerChannel();
  try {
    await runVerifier(settings, context, {
      untilAsked: (_, run) => run(channel.departure),
      logFields: { worker: Number(worker) },
      tellStart: (logger, { authSite, listen, version }) =>
        logger.info({ version, listen, auth_site: authSite }, 'worker listening'),
      createBundle: (_, logger, metrics) => {
        metrics.registry.setDefaultLabels({ worker });
        return createWorkerBundle(settings, logger, metrics);
      },
      openAdmin: async (options, extAuthzAddress) => channel.report(options, extAuthzAddress),
    });
  } catch (error) {
    const shown = toCliError(error);
    await channel.fail(shown);
    process.exit(shown.exitCode);
  }
  // The channel would keep the process.
  process.exit(EXIT_CODES.done);
}
