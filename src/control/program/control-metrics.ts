/**
 * Defines every metric of Control with its names, labels and buckets. Labels come from closed sets (route patterns,
 * codes); none carries a site's client, key, subject or token.
 * Source: docs/operate/control.md "Running Control".
 */
import { collectDefaultMetrics, Histogram, Registry } from 'prom-client';
import { instrumentsOf } from '../../process/telemetry/instruments.ts';

/** Seconds; long polls are not timed. */
const REQUEST_BUCKETS_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

type PublicationKind = 'bundle' | 'delta' | 'link';

export type ControlMetrics = ReturnType<typeof createControlMetrics>;

/** Lag of a site's slowest attached target; read at each scrape. */
export interface PropagationReading {
  readonly siteId: string;
  readonly lagSeconds: number;
  readonly targetsBehind: number;
  /** That its verifiers use; more than one accepts a proof more than once. */
  readonly replayStores: number;
  /** Of the site's configuration. */
  readonly expectedReplayStores: 'one' | 'per_region';
}

/** Number of a site's active policies whose keys expire soon, or have expired recently, without a successor. */
export interface RenewalReading {
  readonly siteId: string;
  readonly policiesNotRenewed: number;
}

/** Age of a site's longest missing fetch of an authorization server's keys. */
export interface OAuthKeysReading {
  readonly siteId: string;
  readonly ageSeconds: number;
}

interface Readings {
  readonly propagation: () => Promise<readonly PropagationReading[]>;
  readonly renewals: () => Promise<readonly RenewalReading[]>;
  readonly oauthKeys: () => Promise<readonly OAuthKeysReading[]>;
}

/** The readings are taken at each scrape. */
export function createControlMetrics(readings: Readings) {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const { counter } = instrumentsOf(registry);
  const requests = counter(
    'proofgate_control_requests_total',
    'Requests answered, by route, method and status.',
    ...['route', 'method', 'status'],
  );
  const requestSeconds = new Histogram({
    name: 'proofgate_control_request_seconds',
    help: 'Time from the header of a request to its answer.',
    labelNames: ['route'],
    buckets: REQUEST_BUCKETS_SECONDS,
    registers: [registry],
  });
  const enrollments = counter(
    'proofgate_control_enrollments_total',
    'Enrollment submissions and refused challenges, by outcome.',
    'outcome',
  );
  const published = counter('proofgate_control_publications_total', 'Published revisions, by kind.', 'kind');
  const publishedBytes = counter(
    'proofgate_control_published_bytes_total',
    'Bytes of published revisions, by kind.',
    'kind',
  );
  const jobs = counter(
    'proofgate_control_job_failures_total',
    'Rounds of background jobs that failed.',
    'job',
  );
  const keySets = counter(
    'proofgate_control_key_set_fetches_total',
    "Fetches of issuers' key sets, by outcome.",
    'outcome',
  );
  const incidents = counter(
    'proofgate_control_store_incidents_total',
    'Faults of the database connection that no request waited for.',
    'incident',
  );
  registerReadings(registry, { ...readings, propagation: oncePerScrape(readings.propagation) });
  return {
    registry,
    /**
     * @param route the pattern, such as `/v1/sites/:site_id`; `none` for a request that matches no route
     * @param seconds undefined for a long poll
     */
    requestAnswered(route: string, method: string, status: number, seconds: number | undefined) {
      requests.inc({ route, method, status: String(status) });
      if (seconds !== undefined) requestSeconds.observe({ route }, seconds);
    },
    /** @param outcome `issued`, `pending_approval`, `denied`, `repeated` for a repeated submission, or the code of a rejection */
    enrollmentSubmitted: (outcome: string) => enrollments.inc({ outcome }),
    /** @param bytes of the delta, or of all files of the whole bundle */
    published(kind: PublicationKind, bytes: number) {
      published.inc({ kind });
      publishedBytes.inc({ kind }, bytes);
    },
    /** @param job such as `publishing`, `retention` */
    jobFailed: (job: string) => jobs.inc({ job }),
    keySetFetched: (outcome: string) => keySets.inc({ outcome }),
    /** @param incident of the database, such as `listener_failed` */
    storeIncident: (incident: string) => incidents.inc({ incident }),
  };
}

function registerReadings(registry: Registry, { oauthKeys, propagation, renewals }: Readings): void {
  const { readings } = instrumentsOf(registry);
  readings(
    'proofgate_control_targets_behind',
    'Attached targets that have not acknowledged the newest revision, by Auth Site.',
    'site_id',
    async () => (await propagation()).map(({ siteId, targetsBehind }) => [siteId, targetsBehind]),
  );
  readings(
    'proofgate_control_propagation_lag_seconds',
    'Age of the oldest revision that an attached target lacks, by Auth Site; 0 when none lacks any.',
    'site_id',
    async () => (await propagation()).map(({ siteId, lagSeconds }) => [siteId, lagSeconds]),
  );
  readings(
    'proofgate_control_replay_stores',
    'Replay stores that verifiers use, by Auth Site; with more than one a proof is accepted once in each. `expected` is `replay_stores` of the site: `one`, or `per_region` for several on purpose.',
    ['site_id', 'expected'],
    async () =>
      (await propagation()).map(({ expectedReplayStores, replayStores, siteId }) => [
        [siteId, expectedReplayStores],
        replayStores,
      ]),
  );
  readings(
    'proofgate_control_policies_not_renewed',
    'Active enrollment policies whose last key is about to end or has ended within the hour, by Auth Site.',
    'site_id',
    async () => (await renewals()).map(({ siteId, policiesNotRenewed }) => [siteId, policiesNotRenewed]),
  );
  readings(
    'proofgate_control_oauth_keys_age_seconds',
    'Time since the last successful fetch of the keys of an OAuth issuer, or since it was created or changed without one: the longest, by Auth Site.',
    'site_id',
    async () => (await oauthKeys()).map(({ ageSeconds, siteId }) => [siteId, ageSeconds]),
  );
}

/** All metrics of one scrape are collected concurrently and share one reading. */
function oncePerScrape<T>(read: () => Promise<T>): () => Promise<T> {
  let reading: Promise<T> | undefined;
  return () => {
    reading ??= read().finally(() => {
      reading = undefined;
    });
    return reading;
  };
}
