/**
 * Bytes that arrive in parts, in one buffer. Each part is copied, because a list of one-byte parts would take two
 * hundred times their size, and a short part may retain the long buffer that contains it.
 */

const FIRST_CAPACITY_BYTES = 1_024;

export class GrowingBuffer {
  #buffer = Buffer.alloc(0);
  #lengthBytes = 0;

  get lengthBytes(): number {
    return this.#lengthBytes;
  }

  append(chunk: Uint8Array): void {
    const lengthBytes = this.#lengthBytes + chunk.length;
    if (lengthBytes > this.#buffer.length) this.#grow(lengthBytes);
    this.#buffer.set(chunk, this.#lengthBytes);
    this.#lengthBytes = lengthBytes;
  }

  /** All bytes so far. Later parts do not change them. */
  bytes(): Buffer {
    return this.#buffer.subarray(0, this.#lengthBytes);
  }

  #grow(neededBytes: number): void {
    // The first part is often all of it.
    const isFirst = this.#lengthBytes === 0 && neededBytes > FIRST_CAPACITY_BYTES;
    const capacity = isFirst
      ? neededBytes
      : Math.max(neededBytes, 2 * this.#buffer.length, FIRST_CAPACITY_BYTES);
    const grown = Buffer.allocUnsafeSlow(capacity);
    this.#buffer.copy(grown, 0, 0, this.#lengthBytes);
    this.#buffer = grown;
  }
}
