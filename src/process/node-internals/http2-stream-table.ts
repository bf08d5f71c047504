/**
 * The open streams of an HTTP/2 connection by stream identifier, instead of the Map that Node uses.
 *
 * With entries that come and go, V8 allocates a new hash table for a Map every few entries, and each old table refers to the next one
 * and to the streams of its time. Once one old table is in the old generation, everything after it survives the young collections,
 * which then take about five times as long. Measured in docs/operate/performance.md, "A check":
 * `make bench PARTS="latency envoy"`.
 *
 * Open addressing with linear probing. Stream identifiers are consecutive (RFC 9113 section 5.1.1), so probes are short.
 */

const FIRST_CAPACITY = 32;
/** Stream 0 is the connection itself, so 0 marks a free slot (RFC 9113 section 5.1.1). */
const FREE = 0;

export class StreamTable<Stream> implements Map<number, Stream> {
  /** Stream identifiers by slot. The length is a power of 2, and at most half of the slots are used. */
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
    // Entries that probed past the freed slot move up, so that they are still found.
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

  /** Visits the entries that exist at the start. Unlike a Map, it does not visit what the callback adds. */
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

  /** The slot of the stream, or the free slot where it would go. */
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

/** Streams that clients open have odd identifiers (RFC 9113 section 5.1.1). */
function home(id: number, mask: number): number {
  return (id >>> 1) & mask;
}
