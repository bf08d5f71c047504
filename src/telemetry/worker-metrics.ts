/** Metrics of a verifier's worker processes, as their primary sees them. */
import { Counter, Gauge, type Registry } from 'prom-client';

export interface WorkerMetrics {
  restarted(): void;
}

/** @param countRunning asked when somebody scrapes */
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
