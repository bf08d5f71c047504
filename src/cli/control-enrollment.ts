/** From a workload's token to a derived key: issuers, sources, policies, enrollments, keys. */
import type { ControlApp } from '../control/api/app.ts';
import { registerDerivedKeyRoutes } from '../control/api/routes/derived-keys.ts';
import { registerEnrollmentPolicyRoutes } from '../control/api/routes/enrollment-policies.ts';
import { registerEnrollmentRoutes } from '../control/api/routes/enrollments.ts';
import { registerSourceRoutes } from '../control/api/routes/sources.ts';
import { Challenges } from '../control/enrollment/challenges.ts';
import { EnrollmentDecisions } from '../control/enrollment/decisions.ts';
import { EnrollCommands } from '../control/enrollment/enroll-command.ts';
import { EnrollingKeys } from '../control/enrollment/enrolling-keys.ts';
import { startEnrollmentJobs } from '../control/enrollment/enrollment-jobs.ts';
import { DerivedKeys } from '../control/enrollment/keys.ts';
import { EnrollmentPolicies } from '../control/enrollment/policies.ts';
import { Submissions } from '../control/enrollment/submissions.ts';
import type { ProfilesOfClient, ReadinessOfKey } from '../control/enrollment/workload-enrollments.ts';
import { KeySetCache } from '../control/issuers/key-set-cache.ts';
import type { KeySetEvent } from '../control/issuers/key-set-records.ts';
import { IssuerFetcher } from '../control/issuers/outbound-fetch.ts';
import { validateSource } from '../control/issuers/validate-source.ts';
import { StoredKeySets } from '../control/sources/key-set-records.ts';
import { startSourceJobs } from '../control/sources/source-jobs.ts';
import { SourceService } from '../control/sources/source-service.ts';
import { MeteredEnrollments } from './control-metered-enrollments.ts';
import { type ControlPartsOptions, reportFailure } from './control-parts-options.ts';

/** What enrollment asks of publishing. */
export interface EnrollmentNeeds {
  readonly profilesOfClient: ProfilesOfClient;
  readonly readinessOfKey: ReadinessOfKey;
}

export interface EnrollmentParts {
  register(app: ControlApp): void;
  /** @returns how to stop */
  startJobs(): () => Promise<void>;
}

export function openEnrollmentParts(options: ControlPartsOptions, needs: EnrollmentNeeds): EnrollmentParts {
  const { store, nowMs, settings } = options;
  const { sources, cache } = openSources(options);
  const decisions = new EnrollmentDecisions(store, nowMs);
  const workloads = openWorkloads(options, cache, needs);
  return {
    register(app) {
      registerSourceRoutes(app, sources);
      registerPolicyRoutes(app, options);
      registerEnrollmentRoutes(app, { workloads, decisions });
      registerDerivedKeyRoutes(app, new DerivedKeys(store, nowMs));
    },
    startJobs() {
      const report = (job: string) => (error: unknown) => reportFailure(options, job, error);
      const stops = [
        startSourceJobs({ store, activation: sources.activation, cache, report: report('sources') }),
        startEnrollmentJobs({
          store,
          nowMs,
          decisions,
          retention: { auditMs: settings.auditRetentionMs, endedKeysMs: settings.keyRetentionMs },
          report: report('enrollment'),
        }),
      ];
      return async () => {
        await Promise.all(stops.map((stop) => stop()));
      };
    },
  };
}

function openSources(options: ControlPartsOptions) {
  const { plan, store, nowMs, metrics, logger } = options;
  const fetcher = new IssuerFetcher({
    openedNetworks: plan.issuerNetworks,
    ...(plan.issuerCa === undefined ? {} : { privateCa: plan.issuerCa }),
  });
  const cache = new KeySetCache({
    fetcher,
    records: new StoredKeySets(store),
    nowMs,
    report(event) {
      const outcome = outcomeOf(event);
      metrics.keySetFetched(outcome);
      const { sourceId, revision } = event.source;
      logger.debug({ event: 'key_set', source_id: sourceId, revision, outcome }, 'key set');
    },
  });
  const sources = new SourceService({
    store,
    nowMs,
    validate: (coordinates) => validateSource(coordinates, fetcher, nowMs),
    report: (error) => reportFailure(options, 'source_activation', error),
  });
  return { sources, cache };
}

/** Of a closed set: a failure's code names no source. */
function outcomeOf(event: KeySetEvent): string {
  return event.kind === 'refresh_failed' ? event.code : event.kind;
}

function openWorkloads(
  { plan, store, nowMs, masterKey, metrics }: ControlPartsOptions,
  keySets: KeySetCache,
  needs: EnrollmentNeeds,
): MeteredEnrollments {
  const keys = new EnrollingKeys();
  const challenges = new Challenges({ store, nowMs, masterKey, keys });
  const { publicUrls } = plan;
  const submissions = new Submissions({ store, nowMs, challenges, keys, keySets, publicUrls });
  const count = (outcome: string) => metrics.enrollmentSubmitted(outcome);
  return new MeteredEnrollments({ store, nowMs, challenges, submissions, keys, ...needs }, count);
}

function registerPolicyRoutes(app: ControlApp, { plan, settings, store, nowMs }: ControlPartsOptions): void {
  registerEnrollmentPolicyRoutes(app, {
    policies: new EnrollmentPolicies(store, nowMs),
    commands: new EnrollCommands({
      store,
      controlUrl: plan.publicUrls[0],
      image: settings.workloadImage,
    }),
  });
}
