/** This process set as an instance of its target. Control shows each of them, and how many replay stores they use. */
import { randomBytes } from 'node:crypto';
import { instanceText, MEMORY_STORE } from '../../../bundle/format/instance-report.ts';

const ID_BYTES = 16;
/** Minimum interval between reads: another Redis may answer at the same address. */
const READ_INTERVAL_MS = 10_000;

export interface InstanceOptions {
  /** Of the package. */
  readonly version: string;
  /** Reads the ID of the replay store; undefined for a store in memory. */
  readonly readStoreId: (() => Promise<string>) | undefined;
}

export class Instance {
  readonly #options: InstanceOptions;
  readonly #instanceId = randomBytes(ID_BYTES).toString('base64url');
  /** As last read. */
  #storeId: string | undefined;
  #isReading = false;
  #nextReadMs = 0;

  constructor(options: InstanceOptions) {
    this.#options = options;
    this.#readStoreId();
  }

  /** Header value of a request. Never waits for Redis: a later request has what is read now. */
  text(): string {
    this.#readStoreId();
    const { readStoreId, version } = this.#options;
    const replayStore = readStoreId === undefined ? MEMORY_STORE : this.#storeId;
    return instanceText({ instanceId: this.#instanceId, version, replayStore });
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
