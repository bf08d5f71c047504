/**
 * Index of names by expiry: buckets of about a minute, the earliest on top of a heap. Adding and removing a name takes
 * the same time however many there are. Finding expired names costs only what has expired.
 */
const BUCKET_SECONDS = 64;

export class ExpiryIndex {
  readonly #buckets = new Map<number, Set<string>>();
  /** Bucket numbers in a binary heap: none is later than its children. */
  readonly #heap: number[] = [];

  add(name: string, expiresAtSeconds: number): void {
    const number = bucketOf(expiresAtSeconds);
    const bucket = this.#buckets.get(number);
    if (bucket !== undefined) {
      bucket.add(name);
      return;
    }
    this.#buckets.set(number, new Set([name]));
    pushNumber(this.#heap, number);
  }

  /** @param expiresAtSeconds the value that was added */
  remove(name: string, expiresAtSeconds: number): void {
    // An empty bucket stays until its time, because its number is in the heap.
    this.#buckets.get(bucketOf(expiresAtSeconds))?.delete(name);
  }

  /** Removes at most `most` names that expired before the given time in seconds, rounded to the later bucket. */
  takeLapsed(beforeSeconds: number, most: number): readonly string[] {
    const taken: string[] = [];
    for (;;) {
      const first = this.#heap[0];
      if (first === undefined || (first + 1) * BUCKET_SECONDS > beforeSeconds) return taken;
      const bucket = this.#buckets.get(first);
      for (const name of bucket ?? []) {
        if (taken.length >= most) return taken;
        bucket?.delete(name);
        taken.push(name);
      }
      this.#buckets.delete(first);
      popNumber(this.#heap);
    }
  }
}

function bucketOf(expiresAtSeconds: number): number {
  return Math.floor(expiresAtSeconds / BUCKET_SECONDS);
}

function pushNumber(heap: number[], number: number): void {
  let at = heap.length;
  while (at > 0) {
    const parentAt = (at - 1) >> 1;
    const parent = heap[parentAt];
    if (parent === undefined || parent <= number) break;
    heap[at] = parent;
    at = parentAt;
  }
  heap[at] = number;
}

function popNumber(heap: number[]): void {
  const last = heap.pop();
  if (last === undefined || heap.length === 0) return;
  let at = 0;
  for (;;) {
    const [left, right] = [heap[2 * at + 1], heap[2 * at + 2]];
    if (left === undefined) break;
    const [child, childAt] = right !== undefined && right < left ? [right, 2 * at + 2] : [left, 2 * at + 1];
    if (child >= last) break;
    heap[at] = child;
    at = childAt;
  }
  heap[at] = last;
}
