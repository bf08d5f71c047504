/** Runs a worker: a verifier without what the primary does for all workers. */

import { EXIT_CODES, toCliError } from '../../../program/errors.ts';
import type { CliContext } from '../../../program/output.ts';
import { leaveSignalsToParent } from '../../../program/stop-signal.ts';
import { runVerifier } from '../verifier-process.ts';
import type { VerifierSettings } from '../verifier-settings.ts';
import { createWorkerBundle } from './worker-bundle.ts';
import { WorkerChannel } from './worker-channel.ts';
import { WORKER_NUMBER } from './worker-messages.ts';

/** Runs until the primary closes it and Checks in flight are answered, then exits. Reports a failure to the primary. */
export async function runWorker(settings: VerifierSettings, context: CliContext): Promise<void> {
  const worker = process.env[WORKER_NUMBER] ?? '';
  // systemd signals all processes of a unit at once. The worker ignores the signal: the primary shuts workers down in order.
  // When the primary dies, Node ends its workers.
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
  // The open channel would keep the process alive.
  process.exit(EXIT_CODES.done);
}
