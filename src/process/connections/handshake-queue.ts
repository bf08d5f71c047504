/**
 * Decides when the server processes the bytes of a TLS handshake. OpenSSL verifies each signature of a client's
 * certificate chain on the event loop before it rejects the chain, so the sender chooses the cost: see SECURITY.md.
 */
import { isIPv6 } from 'node:net';

/** An ordinary handshake takes about 2 ms. */
const COSTLY_MS = 5;

/**
 * After a costly handshake, all handshakes wait for as long as it took: other work gets half of the event loop. Networks are
 * served round robin, so that one cannot delay the others' handshakes by its number of connections.
 */
export class HandshakeQueue {
  readonly #waiting = new Map<string, (() => void)[]>();
  readonly #nowMs: () => number;
  #isBusy = false;

  constructor(nowMs: () => number = () => performance.now()) {
    this.#nowMs = nowMs;
  }

  /** Calls `work` at once, or later. */
  run(address: string | undefined, work: () => void): void {
    const network = networkOf(address ?? '');
    const queue = this.#waiting.get(network);
    if (!this.#isBusy) this.#start(work);
    else if (queue === undefined) this.#waiting.set(network, [work]);
    else queue.push(work);
  }

  #start(work: () => void): void {
    this.#isBusy = true;
    const startMs = this.#nowMs();
    try {
      work();
    } finally {
      const spentMs = this.#nowMs() - startMs;
      if (spentMs >= COSTLY_MS) setTimeout(() => this.#startNext(), spentMs).unref();
      else if (this.#waiting.size > 0) setImmediate(() => this.#startNext());
      else this.#isBusy = false;
    }
  }

  #startNext(): void {
    const work = this.#takeNext();
    if (work === undefined) this.#isBusy = false;
    else this.#start(work);
  }

  #takeNext(): (() => void) | undefined {
    for (const [network, queue] of this.#waiting) {
      const work = queue.shift();
      // The network's next turn comes after those of all others.
      this.#waiting.delete(network);
      if (queue.length > 0) this.#waiting.set(network, queue);
      return work;
    }
    return undefined;
  }
}

/** The /64 of an IPv6 address, because one sender usually has all of it; else the address. */
export function networkOf(address: string): string {
  const unmapped = address.replace(/^::ffff:(?=\d+\.)/i, '');
  if (!isIPv6(unmapped)) return unmapped;
  const [left = [], right = []] = unmapped.split('::').map((part) => part.split(':').filter(Boolean));
  const zeros = Array<string>(8 - left.length - right.length).fill('0');
  return [...left, ...zeros, ...right].slice(0, 4).join(':');
}
