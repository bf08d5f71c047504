/** Whose token a request carries: looked up by its hash, and remembered for seconds. */
import { LRUCache } from 'lru-cache';
import { Refusal } from '../domain/refusal.ts';
import { tokenHash, tokenKind } from '../secrets/bearer-token.ts';
import type { ControlStore } from '../store/port.ts';

const REMEMBERED_MS = 2000;
const MAX_REMEMBERED = 10_000;
const BEARER = /^Bearer +([A-Za-z0-9_-]+)$/i;

export interface KnownTarget {
  readonly targetId: string;
  readonly siteId: string;
}

export class TargetTokens {
  readonly #store: ControlStore;
  readonly #nowMs: () => number;
  readonly #remembered = new LRUCache<string, KnownTarget>({ max: MAX_REMEMBERED, ttl: REMEMBERED_MS });

  constructor(store: ControlStore, nowMs: () => number) {
    this.#store = store;
    this.#nowMs = nowMs;
  }

  /** @throws Refusal `authentication_required` */
  async owner(authorization: string | undefined): Promise<KnownTarget> {
    const token = BEARER.exec(authorization ?? '')?.[1];
    if (token === undefined || tokenKind(token) !== 'target') throw new Refusal('authentication_required');
    const hash = tokenHash(token);
    const known = this.#remembered.get(hash);
    if (known !== undefined) return known;
    const row = await this.#store.read((tx) => tx.targets.byTokenHash(hash, this.#nowMs()));
    if (row === undefined) throw new Refusal('authentication_required');
    const target = { targetId: row.id, siteId: row.siteId };
    this.#remembered.set(hash, target);
    return target;
  }

  /** A target of the site may have been detached, or a token rotated. */
  forgetSite(siteId: string): void {
    for (const [hash, target] of this.#remembered.entries()) {
      if (target.siteId === siteId) this.#remembered.delete(hash);
    }
  }
}
