import type { OpenCall } from './open-call.ts';

/**
 * The RPCs that are open, in the order in which they began. A list whose links are in the calls and are cut when a call
 * leaves it. Not a Set: with entries that come and go, V8 gives it a new table every few entries, and each outworn table
 * holds the next one and the calls of its time. Once one of them is in the old generation, all after it survive the young
 * collections, and a collection takes three times as long.
 */
export class OpenCallList implements Iterable<OpenCall> {
  #first: OpenCall | undefined;
  #last: OpenCall | undefined;
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** A call is added once. */
  add(call: OpenCall): void {
    call.previous = this.#last;
    if (this.#last === undefined) this.#first = call;
    else this.#last.next = call;
    this.#last = call;
    call.isListed = true;
    this.#size += 1;
  }

  /** @returns whether it was there */
  delete(call: OpenCall): boolean {
    if (!call.isListed) return false;
    const { next, previous } = call;
    if (previous === undefined) this.#first = next;
    else previous.next = next;
    if (next === undefined) this.#last = previous;
    else next.previous = previous;
    call.next = undefined;
    call.previous = undefined;
    call.isListed = false;
    this.#size -= 1;
    return true;
  }

  /** Ends where the call that is being visited leaves the list: who may cause that goes through a copy. */
  *[Symbol.iterator](): Iterator<OpenCall> {
    for (let call = this.#first; call !== undefined; call = call.next) yield call;
  }
}
