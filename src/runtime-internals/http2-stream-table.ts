/**
 * The streams of a connection by their number, for Node to keep them in instead of a Map. With entries that come and go, V8
 * gives a Map a new table every few entries, and each outworn table holds the next one and the streams of its time. Once one of
 * them is in the old generation, where an idle connection brings it, all that come after it survive the young collections, with
 * a tenth of all requests and everything that was made for them; those collections then take five times as long.
 *
 * Open addressing with linear probing: numbers of streams follow each other (RFC 9113 section 5.1.1), so that each is nearly
 * always where it belongs.
 */

const FIRST_CAPACITY = 32;
/** Never the number of a stream. */
const FREE = 0;

export class StreamTable<Stream> implements Map<number, Stream> {
  /** A power of 2 long, and at least half of it is free. */
  #ids = new Int32Array(FIRST_CAPACITY);
  #streams: (Stream | undefined)[] = new Array(FIRST_CAPACITY).fill(undefined);
  #size = 0;

  get size(): number {
    return this.#size;
  }

  get [Symbol.toStringTag](): string {
    return 'StreamTable';
  }

  get(id: number): Stream | undefined {
    return this.#streams[this.#find(id)];
  }

  has(id: number): boolean {
    return id !== FREE && this.#ids[this.#find(id)] === id;
  }

  set(id: number, stream: Stream): this {
    let place = this.#find(id);
    if (this.#ids[place] !== id) {
      if ((this.#size + 1) * 2 > this.#ids.length) {
        this.#grow();
        place = this.#find(id);
      }
      this.#ids[place] = id;
      this.#size += 1;
    }
    this.#streams[place] = stream;
    return this;
  }

  delete(id: number): boolean {
    if (!this.has(id)) return false;
    const mask = this.#ids.length - 1;
    let free = this.#find(id);
    // Whoever had to go further because of it moves up, so that all are still found.
    for (let place = (free + 1) & mask; this.#ids[place] !== FREE; place = (place + 1) & mask) {
      const other = this.#ids[place] ?? FREE;
      if (((place - home(other, mask)) & mask) < ((place - free) & mask)) continue;
      this.#ids[free] = other;
      this.#streams[free] = this.#streams[place];
      free = place;
    }
    this.#ids[free] = FREE;
    this.#streams[free] = undefined;
    this.#size -= 1;
    return true;
  }

  clear(): void {
    this.#ids.fill(FREE);
    this.#streams.fill(undefined);
    this.#size = 0;
  }

  /** Those that were there when it began; unlike a Map's, what the callback adds is not visited. */
  forEach(callback: (stream: Stream, id: number, table: Map<number, Stream>) => void): void {
    for (const [id, stream] of this.entries()) callback(stream, id, this);
  }

  entries(): MapIterator<[number, Stream]> {
    const found: [number, Stream][] = [];
    this.#ids.forEach((id, place) => {
      const stream = this.#streams[place];
      if (id !== FREE && stream !== undefined) found.push([id, stream]);
    });
    return found.values();
  }

  [Symbol.iterator](): MapIterator<[number, Stream]> {
    return this.entries();
  }

  keys(): MapIterator<number> {
    return [...this.entries()].map(([id]) => id).values();
  }

  values(): MapIterator<Stream> {
    return [...this.entries()].map(([, stream]) => stream).values();
  }

  /** Where it is, or would be. */
  #find(id: number): number {
    const mask = this.#ids.length - 1;
    let place = home(id, mask);
    while (this.#ids[place] !== id && this.#ids[place] !== FREE) place = (place + 1) & mask;
    return place;
  }

  #grow(): void {
    const before = [...this.entries()];
    const capacity = this.#ids.length * 2;
    this.#ids = new Int32Array(capacity);
    this.#streams = new Array(capacity).fill(undefined);
    this.#size = 0;
    for (const [id, stream] of before) this.set(id, stream);
  }
}

/** Numbers that clients give are odd. */
function home(id: number, mask: number): number {
  return (id >>> 1) & mask;
}
