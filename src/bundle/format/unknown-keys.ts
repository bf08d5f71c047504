/**
 * Keys of OAuth issuers that access tokens name and a verifier does not have: what an instance of a verifier posts to Control. Nothing
 * of it is verified: callers choose the names of keys.
 * Source: docs/design/bundle.md "Distribution".
 */
export const UNKNOWN_KEYS_PATH = '/v1/targets/self/unknown-keys';
/** Maximum number of keys in a post. */
export const MAX_UNKNOWN_KEYS = 8;

export interface UnknownKey {
  /** Of an OAuth issuer of the bundle. */
  readonly issuer: string;
  /** `kid` of the token: 1 to 128 characters. */
  readonly kid: string;
}

/** JSON of a post. */
export interface UnknownKeysReport {
  readonly keys: readonly UnknownKey[];
}

/** The first unknown key of each issuer: one is enough for Control to fetch the issuer's keys. As large as the number of issuers. */
export class UnknownKeys {
  readonly #kids = new Map<string, string>();

  get size(): number {
    return this.#kids.size;
  }

  add({ issuer, kid }: UnknownKey): void {
    if (!this.#kids.has(issuer)) this.#kids.set(issuer, kid);
  }

  /** Removes and returns those that are waiting for the longest time, at most {@link MAX_UNKNOWN_KEYS}. */
  takePage(): readonly UnknownKey[] {
    const page = [...this.#kids].slice(0, MAX_UNKNOWN_KEYS).map(([issuer, kid]) => ({ issuer, kid }));
    for (const { issuer } of page) this.#kids.delete(issuer);
    return page;
  }
}
