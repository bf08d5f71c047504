/**
 * Last uses of derived keys: what an instance of a verifier posts to Control, at a minute's grain, in pages.
 * Source: docs/design/bundle.md "Distribution".
 */
export const LAST_USED_PATH = '/v1/targets/self/last-used';
/** Maximum number of keys in a post. */
export const MAX_KEY_USES = 1000;
const MINUTE_SECONDS = 60;

/** A derived key that signed an allowed request. */
export interface KeyUse {
  readonly keyId: string;
  /** Start of the minute of its last use, seconds since the epoch. */
  readonly usedAtSeconds: number;
}

/** JSON of a post. */
export interface LastUsed {
  readonly keys: readonly {
    readonly key_id: string;
    /** RFC 3339, UTC. */
    readonly used_at: string;
  }[];
}

/** The start of the minute, seconds since the epoch. */
export function minuteOf(seconds: number): number {
  return Math.floor(seconds / MINUTE_SECONDS) * MINUTE_SECONDS;
}

/** The last use of each of several keys. As large as the number of keys; the user of this bounds that. */
export class LastUses {
  readonly #minutes = new Map<string, number>();

  get size(): number {
    return this.#minutes.size;
  }

  add({ keyId, usedAtSeconds }: KeyUse): void {
    const minute = minuteOf(usedAtSeconds);
    if (!((this.#minutes.get(keyId) ?? -1) >= minute)) this.#minutes.set(keyId, minute);
  }

  addAll(uses: readonly KeyUse[]): void {
    for (const use of uses) this.add(use);
  }

  /** Keeps only these keys. */
  keep(isKnown: (keyId: string) => boolean): void {
    for (const keyId of this.#minutes.keys()) {
      if (!isKnown(keyId)) this.#minutes.delete(keyId);
    }
  }

  clear(): void {
    this.#minutes.clear();
  }

  /** Removes and returns the keys that are waiting for the longest time, at most {@link MAX_KEY_USES}. */
  takePage(): readonly KeyUse[] {
    const page: KeyUse[] = [];
    for (const [keyId, usedAtSeconds] of this.#minutes) {
      if (page.length === MAX_KEY_USES) break;
      page.push({ keyId, usedAtSeconds });
      this.#minutes.delete(keyId);
    }
    return page;
  }

  /** The last use of each key, without removing it. */
  all(): readonly KeyUse[] {
    return [...this.#minutes].map(([keyId, usedAtSeconds]) => ({ keyId, usedAtSeconds }));
  }
}
