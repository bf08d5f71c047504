/**
 * Metrics of the replay store's fences and connections.
 * Source: docs/enforcement.md "Metrics".
 */
import { Counter, Gauge, type Registry } from 'prom-client';

/** Values of the gauges, read at each scrape. */
export interface ReplayReading {
  /** Seconds until no fence is up; 0 when none is. */
  readonly fenceSecondsLeft: number;
  /** Undefined for a store without connections. */
  readonly links: { readonly serving: number; readonly unfit: number } | undefined;
}

export interface ReplayMetrics {
  fenceRaised(why: string): void;
}

/** @param reasons every value of `why`, because alerts need series that exist from the start */
export function createReplayMetrics(
  registry: Registry,
  reasons: readonly string[],
  read: () => ReplayReading | undefined,
): ReplayMetrics {
  const fences = new Counter({
    name: 'proofgate_replay_fences_total',
    help: 'Fences of the replay store that this process saw go up, by reason.',
    labelNames: ['why'],
    registers: [registry],
  });
  for (const why of reasons) fences.inc({ why }, 0);
  new Gauge({
    name: 'proofgate_replay_fence_seconds',
    help: 'Seconds until proofs signed then are taken by every part of the replay store; 0 without a fence.',
    registers: [registry],
    collect() {
      this.set(read()?.fenceSecondsLeft ?? 0);
    },
  });
  new Gauge({
    name: 'proofgate_replay_links',
    help: 'Connections to primaries of the replay store by state.',
    labelNames: ['state'],
    registers: [registry],
    collect() {
      const links = read()?.links;
      if (links === undefined) return;
      this.set({ state: 'serving' }, links.serving);
      this.set({ state: 'unfit' }, links.unfit);
    },
  });
  return { fenceRaised: (why) => fences.inc({ why }) };
}
