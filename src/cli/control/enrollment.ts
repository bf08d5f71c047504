/** From a workload's token to a derived key, with what Control was told about issuers and retention. */
import {
  createEnrollmentPlane,
  type EnrollmentPlane,
  type EnrollmentPlaneOptions,
} from '../../control/enrollment/enrollment-plane.ts';
import type { RefusedEnrollment } from '../../control/enrollment/refused-enrollments.ts';
import type { KeySetEvent } from '../../control/issuers/key-set-records.ts';
import { IssuerFetcher } from '../../control/issuers/outbound-fetch.ts';
import { type ControlPartsOptions, reportFailure } from './parts-options.ts';

/** What enrollment asks of publishing. */
export type EnrollmentNeeds = Pick<EnrollmentPlaneOptions, 'profilesOfClient' | 'readinessOfKey'>;

export function openEnrollmentPlane(options: ControlPartsOptions, needs: EnrollmentNeeds): EnrollmentPlane {
  const { plan, settings, store, nowMs, masterKey } = options;
  const { issuerNetworks: openedNetworks, issuerCa, publicUrls } = plan;
  return createEnrollmentPlane({
    store,
    nowMs,
    masterKey,
    fetcher: new IssuerFetcher({
      openedNetworks,
      ...(issuerCa === undefined ? {} : { privateCa: issuerCa }),
    }),
    publicUrls,
    ...needs,
    report: (error) => reportFailure(options, 'enrollment', error),
    reportKeySet: (event) => reportKeySet(options, event),
    reportRefused: (refused) => reportRefused(options, refused),
    enrollImage: settings.workloadImage,
    ...(settings.workloadCaConfigmap === undefined
      ? {}
      : { enrollCaConfigMap: settings.workloadCaConfigmap }),
    retention: { auditMs: settings.auditRetentionMs, endedKeysMs: settings.keyRetentionMs },
  });
}

/** Outcomes are of a closed set: a failure's code names no source. */
function reportKeySet({ metrics, logger }: ControlPartsOptions, event: KeySetEvent): void {
  const outcome = event.kind === 'refresh_failed' ? event.code : event.kind;
  const { sourceId, revision } = event.source;
  metrics.keySetFetched(outcome);
  logger.debug({ event: 'key_set', source_id: sourceId, revision, outcome }, 'key set');
}

function reportRefused({ logger }: ControlPartsOptions, refused: RefusedEnrollment): void {
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
