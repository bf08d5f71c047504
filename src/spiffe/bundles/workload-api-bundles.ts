/**
 * Follows the trust bundles of a Workload API: the agent's own trust domain and federated ones.
 * Source: SPIFFE_Workload_API sections 4.4, 5.2.2 and 6.2.2.
 */
import { isJsonObject, parseStrictJson } from '../../protocol/strict-json.ts';
import type { TrustBundle } from '../trust-bundles.ts';
import { type BundlesResponse, followStream, type WorkloadApiError } from '../workload-api/workload-api.ts';
import { type BundlesRead, malformed, readEachBundle, readX509Bundles } from '../workload-api/x509-svids.ts';
import { readJwtAuthorities } from './bundle-document.ts';
import { FailurePeriod } from './last-good.ts';

export interface WorkloadBundlesOptions {
  /** `unix:///PATH` or `tcp://IP:PORT` */
  readonly address: string;
  /** Replaces all bundles. The problem names those that were left out. */
  readonly update: (bundles: readonly TrustBundle[], problem: WorkloadApiError | undefined) => void;
  /** Whether to follow JWT authorities as well; an agent may have them disabled. */
  readonly withJwt: boolean;
  readonly onError: (error: WorkloadApiError) => void;
  readonly signal: AbortSignal;
  readonly nowMs: () => number;
}

/**
 * Follows until the signal aborts. A message replaces all earlier ones. While the agent fails, the last bundles are
 * used for at most a day.
 * @throws WorkloadApiError `workload_api_address`
 */
export async function followWorkloadBundles(options: WorkloadBundlesOptions): Promise<void> {
  let x509 = NO_BUNDLES;
  let jwt = NO_BUNDLES;
  const publish = () => options.update(joinBundles(x509.bundles, jwt.bundles), x509.problem ?? jwt.problem);
  const followed = [
    follow(options, 'FetchX509Bundles', readX509Bundles, (read) => {
      x509 = read;
      publish();
    }),
  ];
  if (options.withJwt) {
    const taken = follow(options, 'FetchJWTBundles', readJwtBundles, (read) => {
      jwt = read;
      publish();
    });
    followed.push(taken);
  }
  await Promise.all(followed);
}

const NO_BUNDLES: BundlesRead = { bundles: [], problem: undefined };

async function follow(
  { address, nowMs, onError, signal }: WorkloadBundlesOptions,
  method: 'FetchX509Bundles' | 'FetchJWTBundles',
  read: (bundles: BundlesResponse['bundles']) => BundlesRead,
  take: (read: BundlesRead) => void,
): Promise<void> {
  const failures = new FailurePeriod(nowMs, () => take(NO_BUNDLES));
  await followStream(address, method, {
    onMessage: ({ bundles }) => {
      if (Object.keys(bundles).length === 0) throw malformed('without a bundle');
      take(read(bundles));
      failures.succeeded();
    },
    onError: (error) => {
      failures.failed();
      onError(error);
    },
    signal,
  });
  failures.succeeded();
}

function readJwtBundles(bundles: BundlesResponse['bundles']): BundlesRead {
  return readEachBundle(bundles, (trustDomain, jwks) => {
    const jwtAuthorities = readJwks(jwks);
    return jwtAuthorities && { trustDomain, x509Authorities: [], jwtAuthorities };
  });
}

/** Unlike in a bundle document, every key is for JWT-SVIDs, with or without `use`. */
function readJwks(bytes: Buffer): TrustBundle['jwtAuthorities'] | undefined {
  try {
    const value = parseStrictJson(bytes.toString('utf8'));
    if (!isJsonObject(value) || !Array.isArray(value.keys) || !value.keys.every(isJsonObject))
      return undefined;
    const keys = value.keys.filter(({ use }) => use === undefined || use === 'jwt-svid');
    return readJwtAuthorities(keys);
  } catch {
    return undefined;
  }
}

/** Each trust domain's X.509 authorities with its JWT authorities. */
function joinBundles(x509: readonly TrustBundle[], jwt: readonly TrustBundle[]): readonly TrustBundle[] {
  const joined = new Map(jwt.map((bundle) => [bundle.trustDomain, bundle]));
  for (const { trustDomain, x509Authorities } of x509) {
    const jwtAuthorities = joined.get(trustDomain)?.jwtAuthorities ?? [];
    joined.set(trustDomain, { trustDomain, x509Authorities, jwtAuthorities });
  }
  return [...joined.values()];
}
