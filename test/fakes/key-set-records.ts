/**
 * Key set records in memory, with the real contract: of two records, the one fetched later stays. Several caches may share
 * them.
 */
import type {
  KeySetFailure,
  KeySetRecord,
  KeySetRecords,
  KeySource,
} from '../../src/control/issuers/source-keys.ts';

export class MemoryKeySetRecords implements KeySetRecords {
  /** While true, every call fails. */
  isBroken = false;
  loads = 0;
  readonly failures: KeySetFailure[] = [];
  readonly #records = new Map<string, KeySetRecord>();

  async load(source: KeySource): Promise<KeySetRecord | undefined> {
    this.loads += 1;
    if (this.isBroken) throw new Error('the database is gone');
    return this.#records.get(keyOf(source));
  }

  async save(source: KeySource, record: KeySetRecord): Promise<void> {
    if (this.isBroken) throw new Error('the database is gone');
    const before = this.#records.get(keyOf(source));
    if (before === undefined || before.fetchedAtMs <= record.fetchedAtMs) {
      this.#records.set(keyOf(source), record);
    }
  }

  async saveFailure(_source: KeySource, failure: KeySetFailure): Promise<void> {
    if (this.isBroken) throw new Error('the database is gone');
    this.failures.push(failure);
  }
}

function keyOf({ sourceId, revision }: KeySource): string {
  return `${sourceId} ${revision}`;
}
