/** What every part of Control is put together from, and how its jobs' faults are told. */
import type { MasterKey } from '../../control/secrets/master-key.ts';
import type { ControlStore } from '../../control/store/port.ts';
import type { ControlMetrics } from '../../telemetry/control-metrics.ts';
import type { Logger } from '../../telemetry/logger.ts';
import { systemErrorCode } from '../errors.ts';
import type { ControlPlan } from './plan.ts';
import type { ControlReadiness } from './readiness.ts';
import type { ControlSettings } from './settings.ts';

export interface ControlPartsOptions {
  readonly plan: ControlPlan;
  readonly settings: ControlSettings;
  readonly store: ControlStore;
  readonly masterKey: MasterKey;
  readonly metrics: ControlMetrics;
  readonly logger: Logger;
  readonly nowMs: () => number;
  readonly readiness: ControlReadiness;
}

/** A round of a job failed, and is tried again. */
export function reportFailure(
  { metrics, logger }: Pick<ControlPartsOptions, 'metrics' | 'logger'>,
  job: string,
  error: unknown,
  siteId?: string,
): void {
  metrics.jobFailed(job);
  logger.warn({ event: 'job_failed', job, auth_site: siteId, fault: faultName(error) }, 'tried again');
}

/** Its class or system code; a message or a stack could hold what a request held. */
export function faultName(error: unknown): string {
  return systemErrorCode(error) ?? (error instanceof Error ? error.name : typeof error);
}
