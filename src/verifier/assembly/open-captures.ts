/** Opens the captures of denied requests, with their log and metrics. */

import type { Logger } from '../../process/telemetry/log.ts';
import { CaptureDirectory } from '../capture/capture-directory.ts';
import { createCaptureMetrics } from '../capture/capture-metrics.ts';
import { DeniedCaptures } from '../capture/denied-captures.ts';
import type { VerifierMetrics } from '../verifier-metrics.ts';

export interface CaptureSetup {
  readonly directory: string;
  readonly keepsCredentials: boolean;
}

export function openCaptures(
  { directory, keepsCredentials }: CaptureSetup,
  realtimeStalenessSeconds: number,
  logger: Logger,
  { registry }: Pick<VerifierMetrics, 'registry'>,
): DeniedCaptures {
  const count = createCaptureMetrics(registry);
  if (keepsCredentials) {
    logger.warn({ directory }, 'denied requests are captured with their credentials');
  }
  let failing: string | undefined;
  return new DeniedCaptures(
    new CaptureDirectory(directory),
    { realtimeStalenessSeconds, keepsCredentials },
    {
      count,
      attempted(code) {
        if (code === failing) return;
        failing = code;
        if (code === undefined) logger.info('denied requests are captured again');
        else logger.error({ code }, 'denied requests cannot be captured');
      },
    },
  );
}
