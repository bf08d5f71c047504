/** Metrics of a verifier's worker processes, exported by the primary. */
import { Counter, Gauge, type Registry } from 'prom-client';

export interface WorkerMetrics {
  restarted(): void;
}

/** @param countRunning called at each scrape */
export function createWorkerMetrics(registry: Registry, countRunning: () => number): WorkerMetrics {
  const registers = [registry];
  const restarts = new Counter({
    name: 'proofgate_worker_restarts_total',
    help: 'Worker processes that ended and were started again.',
    registers,
  });
  new Gauge({
    name: 'proofgate_workers_running',
    help: 'Worker processes that serve.',
    registers,
    collect() {
      this.set(countRunning());
    },
  });
  return { restarted: () => restarts.inc() };
}
