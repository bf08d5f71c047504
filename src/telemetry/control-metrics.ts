/**
 * Defines every metric of Control with its names, labels and buckets. Labels come from closed sets (route patterns,
 * codes); none carries a site's client, key, subject or token.
 * Source: docs/control.md "Running Control".
 */
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';

/** Seconds; long polls are not timed. */
const REQUEST_BUCKETS_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

type PublicationKind = 'bundle' | 'delta' | 'link';

export interface ControlMetrics {
  readonly registry: Registry;
  /**
   * @param route the pattern, such as `/v1/sites/:site_id`; `none` for a request that matches no route
   * @param seconds undefined for a long poll
   */
  requestAnswered(route: string, method: string, status: number, seconds: number | undefined): void;
  /** @param outcome `issued`, `pending_approval`, `denied`, `repeated` for a repeated submission, or the code of a rejection */
  enrollmentSubmitted(outcome: string): void;
  /** @param bytes of the delta, or of all files of the whole bundle */
  published(kind: PublicationKind, bytes: number): void;
  /** @param job such as `publishing`, `retention` */
  jobFailed(job: string): void;
  keySetFetched(outcome: string): void;
  /** @param incident of the database, such as `listener_failed` */
  storeIncident(incident: string): void;
}

/** Lag of a site's slowest attached target; read at each scrape. */
export interface PropagationReading {
  readonly siteId: string;
  readonly lagSeconds: number;
  readonly targetsBehind: number;
}

/** Number of a site's active policies whose keys expire soon, or have expired recently, without a successor. */
export interface RenewalReading {
  readonly siteId: string;
  readonly policiesNotRenewed: number;
}

/** Read at each scrape. */
export interface ControlReadings {
  readonly propagation: () => Promise<readonly PropagationReading[]>;
  readonly renewals: () => Promise<readonly RenewalReading[]>;
}

export function createControlMetrics(readings: ControlReadings): ControlMetrics {
  const registry = new Registry();
  const registers = [registry];
  collectDefaultMetrics({ register: registry });
  const requests = requestMetrics(registry);
  const enrollments = new Counter({
    name: 'proofgate_control_enrollments_total',
    help: 'Enrollment submissions and refused challenges, by outcome.',
    labelNames: ['outcome'],
    registers,
  });
  const published = new Counter({
    name: 'proofgate_control_publications_total',
    help: 'Published revisions, by kind.',
    labelNames: ['kind'],
    registers,
  });
  const publishedBytes = new Counter({
    name: 'proofgate_control_published_bytes_total',
    help: 'Bytes of published revisions, by kind.',
    labelNames: ['kind'],
    registers,
  });
  const jobs = new Counter({
    name: 'proofgate_control_job_failures_total',
    help: 'Rounds of background jobs that failed.',
    labelNames: ['job'],
    registers,
  });
  const keySets = new Counter({
    name: 'proofgate_control_key_set_fetches_total',
    help: "Fetches of issuers' key sets, by outcome.",
    labelNames: ['outcome'],
    registers,
  });
  const incidents = new Counter({
    name: 'proofgate_control_store_incidents_total',
    help: 'Faults of the database connection that no request waited for.',
    labelNames: ['incident'],
    registers,
  });
  registerPropagation(registry, readings.propagation);
  registerRenewals(registry, readings.renewals);
  return {
    registry,
    requestAnswered: requests,
    enrollmentSubmitted: (outcome) => enrollments.inc({ outcome }),
    published(kind, bytes) {
      published.inc({ kind });
      publishedBytes.inc({ kind }, bytes);
    },
    jobFailed: (job) => jobs.inc({ job }),
    keySetFetched: (outcome) => keySets.inc({ outcome }),
    storeIncident: (incident) => incidents.inc({ incident }),
  };
}

function requestMetrics(registry: Registry): ControlMetrics['requestAnswered'] {
  const answered = new Counter({
    name: 'proofgate_control_requests_total',
    help: 'Requests answered, by route, method and status.',
    labelNames: ['route', 'method', 'status'],
    registers: [registry],
  });
  const seconds = new Histogram({
    name: 'proofgate_control_request_seconds',
    help: 'Time from the header of a request to its answer.',
    labelNames: ['route'],
    buckets: REQUEST_BUCKETS_SECONDS,
    registers: [registry],
  });
  return (route, method, status, took) => {
    answered.inc({ route, method, status: String(status) });
    if (took !== undefined) seconds.observe({ route }, took);
  };
}

function registerPropagation(registry: Registry, read: () => Promise<readonly PropagationReading[]>): void {
  const readOnce = oncePerScrape(read);
  const labelNames = ['site_id'];
  const registers = [registry];
  new Gauge({
    name: 'proofgate_control_targets_behind',
    help: 'Attached targets that have not acknowledged the newest revision, by Auth Site.',
    labelNames,
    registers,
    async collect() {
      const readings = await readOnce();
      this.reset();
      for (const { siteId, targetsBehind } of readings) this.set({ site_id: siteId }, targetsBehind);
    },
  });
  new Gauge({
    name: 'proofgate_control_propagation_lag_seconds',
    help: 'Age of the oldest revision that an attached target lacks, by Auth Site; 0 when none lacks any.',
    labelNames,
    registers,
    async collect() {
      const readings = await readOnce();
      this.reset();
      for (const { siteId, lagSeconds } of readings) this.set({ site_id: siteId }, lagSeconds);
    },
  });
}

function registerRenewals(registry: Registry, read: () => Promise<readonly RenewalReading[]>): void {
  new Gauge({
    name: 'proofgate_control_policies_not_renewed',
    help: 'Active enrollment policies whose last key is about to end or has ended within the hour, by Auth Site.',
    labelNames: ['site_id'],
    registers: [registry],
    async collect() {
      const readings = await read();
      this.reset();
      for (const { siteId, policiesNotRenewed } of readings)
        this.set({ site_id: siteId }, policiesNotRenewed);
    },
  });
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
