import type { Registry } from 'prom-client';
import { instrumentsOf } from '../telemetry/instruments.ts';

/** Exports the checks of `/readyz`, for alerts. @param read names from a small set; called at each scrape */
export function createReadinessMetrics(
  registry: Registry,
  read: () => readonly { readonly name: string; readonly problem: string | undefined }[],
): void {
  instrumentsOf(registry).readings(
    'proofgate_ready',
    'Whether each check of /readyz is in order: 1, or 0 where it makes the process not ready.',
    'check',
    () => read().map(({ name, problem }) => [name, problem === undefined ? 1 : 0] as const),
  );
}
