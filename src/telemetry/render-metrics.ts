/** Prometheus text of a registry, metric by metric: yields between metrics so that decisions are not delayed. */
import { setImmediate as othersTurn } from 'node:timers/promises';
import type { Registry } from 'prom-client';

/** The same text as `registry.metrics()`, which blocks until all of it is made. */
export async function renderMetrics(registry: Registry): Promise<string> {
  const texts: string[] = [];
  for (const { name } of registry.getMetricsAsArray()) {
    texts.push(await registry.getSingleMetricAsString(name));
    await othersTurn();
  }
  return `${texts.join('\n\n')}\n`;
}
