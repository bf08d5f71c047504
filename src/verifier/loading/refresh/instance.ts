/**
 * This process set as an instance of its target. Control shows each of them, and how many replay stores they use. It signs what
 * it acknowledges with a key pair of its own, so that an instance never speaks for another that shares the target's token.
 */
import { hash } from 'node:crypto';
import {
  type SignedAcknowledgement,
  signAcknowledgement,
} from '../../../bundle/format/acknowledgement-signature.ts';
import type { Acknowledgement } from '../../../bundle/format/distribution-contract.ts';
import {
  instanceIdOf,
  instanceText,
  MEMORY_STORE,
  type SigningInstance,
} from '../../../bundle/format/instance-report.ts';
import { generateSigningKey } from '../../../protocol/signing.ts';

/** Minimum interval between reads: another Redis may answer at the same address. */
const READ_INTERVAL_MS = 10_000;

export interface InstanceOptions {
  /** Of the package. */
  readonly version: string;
  /** Reads the ID of the replay store; undefined for a store in memory. */
  readonly readStoreId: (() => Promise<string>) | undefined;
  readonly authSite: string;
  /** Maximum age of the bundle on `realtime` routes. */
  readonly realtimeStalenessSeconds: number;
  /** Whether a break-glass key is pinned. */
  readonly hasBreakGlass: boolean;
}

export class Instance {
  readonly #options: InstanceOptions;
  /** Of this run, and kept nowhere. */
  readonly #key = generateSigningKey('Ed25519');
  readonly #signing: SigningInstance;
  readonly #instanceId: string;
  /** As last read. */
  #storeId: string | undefined;
  #isReading = false;
  #nextReadMs = 0;

  constructor(options: InstanceOptions) {
    this.#options = options;
    const { hasBreakGlass, realtimeStalenessSeconds } = options;
    const publicKey = Buffer.from(this.#key.publicKey.rawPoint).toString('base64url');
    this.#signing = { publicKey, realtimeStalenessSeconds, hasBreakGlass };
    this.#instanceId = instanceIdOf(publicKey);
    this.#readStoreId();
  }

  /** Header value of a request. Never waits for Redis: a later request has what is read now. */
  text(): string {
    this.#readStoreId();
    const { readStoreId, version } = this.#options;
    const replayStore = readStoreId === undefined ? MEMORY_STORE : this.#storeId;
    return instanceText({ instanceId: this.#instanceId, version, replayStore, signing: this.#signing });
  }

  /** Header value for an acknowledgement. @param token that the request carries @param hasEnded whether it decides no more requests */
  sign({ head, outcome, revision }: Acknowledgement, token: string, hasEnded = false): string {
    const acknowledgement: SignedAcknowledgement = {
      ...{ authSite: this.#options.authSite, tokenHash: hash('sha256', token, 'base64url') },
      ...{ instanceId: this.#instanceId, signing: this.#signing },
      ...{ revision, head, outcome },
    };
    return signAcknowledgement(acknowledgement, this.#key, { signedAtMs: Date.now(), hasEnded });
  }

  #readStoreId(): void {
    const { readStoreId } = this.#options;
    if (readStoreId === undefined || this.#isReading || performance.now() < this.#nextReadMs) return;
    this.#isReading = true;
    readStoreId()
      .then(
        (storeId) => {
          this.#storeId = storeId;
          this.#nextReadMs = performance.now() + READ_INTERVAL_MS;
        },
        // The verifier itself says that Redis does not answer; the next request tries again.
        () => undefined,
      )
      .finally(() => {
        this.#isReading = false;
      });
  }
}
