/**
 * Takes what targets report of keys of OAuth issuers that they do not have, and brings the next fetch of those keys forward, which the
 * leading instance does. Callers choose the names of keys, so the rate of fetches has a bound, and nothing of a report is kept.
 * Source: docs/operate/control.md "OAuth issuers".
 */
import type { UnknownKey } from '../../bundle/format/unknown-keys.ts';
import { fetchedKids } from '../configuration/oauth-issuers.ts';
import { PostAllowance } from '../decisions/post-allowance.ts';
import { DEFAULT_REFRESH_INTERVAL_MS } from '../issuers/key-set-cache.ts';
import type { KnownTarget } from '../publishing/target-tokens.ts';
import type { ControlStore } from '../store/port.ts';

/** Minimum time between the starts of two fetches of an issuer's keys on a site. */
const MIN_INTERVAL_MS = 10_000;
const FORWARD_MS = DEFAULT_REFRESH_INTERVAL_MS - MIN_INTERVAL_MS;

export interface UnknownOAuthKeysOptions {
  readonly store: Pick<ControlStore, 'read' | 'writeUnaudited'>;
  readonly nowMs: () => number;
}

export class UnknownOAuthKeys {
  readonly #options: UnknownOAuthKeysOptions;
  readonly #allowance = new PostAllowance();

  constructor(options: UnknownOAuthKeysOptions) {
    this.#options = options;
  }

  /** Ignores issuers that are not of the target's site, and keys that Control has. @throws ApiProblem `rate_limited` */
  async report(
    { siteId, targetId }: Pick<KnownTarget, 'siteId' | 'targetId'>,
    keys: readonly UnknownKey[],
  ): Promise<void> {
    const { nowMs, store } = this.#options;
    const now = nowMs();
    this.#allowance.spend(targetId, now);
    for (const { issuer, kid } of keys) {
      const row = await store.read((tx) => tx.oauthIssuers.find(siteId, issuer));
      // A fetch that was brought forward before needs no write: a flood of reports is one of reads.
      const isFar = (row?.attemptedAtMs ?? 0) > now - FORWARD_MS;
      if (row === undefined || !isFar || fetchedKids(row).includes(kid)) continue;
      await store.writeUnaudited(undefined, (tx) =>
        tx.oauthIssuers.bringForward(siteId, issuer, FORWARD_MS, now),
      );
    }
  }
}
