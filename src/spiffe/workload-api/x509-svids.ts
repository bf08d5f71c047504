/**
 * X.509-SVIDs of this process from the Workload API: all of them, with their keys and the bundles to check peers with.
 * Source: SPIFFE_Workload_API section 5.
 */
import { createPrivateKey, type KeyObject } from 'node:crypto';
import { splitCertificates } from '../certificate.ts';
import type { TrustBundle } from '../trust-bundles.ts';
import { parseTrustDomainId, parseWorkloadId } from '../workload-id.ts';
import { checkLeaf } from '../x509-svid.ts';
import {
  followStream,
  WorkloadApiError,
  type X509SvidMessage,
  type X509SvidResponse,
} from './workload-api.ts';

/** One identity of this process. Contains a secret. */
export interface WorkloadX509Svid {
  readonly spiffeId: string;
  readonly trustDomain: string;
  /** The operator's advice on when to use this identity; unique in an update. */
  readonly hint: string | undefined;
  /** Leaf first. */
  readonly chainDer: readonly Buffer[];
  readonly privateKey: KeyObject;
  /** End of the leaf. */
  readonly notAfterMs: number;
}

/** An update, which replaces all earlier ones. */
export interface X509SvidUpdate {
  /** At least one SVID, in no guaranteed order. */
  readonly svids: readonly WorkloadX509Svid[];
  /** Bundles of the process's own and of federated trust domains, with only X.509 authorities. */
  readonly bundles: readonly TrustBundle[];
}

export interface X509SvidWatch {
  readonly onUpdate: (update: X509SvidUpdate) => void;
  /** Called for a failed attempt, which is retried, or for a message that is ignored in whole or in part. */
  readonly onError: (error: WorkloadApiError) => void;
  readonly signal: AbortSignal;
  /** As `refusedRetryMs` of `followStream`. */
  readonly refusedRetryMs?: number | undefined;
}

/**
 * Follows the SVIDs until the signal aborts, across restarts of the agent.
 * @param address `unix:///PATH` or `tcp://IP:PORT`
 * @throws WorkloadApiError `workload_api_address`
 */
export async function watchX509Svids(address: string, { onUpdate, ...watch }: X509SvidWatch): Promise<void> {
  const onMessage = (message: X509SvidResponse) => {
    const { problem, ...update } = readUpdate(message);
    onUpdate(update);
    if (problem !== undefined) watch.onError(problem);
  };
  await followStream(address, 'FetchX509SVID', { ...watch, onMessage });
}

function readUpdate({
  svids,
  federated_bundles: federated,
}: X509SvidResponse): X509SvidUpdate & Pick<BundlesRead, 'problem'> {
  if (svids.length === 0) throw malformed('without an SVID');
  const read = svids.map(readSvid);
  const own = svids.map((svid, index) => [read[index]?.trustDomain ?? '', svid.bundle] as const);
  const bundles = new Map(own.map(([trustDomain, der]) => [trustDomain, readX509Bundle(trustDomain, der)]));
  if ([...bundles.values()].includes(undefined)) throw malformed('with an unusable bundle of its own');
  const others = readX509Bundles(federated);
  for (const bundle of others.bundles) {
    // A federated bundle cannot replace the agent's own.
    if (!bundles.has(bundle.trustDomain)) bundles.set(bundle.trustDomain, bundle);
  }
  const known = [...bundles.values()].filter((bundle) => bundle !== undefined);
  return { svids: read, bundles: known, problem: others.problem };
}

function readSvid(message: X509SvidMessage): WorkloadX509Svid {
  const id = parseWorkloadId(message.spiffe_id);
  const chain = splitCertificates(message.x509_svid);
  const [leaf] = chain ?? [];
  if (id.kind === 'problem' || chain === undefined || leaf === undefined)
    throw malformed('with an unusable SVID');
  const named = checkLeaf(leaf);
  const privateKey = readPrivateKey(message.x509_svid_key);
  if (named.kind === 'problem' || named.spiffeId !== id.spiffeId || !leaf.x509.checkPrivateKey(privateKey)) {
    throw malformed('with an SVID that does not fit its ID or its key');
  }
  const { spiffeId, trustDomain } = id;
  const hint = message.hint === '' ? undefined : message.hint;
  const chainDer = chain.map(({ der }) => der);
  return { spiffeId, trustDomain, hint, chainDer, privateKey, notAfterMs: leaf.notAfterMs };
}

function readPrivateKey(der: Buffer): KeyObject {
  try {
    return createPrivateKey({ key: der, format: 'der', type: 'pkcs8' });
  } catch {
    throw malformed('without a private key in PKCS#8');
  }
}

export interface BundlesRead {
  readonly bundles: readonly TrustBundle[];
  /** Names the trust domains whose unusable bundles were skipped. */
  readonly problem: WorkloadApiError | undefined;
}

/** A trust domain without X.509 authorities has no bundle here. */
export function readX509Bundles(bundles: Readonly<Record<string, Buffer>>): BundlesRead {
  const filled = Object.entries(bundles).filter(([, der]) => der.length > 0);
  return readEachBundle(Object.fromEntries(filled), readX509Bundle);
}

/**
 * Skips only an unusable bundle, because one federated trust domain must not block the others. @param read returns
 * undefined for an unusable bundle
 */
export function readEachBundle(
  bundles: Readonly<Record<string, Buffer>>,
  read: (trustDomain: string, bytes: Buffer) => TrustBundle | undefined,
): BundlesRead {
  const entries = Object.entries(bundles).map(([id, bytes]) => {
    const trustDomain = parseTrustDomainId(id);
    return { trustDomain, bundle: trustDomain === undefined ? undefined : read(trustDomain, bytes) };
  });
  const unusable = entries.filter(({ bundle }) => bundle === undefined);
  const names = unusable.map(({ trustDomain }) => trustDomain ?? 'an invalid trust domain').slice(0, 5);
  return {
    bundles: entries.map(({ bundle }) => bundle).filter((bundle) => bundle !== undefined),
    problem: names.length === 0 ? undefined : malformed(`with an unusable bundle of ${names.join(', ')}`),
  };
}

function readX509Bundle(trustDomain: string, der: Buffer): TrustBundle | undefined {
  const x509Authorities = splitCertificates(der);
  return x509Authorities && { trustDomain, x509Authorities, jwtAuthorities: [] };
}

export function malformed(what: string): WorkloadApiError {
  return new WorkloadApiError('workload_api_malformed', `the SPIFFE agent sent a message ${what}`);
}
