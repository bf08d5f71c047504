/**
 * Creates the services of sources and enrollment and starts their background jobs.
 * Source: docs/operate/control.md "Trust Anchor Source", "Enrollment".
 */

import type { JsonFetcher } from '../../process/outbound-fetch/outbound-fetch.ts';
import type { EnrollmentCommand } from '../contract/sources-contract.ts';
import { KeySetCache, type KeySetCacheOptions } from '../issuers/key-set-cache.ts';
import { validateSource } from '../issuers/validate-source.ts';
import { DerivedKeys } from '../keys/derived-keys.ts';
import type { MasterKeys } from '../secrets/master-keys.ts';
import { StoredKeySets } from '../sources/key-set-records.ts';
import { SourceDrafts } from '../sources/source-drafts.ts';
import { SourceLifecycle } from '../sources/source-lifecycle.ts';
import type { ControlStore } from '../store/port.ts';
import { EnrollmentDecisions } from './decisions.ts';
import { enrollmentCommand } from './enroll-command-line.ts';
import { type Retention, startEnrollmentJobs } from './enrollment-jobs.ts';
import { EnrollmentPolicies } from './policies.ts';
import type { RejectedEnrollment } from './rejected-enrollments.ts';
import { type ProfilesOfClient, type ReadinessOfKey, WorkloadEnrollments } from './workload-enrollments.ts';

/** Default image of the generated snippet. */
const DEFAULT_ENROLL_IMAGE = 'proofgate';

export interface EnrollmentPlaneOptions {
  readonly store: ControlStore;
  readonly nowMs: () => number;
  readonly masterKeys: MasterKeys;
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

/** Operations on Trust Anchor Sources. */
export interface Sources {
  readonly drafts: SourceDrafts;
  readonly lifecycle: SourceLifecycle;
}

export interface EnrollmentPlane {
  readonly sources: Sources;
  readonly keySets: KeySetCache;
  readonly policies: EnrollmentPolicies;
  readonly commandOf: (policyId: string) => Promise<EnrollmentCommand>;
  readonly decisions: EnrollmentDecisions;
  readonly keys: DerivedKeys;
  readonly workloads: WorkloadEnrollments;
  /** Jobs run while this instance leads them. @returns a function that stops them; it resolves when none runs any more */
  startJobs(): () => Promise<void>;
}

export function createEnrollmentPlane(options: EnrollmentPlaneOptions): EnrollmentPlane {
  const { store, nowMs, fetcher, report, reportKeySet, retention = {} } = options;
  const publicUrls = options.publicUrls.map(withoutSlash);
  const [controlUrl] = publicUrls;
  if (controlUrl === undefined) throw new RangeError('Control needs a public URL');
  const keySets = new KeySetCache({
    fetcher,
    records: new StoredKeySets(store),
    nowMs,
    ...(reportKeySet === undefined ? {} : { report: reportKeySet }),
  });
  const lifecycle = new SourceLifecycle({
    store,
    nowMs,
    validate: (coordinates) => validateSource(coordinates, fetcher, nowMs),
    report,
  });
  const { reportRefused = () => {} } = options;
  const { enrollImage: image = DEFAULT_ENROLL_IMAGE, enrollCaConfigMap: caConfigMap } = options;
  const decisions = new EnrollmentDecisions(store, nowMs);
  return {
    sources: { drafts: new SourceDrafts({ store, nowMs }), lifecycle },
    keySets,
    policies: new EnrollmentPolicies({ store, nowMs }),
    commandOf: (policyId) => enrollmentCommand({ ...options, controlUrl, image, caConfigMap }, policyId),
    decisions,
    keys: new DerivedKeys(store, nowMs),
    workloads: new WorkloadEnrollments({ ...options, reportRefused, keySets, publicUrls }),
    startJobs: () => startEnrollmentJobs({ store, nowMs, decisions, lifecycle, keySets, retention, report }),
  };
}

/** The spelling that clients sign (docs/design/enrollment.md "Enrollment"). */
function withoutSlash(url: string): string {
  return url.endsWith('/') ? url.slice(0, -1) : url;
}
