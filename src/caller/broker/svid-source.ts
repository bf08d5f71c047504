/**
 * Follows the Workload API, chooses one of its X.509-SVIDs, and creates the prover for it.
 * Source: docs/operate/broker.md "Proofs"; SPIFFE_Workload_API section 5.
 */
import type { SigningKey } from '../../protocol/signing.ts';
import { asWorkloadApiError, type WorkloadApiError } from '../../spiffe/workload-api/workload-api.ts';
import type { X509SvidUpdate, X509SvidWatch } from '../../spiffe/workload-api/x509-svids.ts';
import { BrokerError, type BrokerFault } from './broker-error.ts';
import {
  type CallerProver,
  holderKeyOf,
  jwtSvidProver,
  mtlsProver,
  newHolderKey,
  pemOf,
  signedFormProver,
} from './caller-prover.ts';
import type { CallerIdentity, IdentitySource } from './identity-source.ts';
import { spiffeServerFault } from './server-identity.ts';
import { chooseSvid, type SvidChoice, type SvidOffer } from './svid-choice.ts';

/** The part of the Workload API that a caller needs. */
export interface CallerWorkloadApi {
  /** Streams until the signal aborts, across restarts of the agent. @throws WorkloadApiError */
  watch(handlers: X509SvidWatch): Promise<void>;
  /** Returns a JWT-SVID of this SPIFFE ID for only this audience. @throws WorkloadApiError */
  jwtSvid(audience: string, spiffeId: string): Promise<string>;
}

export interface SvidSourceOptions {
  readonly api: CallerWorkloadApi;
  readonly choice: SvidChoice;
  readonly proof: 'mtls' | 'signed_form' | 'jwt_svid';
  /** Pins the broker; its trust domain's authorities come from the Workload API. */
  readonly brokerSpiffeId: string | undefined;
  readonly readCaPem: () => Promise<string | undefined>;
  readonly nowMs: () => number;
}

/** Timeout for the first SVID. SPIRE's agent needs some seconds to learn of a new entry. */
const FIRST_UPDATE_MS = 10_000;

export class SvidSource implements IdentitySource {
  readonly #options: SvidSourceOptions;
  readonly #closed = new AbortController();
  /** Aborted when no first update can be expected: the source is closed, or the agent refuses the call. */
  readonly #ended = new AbortController();
  readonly #listeners = new Set<() => void>();
  /** Holder key of proofs that do not use the SVID's key. It is kept only in memory, for the lifetime of this source. */
  readonly #ownHolderKey: SigningKey = newHolderKey();
  #update: X509SvidUpdate | undefined;
  #problem: WorkloadApiError | undefined;
  /** Thumbprint of the holder key for the last update; undefined when the choice failed. */
  #holder: string | undefined;

  constructor(options: SvidSourceOptions) {
    this.#options = options;
    void this.#follow();
  }

