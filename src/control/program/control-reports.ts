/** Reports events of Control's parts to the log and the metrics; declares the inputs from which the parts are built. */

import { faultName } from '../../process/program/errors.ts';
import type { Logger } from '../../process/telemetry/logger.ts';
import { ApiProblem } from '../domain/api-problem.ts';
import type { RejectedEnrollment } from '../enrollment/rejected-enrollments.ts';
import type { KeySetEvent } from '../issuers/source-keys.ts';
import type { Publication } from '../publishing/site-publisher.ts';
import type { MasterKeys } from '../secrets/master-keys.ts';
import type { ControlStore } from '../store/port.ts';
import type { RowOf } from '../store/repositories/records.ts';
import type { ControlMetrics } from './control-metrics.ts';
import type { ControlPlan } from './control-plan.ts';
import type { ControlReadiness } from './control-readiness.ts';
import type { ControlSettings } from './control-settings.ts';

export interface ControlPartsOptions {
  readonly plan: ControlPlan;
  readonly settings: ControlSettings;
  readonly store: ControlStore;
  readonly masterKeys: MasterKeys;
  readonly metrics: ControlMetrics;
  readonly logger: Logger;
  readonly nowMs: () => number;
  readonly readiness: ControlReadiness;
  /** The built console; undefined: Control serves none. */
  readonly consoleDirectory: string | undefined;
}

type Reports = Pick<ControlPartsOptions, 'metrics' | 'logger'>;

/** A run of a job failed; the job retries. */
export function reportFailure(
  { metrics, logger }: Reports,
  job: string,
  error: unknown,
  siteId?: string,
): void {
  metrics.jobFailed(job);
  logger.warn({ event: 'job_failed', job, auth_site: siteId, fault: faultName(error) }, 'tried again');
}

export function reportPublished(
  { metrics, logger }: Reports,
  { siteId, revision, kind, bytes }: Publication,
): void {
  metrics.published(kind, bytes);
  logger.debug({ event: 'published', auth_site: siteId, revision, kind, bytes }, 'published');
}

/** Outcomes are a closed set: a failure code does not contain the source ID. */
export function reportKeySet({ metrics, logger }: Reports, event: KeySetEvent): void {
  const outcome = event.kind === 'refresh_failed' ? event.code : event.kind;
  const { sourceId, revision } = event.source;
  metrics.keySetFetched(outcome);
  logger.debug({ event: 'key_set', source_id: sourceId, revision, outcome }, 'key set');
}

/** @param outcome of a closed set, as above */
export function reportOAuthKeys(
  { metrics, logger }: Reports,
  { issuer, siteId }: RowOf<'oauthIssuer'>,
  outcome: string,
): void {
  metrics.keySetFetched(outcome);
  logger.debug({ event: 'oauth_keys', auth_site: siteId, issuer, outcome }, 'key set');
}

export function reportRefused({ logger }: Reports, refused: RejectedEnrollment): void {
  const { code, policyId, siteId, subject, requestId } = refused;
  logger.info(
    {
      event: 'enrollment_refused',
      code,
      policy_id: policyId,
      auth_site: siteId,
      verified_subject: subject,
      request_id: requestId,
    },
    'enrollment refused',
  );
}

export function reportIdentityProvider({ logger }: Reports, error: unknown): void {
  const detail = error instanceof ApiProblem ? error.message : faultName(error);
  logger.warn({ event: 'identity_provider', detail }, 'OpenID Connect sign-in is unavailable');
}
