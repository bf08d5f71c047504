/**
 * The limits that verifiers report for how long they use a stale bundle: the longest of a site counts for receipts. It is written
 * before such a verifier gets a document, so that no crash of Control forgets it.
 * Source: docs/operate/control.md "Revocation receipts".
 */
import { LRUCache } from 'lru-cache';
import type { ControlStore } from '../store/port.ts';
import type { RowOf } from '../store/repositories/records.ts';
import { heldBound } from './signed-bounds.ts';
import type { ReportingTarget } from './target-tokens.ts';

type SignedBound = RowOf<'signedBound'>;

/** Interval at which it is written that a verifier without a limit sends requests. */
const UNLIMITED_EVERY_SECONDS = 60;
const MAX_NOTED_TARGETS = 10_000;
/** Clocks of two instances of Control differ by less. */
const CLOCKS_SECONDS = 60;

export interface VerifierLimits {
  /** Longest `--realtime-staleness`. */
  readonly realtimeStalenessSeconds: number;
  /** Until when `expires_at` alone limits some verifier, seconds since the epoch; 0: never. */
  readonly unlimitedUntilSeconds: number;
}

/** A verifier without a limit has nothing that was signed later than a minute after it was last noted. */
export function limitsOf(row: SignedBound): VerifierLimits {
  const { lifetimeSeconds, longestRealtimeSeconds, skewSeconds, unlimitedSeenSeconds: seen } = row;
  const signedUntil = seen + UNLIMITED_EVERY_SECONDS + CLOCKS_SECONDS;
  return {
    realtimeStalenessSeconds: longestRealtimeSeconds,
    unlimitedUntilSeconds: seen === 0 ? 0 : signedUntil + lifetimeSeconds + skewSeconds,
  };
}

export class ReportedLimits {
  readonly #store: ControlStore;
  readonly #nowMs: () => number;
  /** By site: what is written at least. */
  readonly #written = new Map<string, Pick<SignedBound, 'longestRealtimeSeconds' | 'unlimitedSeenSeconds'>>();
  /** Targets that were noted. A site that was deleted and created again has others. */
  readonly #noted = new LRUCache<string, true>({ max: MAX_NOTED_TARGETS });

  constructor(store: ControlStore, nowMs: () => number) {
    this.#store = store;
    this.#nowMs = nowMs;
  }

  /** Call it before a document is sent. */
  async note({ instance, siteId, targetId }: ReportingTarget): Promise<void> {
    const signing = instance?.signing;
    const isUnlimited = signing === undefined || signing.hasBreakGlass;
    const nowSeconds = Math.floor(this.#nowMs() / 1000);
    const staleness = signing?.realtimeStalenessSeconds ?? 0;
    const { longestRealtimeSeconds: longest = 0, unlimitedSeenSeconds: seen = 0 } =
      this.#written.get(siteId) ?? {};
    const isSeen = !isUnlimited || Math.abs(nowSeconds - seen) < UNLIMITED_EVERY_SECONDS;
    if (this.#noted.has(targetId) && isSeen && staleness <= longest) return;
    const written = await this.#store.writeUnaudited(undefined, async (tx) => {
      const row = await heldBound(tx, siteId);
      const next = {
        ...row,
        longestRealtimeSeconds: Math.max(row.longestRealtimeSeconds, staleness),
        unlimitedSeenSeconds: Math.max(row.unlimitedSeenSeconds, isUnlimited ? nowSeconds : 0),
      };
      await tx.signedBounds.put(next);
      return next;
    });
    this.#written.set(siteId, written);
    this.#noted.set(targetId, true);
  }
}
