/** From what a site holds to what its targets have: publisher and distribution. */
import type { ControlApp } from '../control/api/app.ts';
import { registerTargetSelfRoutes } from '../control/api/routes/targets-self.ts';
import { Distribution } from '../control/publishing/distribution.ts';
import { Publisher } from '../control/publishing/publisher.ts';
import { SiteSigningKeys } from '../control/publishing/signing-keys.ts';
import type { TargetDistribution } from '../control/services.ts';
import { type ControlPartsOptions, reportFailure } from './control-parts-options.ts';

export interface PublishingParts {
  readonly signingKeys: SiteSigningKeys;
  readonly distribution: TargetDistribution;
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
    register: (app) => registerTargetSelfRoutes(app, distribution),
    startJobs: () => publisher.start(),
    async close() {
      await publisher.close();
      await distribution.close();
    },
  };
}
