/**
 * A doubly linked list whose links are in its entries. It holds the open RPCs in the order in which they began.
 *
 * Why not a Set: with entries that come and go, V8 allocates a new hash table every few entries, and each old table refers to
 * the next one and to the entries of its time. Once one old table is in the old generation, everything after it survives the
 * young collections. Measured in docs/operate/performance.md, "A check": `make bench PARTS="latency envoy"`.
 */
export class LinkedList<Entry extends Linked<Entry>> implements Iterable<Entry> {
  #first: Entry | undefined;
  #last: Entry | undefined;
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** An entry is added once. */
  add(entry: Entry): void {
    entry.previous = this.#last;
    if (this.#last === undefined) this.#first = entry;
    else this.#last.next = entry;
    this.#last = entry;
    entry.isListed = true;
    this.#size += 1;
  }

  /** @returns whether the entry was in the list */
  delete(entry: Entry): boolean {
    if (!entry.isListed) return false;
    const { next, previous } = entry;
    if (previous === undefined) this.#first = next;
    else previous.next = next;
    if (next === undefined) this.#last = previous;
    else next.previous = previous;
    entry.next = undefined;
    entry.previous = undefined;
    entry.isListed = false;
    this.#size -= 1;
    return true;
  }

  /** Iteration ends if the visited entry is removed. Iterate over a copy if that can happen. */
  *[Symbol.iterator](): Iterator<Entry> {
    for (let entry = this.#first; entry !== undefined; entry = entry.next) yield entry;
  }
}

/** The links of an entry. Only the list reads and writes them. */
export interface Linked<Entry> {
  next: Entry | undefined;
  previous: Entry | undefined;
  isListed: boolean;
}
