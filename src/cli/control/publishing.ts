/** From what a site holds to what its targets have: publisher and distribution. */
import type { ControlApp } from '../../control/api/app.ts';
import type { WorkloadReadiness } from '../../control/api/contract/enrollment.ts';
import { registerRuntimeRoutes } from '../../control/api/routes/runtime.ts';
import { registerTargetSelfRoutes } from '../../control/api/routes/targets-self.ts';
import { Refusal } from '../../control/domain/refusal.ts';
import { Distribution } from '../../control/publishing/distribution.ts';
import { Publisher } from '../../control/publishing/publisher.ts';
import { keyReadiness } from '../../control/publishing/readiness.ts';
import { SiteSigningKeys } from '../../control/publishing/signing-keys.ts';
import { enrolledProfiles } from '../../control/publishing/signing-profiles.ts';
import type { TargetDistribution } from '../../control/services.ts';
import type { EnrollmentNeeds } from './enrollment.ts';
import { type ControlPartsOptions, reportFailure } from './parts-options.ts';

export interface PublishingParts {
  readonly signingKeys: SiteSigningKeys;
  readonly distribution: TargetDistribution;
  readonly forEnrollment: EnrollmentNeeds;
  register(app: ControlApp): void;
  startJobs(): void;
  /** Resolves when nothing is under way. */
  close(): Promise<void>;
}

export function openPublishingParts(options: ControlPartsOptions): PublishingParts {
  const { store, nowMs, masterKey, metrics, logger } = options;
  const signingKeys = new SiteSigningKeys(masterKey);
  const publisher = new Publisher({
    store,
    signingKeys,
    nowMs,
    onPublished({ siteId, revision, kind, bytes }) {
      metrics.published(kind, bytes);
      logger.debug({ event: 'published', auth_site: siteId, revision, kind, bytes }, 'published');
    },
    onFault: (activity, siteId, error) => reportFailure(options, `publishing_${activity}`, error, siteId),
  });
  const distribution = new Distribution({
    store,
    nowMs,
    onFault: (error) => reportFailure(options, 'distribution', error),
  });
  return {
    signingKeys,
    distribution,
    forEnrollment: {
      profilesOfClient: enrolledProfiles,
      readinessOfKey: (keyId) => readinessOfKey(options, keyId),
    },
    register(app) {
      registerTargetSelfRoutes(app, distribution);
      registerRuntimeRoutes(app, { store, nowMs });
    },
    startJobs: () => publisher.start(),
    async close() {
      await publisher.close();
      await distribution.close();
    },
  };
}

/** As its workload is told: over all attached targets. */
function readinessOfKey({ store, nowMs }: ControlPartsOptions, keyId: string): Promise<WorkloadReadiness> {
  return store.read(async (tx) => {
    const key = await tx.keys.find(keyId);
    if (key === undefined) throw new Refusal('not_found');
    const { ready, conditions } = await keyReadiness(tx, key, undefined, nowMs());
    return { ready, conditions };
  });
}
