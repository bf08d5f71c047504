/** Opens the sources of trust bundles: files, the Workload API, bundle endpoints. Source: docs/operate/broker.md "Trust bundles". */

import type { ReadinessCheck } from '../../process/admin/admin-server.ts';
import { fileFingerprint } from '../../process/files/file-fingerprint.ts';
import { readInputText } from '../../process/files/input-files.ts';
import { faultName, usageError } from '../../process/program/errors.ts';
import type { Logger } from '../../process/telemetry/log.ts';
import { type BundleDocument, readBundleText } from '../../spiffe/bundles/bundle-document.ts';
import { type BundleEndpoint, BundleEndpointFollower } from '../../spiffe/bundles/bundle-endpoint.ts';
import { BundleStore } from '../../spiffe/bundles/bundle-store.ts';
import { followWorkloadBundles } from '../../spiffe/bundles/workload-api-bundles.ts';
import type { TrustBundle, TrustBundles } from '../../spiffe/trust-bundles.ts';
import { WorkloadApiError } from '../../spiffe/workload-api/workload-api.ts';
import { type FileObserver, FollowedFiles } from './broker-files.ts';
import type { BundleFile, TrustPlan, WorkloadApiSource } from './broker-plan.ts';

const MAX_BUNDLE_BYTES = 4 * 1024 * 1024;

export interface TrustSources {
  readonly bundles: TrustBundles;
  checks(): readonly ReadinessCheck[];
  close(): Promise<void>;
}

/** @throws CliError */
export async function openTrustSources(
  plan: TrustPlan,
  observer: FileObserver,
  nowMs: () => number,
): Promise<TrustSources> {
  const store = new BundleStore();
  const files = new FollowedFiles(observer);
  const workloadApi =
    plan.workloadApi === undefined
      ? undefined
      : followWorkloadApi(store, plan.workloadApi, { logger: observer.logger, nowMs });
  const endpoints = plan.endpoints.map((endpoint) =>
    openEndpoint(store, endpoint, plan.endpointFetch, { logger: observer.logger, nowMs }),
  );
  try {
    for (const file of plan.files) {
      const endpoint = endpoints.find(({ trustDomain }) => trustDomain === file.trustDomain);
      const take = endpoint?.adopt ?? takeFile(store, file);
      await files.follow(
        `trust_bundle:${file.trustDomain}`,
        () => fileFingerprint(file.path),
        async () => take(await readBundleFile(file)),
      );
    }
  } catch (error) {
    await workloadApi?.close();
    throw error;
  }
  // Opened after the files, because an https_spiffe endpoint is authenticated with the bundle in its file.
  for (const endpoint of endpoints) endpoint.start();
  const followed = [...endpoints, ...(workloadApi === undefined ? [] : [workloadApi])];
  return {
    bundles: store,
    checks: () => [...files.checks(), ...followed.map((source) => source.check())],
    async close() {
      files.close();
      await Promise.all(followed.map((source) => source.close()));
    },
  };
}

function takeFile(store: BundleStore, { trustDomain }: BundleFile): (document: BundleDocument) => void {
  const update = store.addSource([trustDomain]);
  return ({ jwtAuthorities, x509Authorities }) => update([{ trustDomain, x509Authorities, jwtAuthorities }]);
}

/** @throws CliError `trust_bundle_invalid`, or as `readInputText` */
async function readBundleFile({ path }: BundleFile): Promise<BundleDocument> {
  const read = readBundleText(await readInputText(path, MAX_BUNDLE_BYTES));
  if (read.kind === 'unreadable') throw usageError('trust_bundle_invalid', `${path} ${read.text}`);
  if (read.x509Authorities.length === 0 && read.jwtAuthorities.length === 0) {
    throw usageError('trust_bundle_invalid', `${path} has no key that a trust bundle needs`);
  }
  return read;
}

/** Trust bundle from an endpoint. Without it, only the callers of its trust domain are refused. */
function openEndpoint(
  store: BundleStore,
  endpoint: BundleEndpoint,
  fetch: TrustPlan['endpointFetch'],
  { logger, nowMs }: Environment,
) {
  const { trustDomain } = endpoint;
  const stopping = new AbortController();
  let failing: string | undefined;
  let followed: Promise<void> | undefined;
  const follower = new BundleEndpointFollower({
    endpoint,
    update: store.addSource([trustDomain]),
    bundles: store,
    fetch,
    nowMs,
    onProblem({ code, detail }) {
      if (code === failing) return;
      failing = code;
      const fields = { event: 'bundle_endpoint_failed', trust_domain: trustDomain, code, text: detail };
      logger.warn(fields, 'a bundle endpoint delivers no trust bundle');
    },
    onRefreshed() {
      if (failing === undefined) return;
      failing = undefined;
      logger.info(
        { event: 'bundle_endpoint_answers', trust_domain: trustDomain },
        'a bundle endpoint delivers again',
      );
    },
  });
  return {
    trustDomain,
    adopt: (document: BundleDocument) => follower.adopt(document),
    start() {
      followed = follower.run(stopping.signal);
    },
    check(): ReadinessCheck {
      const isKnown = store.bundleOf(trustDomain) !== undefined;
      const state = isKnown
        ? 'the last trust bundle stays in use'
        : 'no trust bundle: its callers are refused';
      const warning =
        failing === undefined && isKnown ? undefined : `${state} (${failing ?? 'not fetched yet'})`;
      return { name: `bundle_endpoint:${trustDomain}`, problem: undefined, warning };
    },
    async close(): Promise<void> {
      stopping.abort();
      await followed;
    },
  };
}

interface Environment {
  readonly logger: Logger;
  readonly nowMs: () => number;
}

const KEPT = 'the last trust bundles stay in use';
const WARNINGS: Readonly<Record<string, string>> = {
  workload_api_malformed: 'trust bundles that cannot be used are left out',
};

/** Trust bundles from the broker's own SPIFFE agent. The broker is not ready before the first one. */
function followWorkloadApi(
  store: BundleStore,
  { address, withJwt }: WorkloadApiSource,
  environment: Environment,
) {
  const { logger, nowMs } = environment;
  const stopping = new AbortController();
  const update = store.addSource();
  let hasBundles = false;
  let failing: string | undefined;
  const failed = (error: unknown) => {
    const code = error instanceof WorkloadApiError ? error.code : 'internal';
    if (code === failing) return;
    failing = code;
    const text = error instanceof WorkloadApiError ? error.message : faultName(error);
    logger.warn(
      { event: 'workload_api_failed', code, text },
      'the Workload API does not deliver trust bundles',
    );
  };
  const take = (bundles: readonly TrustBundle[], problem: WorkloadApiError | undefined) => {
    hasBundles = bundles.length > 0;
    if (problem !== undefined) {
      failed(problem);
    } else if (hasBundles && failing !== undefined) {
      failing = undefined;
      logger.info({ event: 'workload_api_answers' }, 'the Workload API delivers trust bundles again');
    }
    update(bundles);
  };
  const { signal } = stopping;
  const followed = followWorkloadBundles({
    address,
    update: take,
    withJwt,
    onError: failed,
    signal,
    nowMs,
  }).catch(failed);
  return {
    check(): ReadinessCheck {
      const name = 'workload_api';
      const why = failing === undefined ? '' : ` (${failing})`;
      if (!hasBundles) return { name, problem: `the Workload API has delivered no trust bundle${why}` };
      return { name, problem: undefined, warning: failing && `${WARNINGS[failing] ?? KEPT}${why}` };
    },
    async close(): Promise<void> {
      stopping.abort();
      await followed;
    },
  };
}
