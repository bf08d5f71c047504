import type { Logger } from '../../process/telemetry/logger.ts';

/**
 * Reopens the audit file on SIGHUP. The handler stays until the process ends, because the signal would end a process without
 * one. A signal during startup reopens the file once it is open; a signal during shutdown does nothing.
 */
export function reopenOnHangUp(logger: Pick<Logger, 'info'>) {
  let reopen: (() => void) | undefined;
  let isDue = false;
  const handle = () => {
    isDue = reopen === undefined;
    if (reopen === undefined) return;
    logger.info('audit file reopened by signal');
    reopen();
  };
  process.on('SIGHUP', handle);
  return {
    start(reopenAudit: () => void): void {
      reopen = reopenAudit;
      if (isDue) handle();
    },
    stop(): void {
      reopen = undefined;
    },
  };
}