  async #follow(): Promise<void> {
    try {
      await this.#options.api.watch({
        onUpdate: (update) => this.#applyUpdate(update),
        onError: (problem) => {
          this.#problem = problem;
          if (problem.code === 'workload_api_refused') this.#ended.abort();
        },
        signal: this.#closed.signal,
      });
    } catch (error) {
      this.#problem = asWorkloadApiError(error);
    }
    this.#ended.abort();
  }

  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  close(): void {
    this.#closed.abort();
  }

  /** @throws BrokerError `workload_api_unavailable`, `svid_expired`, `svid_ambiguous`, `svid_not_found`, `broker_trust_domain_unknown` */
  async current(stop: AbortSignal): Promise<CallerIdentity> {
    const update = this.#update ?? (await this.#firstUpdate(stop));
    const { choice, nowMs } = this.#options;
    const svid = chooseSvid(update.svids, choice);
    if (!(nowMs() < svid.notAfterMs)) {
      throw new BrokerError(
        'refused',
        'svid_expired',
        `the X.509-SVID of ${svid.spiffeId} has expired${this.#why}`,
      );
    }
    return {
      prover: this.#prover(svid),
      svid: { spiffeId: svid.spiffeId, expiresAtMs: svid.notAfterMs },
      trust: await this.#trust(update),
    };
  }

  #prover(svid: SvidOffer): CallerProver {
    const { api, proof } = this.#options;
    if (proof === 'jwt_svid') {
      const { spiffeId } = svid;
      const fetchToken = (audience: string) =>
        api.jwtSvid(audience, spiffeId).catch((error: unknown) => {
          throw workloadApiFault(asWorkloadApiError(error));
        });
      return jwtSvidProver(fetchToken, this.#ownHolderKey);
    }
    // An RSA or P-384 key cannot be a holder key, so it signs the form instead.
    const holderKey = proof === 'mtls' ? holderKeyOf(svid) : undefined;
    return holderKey === undefined ? signedFormProver(svid, this.#ownHolderKey) : mtlsProver(svid, holderKey);
  }

  async #trust(update: X509SvidUpdate): Promise<CallerIdentity['trust']> {
    const { brokerSpiffeId, readCaPem } = this.#options;
    if (brokerSpiffeId === undefined) return { caPem: await readCaPem() };
    const [, trustDomain = ''] = /^spiffe:\/\/([^/]+)/.exec(brokerSpiffeId) ?? [];
    const bundle = update.bundles.find((known) => known.trustDomain === trustDomain);
    if (bundle === undefined || bundle.x509Authorities.length === 0) {
      throw new BrokerError(
        'refused',
        'broker_trust_domain_unknown',
        `the Workload API has no trust bundle of ${trustDomain}: is the trust domain of --broker-spiffe-id federated?`,
      );
    }
    return {
      caPem: bundle.x509Authorities.map(({ der }) => pemOf(der)).join(''),
      checkServer: (certificate) => spiffeServerFault(brokerSpiffeId, certificate),
    };
  }

  /** A new SVID with the same holder key is not a change, because issued passports remain valid. */
  #applyUpdate(update: X509SvidUpdate): void {
    const isFirst = this.#update === undefined;
    this.#update = update;
    this.#problem = undefined;
    const holder = this.#holderOf(update);
    if (!isFirst && holder === this.#holder) return;
    this.#holder = holder;
    for (const listener of [...this.#listeners]) listener();
  }

  /** Undefined when the choice fails; the next call reports the reason. */
  #holderOf({ svids }: X509SvidUpdate): string | undefined {
    try {
      const svid = chooseSvid(svids, this.#options.choice);
      return this.#prover(svid).holderKey.publicKey.thumbprint;
    } catch (error) {
      if (error instanceof BrokerError) return undefined;
      throw error;
    }
  }

  async #firstUpdate(stop: AbortSignal): Promise<X509SvidUpdate> {
    await new Promise<void>((resolve) => {
      // AbortSignal.timeout cannot be used: in Node.js 20 a signal that only AbortSignal.any refers to may be garbage
      // collected and never abort.
      const timer = setTimeout(end, FIRST_UPDATE_MS);
      const unsubscribe = this.onChange(end);
      const signals = [stop, this.#ended.signal];
      function end(): void {
        clearTimeout(timer);
        unsubscribe();
        for (const signal of signals) signal.removeEventListener('abort', end);
        resolve();
      }
      for (const signal of signals) signal.addEventListener('abort', end);
      if (signals.some(({ aborted }) => aborted)) end();
    });
    if (this.#update !== undefined) return this.#update;
    throw this.#problem === undefined
      ? new BrokerError('unreachable', 'workload_api_unavailable', NO_SVID)
      : workloadApiFault(this.#problem);
  }

  /** Describes why there is no newer SVID; empty when nothing prevents one. */
  get #why(): string {
    return this.#problem === undefined ? '' : `, and ${this.#problem.message}`;
  }
}

const NO_SVID = `the Workload API gave no X.509-SVID within ${FIRST_UPDATE_MS / 1000} s`;

const FAULTS: { readonly [C in WorkloadApiError['code']]: BrokerFault } = {
  workload_api_address: 'usage',
  workload_api_malformed: 'unreachable',
  workload_api_no_identity: 'refused',
  workload_api_refused: 'refused',
  workload_api_unavailable: 'unreachable',
};

function workloadApiFault({ code, message }: WorkloadApiError): BrokerError {
  const hint = ': is --spiffe-socket right, and the SPIFFE agent running?';
  return new BrokerError(FAULTS[code], code, code === 'workload_api_unavailable' ? message + hint : message);
}
