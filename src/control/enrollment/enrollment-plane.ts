/**
 * Creates the services of sources and enrollment and starts their background jobs.
 * Source: docs/control.md "Trust Anchor Source", "Enrollment".
 */

import type { JsonFetcher } from '../../outbound-fetch/outbound-fetch.ts';
import { KeySetCache, type KeySetCacheOptions } from '../issuers/key-set-cache.ts';
import { validateSource } from '../issuers/validate-source.ts';
import type { MasterKey } from '../secrets/master-key.ts';
import { StoredKeySets } from '../sources/key-set-records.ts';
import { startSourceJobs } from '../sources/source-jobs.ts';
import { SourceService } from '../sources/source-service.ts';
import type { ControlStore } from '../store/port.ts';
import { Challenges } from './challenges.ts';
import { EnrollmentDecisions } from './decisions.ts';
import { EnrollCommands } from './enroll-command-line.ts';
import { EnrollingKeys } from './enrolling-keys.ts';
import { type Retention, startEnrollmentJobs } from './enrollment-jobs.ts';
import { DerivedKeys } from './keys.ts';
import { EnrollmentPolicies } from './policies.ts';
import { type RejectedEnrollment, RejectedEnrollments } from './rejected-enrollments.ts';
import { Submissions } from './submissions.ts';
import { type ProfilesOfClient, type ReadinessOfKey, WorkloadEnrollments } from './workload-enrollments.ts';

/** Default image of the generated snippet. */
const DEFAULT_ENROLL_IMAGE = 'proofgate';

export interface EnrollmentPlaneOptions {
  readonly store: ControlStore;
  readonly nowMs: () => number;
  readonly masterKey: MasterKey;
  /** Fetches issuers' metadata, such as `IssuerFetcher`. */
  readonly fetcher: JsonFetcher;
  /** The --public-url values. Workloads sign the one that they use. At least one. */
  readonly publicUrls: readonly string[];
  readonly profilesOfClient: ProfilesOfClient;
  readonly readinessOfKey: ReadinessOfKey;
  /** Reports background failures, which are retried. Must not throw. */
  readonly report: (error: unknown) => void;
  readonly reportKeySet?: KeySetCacheOptions['report'];
  readonly reportRefused?: (refused: RejectedEnrollment) => void;
  readonly enrollImage?: string;
  readonly enrollCaConfigMap?: string;
  readonly retention?: Partial<Retention>;
}

export interface EnrollmentPlane {
  readonly sources: SourceService;
  readonly keySets: KeySetCache;
  readonly policies: EnrollmentPolicies;
  readonly commands: EnrollCommands;
  readonly decisions: EnrollmentDecisions;
  readonly keys: DerivedKeys;
  readonly workloads: WorkloadEnrollments;
  /** Jobs run while this instance leads them. @returns a function that stops them; it resolves when none runs any more */
  startJobs(): () => Promise<void>;
}

export function createEnrollmentPlane(options: EnrollmentPlaneOptions): EnrollmentPlane {
  const { store, nowMs, masterKey, fetcher, report, reportKeySet, retention = {} } = options;
  const publicUrls = options.publicUrls.map(withoutSlash);
  const [controlUrl] = publicUrls;
  if (controlUrl === undefined) throw new RangeError('Control needs a public URL');
  const keySets = new KeySetCache({
    fetcher,
    records: new StoredKeySets(store),
    nowMs,
    ...(reportKeySet === undefined ? {} : { report: reportKeySet }),
  });
  const sources = new SourceService({
    store,
    nowMs,
    validate: (coordinates) => validateSource(coordinates, fetcher, nowMs),
    report,
  });
  const keys = new EnrollingKeys();
  const challenges = new Challenges({ store, nowMs, masterKey, keys });
  const submissions = new Submissions({ store, nowMs, challenges, keys, keySets, publicUrls });
  const { profilesOfClient, readinessOfKey, reportRefused = () => {} } = options;
  const refused = new RejectedEnrollments({ store, nowMs, reportRefused, report });
  const { enrollImage: image = DEFAULT_ENROLL_IMAGE, enrollCaConfigMap: caConfigMap } = options;
  const standing = { profilesOfClient, readinessOfKey };
  const decisions = new EnrollmentDecisions(store, nowMs);
  return {
    sources,
    keySets,
    policies: new EnrollmentPolicies({ store, nowMs }),
    commands: new EnrollCommands({
      store,
      controlUrl,
      image,
      ...(caConfigMap === undefined ? {} : { caConfigMap }),
    }),
    decisions,
    keys: new DerivedKeys(store, nowMs),
    workloads: new WorkloadEnrollments({
      store,
      nowMs,
      challenges,
      submissions,
      refused,
      keys,
      ...standing,
    }),
    startJobs() {
      const stopSources = startSourceJobs({ store, activation: sources.activation, cache: keySets, report });
      const stopEnrollment = startEnrollmentJobs({ store, nowMs, decisions, retention, report });
      return async () => {
        await Promise.all([stopSources(), stopEnrollment()]);
      };
    },
  };
}

/** The spelling that clients sign (docs/control.md "Enrollment"). */
function withoutSlash(url: string): string {
  return url.endsWith('/') ? url.slice(0, -1) : url;
}
