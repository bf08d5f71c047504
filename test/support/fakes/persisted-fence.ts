/** The embedded store's persisted fence over a disk whose writes finish when the test says so, or never. */
import type { PersistedFence } from '../../../src/verifier/replay/persisted-fence.ts';

/** The state that survives a crash. */
export interface FenceDisk {
  throughSeconds: number;
}

export class FakeKeptFence implements PersistedFence {
  readonly startsThroughSeconds: number;
  readonly #disk: FenceDisk;
  #throughSeconds: number;
  #target: number;
  problem: string | undefined;

  constructor(disk: FenceDisk) {
    this.#disk = disk;
    this.startsThroughSeconds = disk.throughSeconds;
    this.#throughSeconds = disk.throughSeconds;
    this.#target = disk.throughSeconds;
  }

  get throughSeconds(): number {
    return this.#throughSeconds;
  }

  keep(throughSeconds: number): void {
    this.#target = Math.max(throughSeconds, this.startsThroughSeconds);
    this.#throughSeconds = Math.min(this.#throughSeconds, this.#target);
  }

  /** The pending write reaches the disk and is acknowledged. */
  settle(): void {
    this.land();
    this.#throughSeconds = this.#target;
  }

  /** The write reaches the disk, and then the power fails. */
  land(): void {
    this.#disk.throughSeconds = this.#target;
  }

  async close(throughSeconds: number): Promise<void> {
    this.keep(throughSeconds);
    this.settle();
  }
}
