/**
 * Runs services inside one open transaction: each of their mutations joins it, and its audit rows are kept for the end. The
 * caller holds the lock of everything that the services change.
 */
import type { AuditEntry, Lock, Mutated, Transaction, Transactions } from '../store/port.ts';

export class JoinedStore implements Transactions {
  readonly #tx: Transaction;
  /** The audit rows of all mutations so far, in their order. */
  readonly audit: AuditEntry[] = [];

  constructor(tx: Transaction) {
    this.#tx = tx;
  }

  read<T>(work: (tx: Transaction) => Promise<T>): Promise<T> {
    return work(this.#tx);
  }

  readAside<T>(work: (tx: Transaction) => Promise<T>): Promise<T> {
    return work(this.#tx);
  }

  async mutate<T>(_lock: Lock, work: (tx: Transaction) => Promise<Mutated<T>>): Promise<T> {
    const { result, audit } = await work(this.#tx);
    for (const entry of audit) this.audit.push(entry);
    return result;
  }

  writeUnaudited<T>(_lock: Lock | undefined, work: (tx: Transaction) => Promise<T>): Promise<T> {
    return work(this.#tx);
  }
}
