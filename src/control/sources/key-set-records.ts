/** Stores key sets of source revisions in the database, which shares them between instances and across restarts. */
import type { SourceState } from '../contract/vocabulary.ts';
import type { KeySetFailure, KeySetRecord, KeySetRecords, KeySource } from '../issuers/source-keys.ts';
import type { ControlStore } from '../store/port.ts';
import type { RowOf } from '../store/repositories/records.ts';
import type { Transaction } from '../store/transaction.ts';

export class StoredKeySets implements KeySetRecords {
  readonly #store: ControlStore;

  constructor(store: ControlStore) {
    this.#store = store;
  }

  load(source: KeySource): Promise<KeySetRecord | undefined> {
    return this.#store.read(async (tx) => {
      if (!(await isPresent(tx, source))) return undefined;
      const row = await tx.sources.keySet(source.sourceId, source.revision);
      return row && { jwks: row.jwks, fetchedAtMs: row.fetchedAtMs };
    });
  }

  save(source: KeySource, { jwks, fetchedAtMs }: KeySetRecord): Promise<void> {
    const { sourceId, revision } = source;
    return this.#write(source, (tx) => tx.sources.putKeySet({ sourceId, revision, jwks, fetchedAtMs }));
  }

  saveFailure(source: KeySource, { code, attemptedAtMs }: KeySetFailure): Promise<void> {
    const failure = { failureCode: code, failedAtMs: attemptedAtMs };
    return this.#write(source, (tx) => tx.sources.noteFailedFetch(source.sourceId, source.revision, failure));
  }

  async #write(source: KeySource, write: (tx: Transaction) => Promise<void>): Promise<void> {
    const { sourceId, revision } = source;
    const known = await this.#store.read((tx) => tx.sourceRevisions.find(sourceId, revision));
    if (known === undefined) return;
    // Under the site's lock, so that a concurrently edited revision does not get the keys of its old coordinates.
    await this.#store.writeUnaudited({ kind: 'site', siteId: known.siteId }, async (tx) => {
      if (await isPresent(tx, source)) await write(tx);
    });
  }
}

/** Whether the draft still has this key set URL. */
async function isPresent(tx: Transaction, { sourceId, revision, jwksUri }: KeySource): Promise<boolean> {
  const row = await tx.sourceRevisions.find(sourceId, revision);
  return row?.jwksUri === jwksUri;
}

export function keySourceOf({ sourceId, revision, jwksUri }: RowOf<'sourceRevision'>): KeySource {
  return { sourceId, revision, jwksUri };
}

/** States of revisions that tokens are verified against now or soon: their keys are refreshed. */
export const LIVE_STATES: readonly SourceState[] = ['publishing', 'active'];

export async function liveKeySources(store: ControlStore): Promise<readonly KeySource[]> {
  const rows = await store.read((tx) => tx.sources.everywhereInStates(LIVE_STATES));
  return rows.map(keySourceOf);
}
