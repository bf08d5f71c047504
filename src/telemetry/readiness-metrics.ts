/**
 * Exports the checks of `/readyz` as metrics, for alerts.
 * Source: docs/enforcement.md "Metrics".
 */
import { Gauge, type Registry } from 'prom-client';

export interface ReadinessReading {
  /** Name of a check of `/readyz`, from a small set. */
  readonly name: string;
  readonly problem: string | undefined;
}

/** @param read called at each scrape */
export function createReadinessMetrics(registry: Registry, read: () => readonly ReadinessReading[]): void {
  new Gauge({
    name: 'proofgate_ready',
    help: 'Whether each check of /readyz is in order: 1, or 0 where it makes the process not ready.',
    labelNames: ['check'],
    registers: [registry],
    collect() {
      for (const { name, problem } of read()) this.set({ check: name }, problem === undefined ? 1 : 0);
    },
  });
}
