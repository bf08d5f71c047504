/**
 * Follows the trust bundle of one trust domain at its bundle endpoint.
 *
 * After a refused or failed refresh, the last good bundle is used for at most a day, and the next refresh happens after
 * the usual time. Sources: SPIFFE_Federation sections 4 and 5; SPIFFE_Trust_Domain_and_Bundle section 4.1.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type { FetchFailureCode } from '../../process/outbound-fetch/fetch-failures.ts';
import {
  IssuerFetcher,
  type IssuerFetcherOptions,
  type JsonFetcher,
} from '../../process/outbound-fetch/outbound-fetch.ts';
import { presentedChain } from '../presented-chain.ts';
import type { TrustBundle, TrustBundles } from '../trust-bundles.ts';
import { parseServerId } from '../workload-id.ts';
import { serverSvidProblem } from '../x509-svid.ts';
import { type BundleDocument, readBundleJson } from './bundle-document.ts';
import { isSameBundle, type UpdateBundles } from './bundle-store.ts';
import { FailurePeriod } from './last-good.ts';

export type BundleEndpoint = {
  readonly trustDomain: string;
  readonly url: string;
} & (
  | { readonly profile: 'https_web' }
  /** The server's certificate is an SVID with this SPIFFE ID. */
  | { readonly profile: 'https_spiffe'; readonly endpointId: string }
);

export type BundleRefreshCode =
  | FetchFailureCode
  | 'bundle_unreadable'
  /** A lower `spiffe_sequence`, or none after one. */
  | 'bundle_rolled_back'
  /** Other content under the same `spiffe_sequence`. */
  | 'bundle_changed'
  /** The bundle has no key. */
  | 'bundle_empty';

export interface BundleRefreshProblem {
  readonly code: BundleRefreshCode;
  /** One line for the operator. */
  readonly detail: string;
}

export interface BundleEndpointOptions {
  readonly endpoint: BundleEndpoint;
  readonly update: UpdateBundles;
  /** The bundles that authenticate the server, for `https_spiffe` with an ID of another trust domain. */
  readonly bundles: TrustBundles;
  /** Allowed addresses, and for `https_web` a private CA. */
  readonly fetch: Pick<IssuerFetcherOptions, 'openedNetworks' | 'privateCa' | 'resolveName'>;
  readonly nowMs: () => number;
  readonly onProblem: (problem: BundleRefreshProblem) => void;
  readonly onRefreshed: () => void;
}

const FLAGS = { network: '--spiffe-bundle-network', caFile: '--spiffe-bundle-ca-file' };

/** SPIFFE_Federation section 4.1. */
const DEFAULT_HINT_SECONDS = 300;
const MIN_REFRESH_SECONDS = 60;
const MAX_REFRESH_SECONDS = 60 * 60;

export class BundleEndpointFollower {
  readonly #options: BundleEndpointOptions;
  readonly #fetcher: JsonFetcher;
  readonly #failures: FailurePeriod;
  /** The last good bundle. It authenticates the endpoint even after it was withdrawn as too old. */
  #latest: BundleDocument | undefined;

  constructor(options: BundleEndpointOptions) {
    this.#options = options;
    this.#failures = new FailurePeriod(options.nowMs, () => options.update([]));
    const { endpoint, fetch } = options;
    const serverProblem: IssuerFetcherOptions['serverProblem'] =
      endpoint.profile === 'https_web'
        ? undefined
        : (socket) => {
            const { endpointId } = endpoint;
            const chain = presentedChain(socket);
            return serverSvidProblem(chain, endpointId, this.#serverBundles(endpointId), options.nowMs())
              ?.text;
          };
    this.#fetcher = new IssuerFetcher({ ...fetch, flags: FLAGS, ...(serverProblem && { serverProblem }) });
  }

  /** Takes a bundle that the operator supplied. It counts as the latest, until a refresh replaces it. */
  adopt(document: BundleDocument): void {
    this.#latest = document;
    this.#failures.succeeded();
    this.#options.update([this.#bundleOf(document)]);
  }

  /** Refreshes until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.refresh();
      // Jitter, so that replicas do not all refresh at the same time.
      const delayMs = this.refreshSeconds * 1_000 * (0.9 + Math.random() / 10);
      await delay(delayMs, undefined, { signal, ref: false }).catch(() => {});
    }
  }

  /** The bundle's hint within limits; the minimum while there is no bundle. */
  get refreshSeconds(): number {
    if (this.#latest === undefined) return MIN_REFRESH_SECONDS;
    const hint = this.#latest.refreshHintSeconds ?? DEFAULT_HINT_SECONDS;
    return Math.min(Math.max(hint, MIN_REFRESH_SECONDS), MAX_REFRESH_SECONDS);
  }

  /** Never rejects. */
  async refresh(): Promise<void> {
    const before = this.#latest;
    const fetched = await this.#fetcher.fetchJson(this.#options.endpoint.url);
    // A newer bundle from the operator takes precedence over an answer in transit.
    if (this.#latest !== before) return;
    const problem = fetched.kind === 'failed' ? fetched : this.#take(readBundleJson(fetched.value));
    if (problem === undefined) {
      this.#options.onRefreshed();
      return;
    }
    this.#failures.failed();
    this.#options.onProblem({ code: problem.code, detail: problem.detail });
  }

  #take(read: ReturnType<typeof readBundleJson>): BundleRefreshProblem | undefined {
    if (read.kind === 'unreadable') return { code: 'bundle_unreadable', detail: `the bundle ${read.text}` };
    if (read.x509Authorities.length + read.jwtAuthorities.length === 0) {
      return {
        code: 'bundle_empty',
        detail: 'the bundle has no keys; the last good one stays for at most a day',
      };
    }
    const bundle = this.#bundleOf(read);
    // A publisher that was installed again starts a new sequence. After a withdrawal there is nothing to roll back.
    const before = this.#failures.isOver ? undefined : this.#latest;
    const problem = before && sequenceProblem(before, read, isSameBundle(this.#bundleOf(before), bundle));
    if (problem !== undefined) return problem;
    this.#latest = read;
    this.#failures.succeeded();
    this.#options.update([bundle]);
    return undefined;
  }

  #bundleOf({ jwtAuthorities, x509Authorities }: BundleDocument): TrustBundle {
    return { trustDomain: this.#options.endpoint.trustDomain, x509Authorities, jwtAuthorities };
  }

  /** An endpoint that serves its own trust domain is authenticated with the latest bundle (section 5.2.2.4). */
  #serverBundles(endpointId: string): Pick<TrustBundles, 'bundleOf'> {
    const id = parseServerId(endpointId);
    const { bundles, endpoint } = this.#options;
    if (id.kind === 'problem' || id.trustDomain !== endpoint.trustDomain) return bundles;
    const own = this.#latest && this.#bundleOf(this.#latest);
    return { bundleOf: (trustDomain) => (trustDomain === endpoint.trustDomain ? own : undefined) };
  }
}

/** `spiffe_sequence` grows with each change. Without one so far, any bundle is newer. */
function sequenceProblem(
  { sequence: latest }: BundleDocument,
  { sequence }: BundleDocument,
  hasSameContent: boolean,
): BundleRefreshProblem | undefined {
  if (latest === undefined || (sequence !== undefined && sequence > latest)) return undefined;
  if (sequence === undefined || sequence < latest) {
    return {
      code: 'bundle_rolled_back',
      detail: `its spiffe_sequence is below ${latest}, the last good one's`,
    };
  }
  if (hasSameContent) return undefined;
  return { code: 'bundle_changed', detail: `its keys changed under the same spiffe_sequence, ${latest}` };
}
