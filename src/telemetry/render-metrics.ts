/** Prometheus text of a registry, metric by metric: decisions that came in meanwhile are made in between. */
import { setImmediate as othersTurn } from 'node:timers/promises';
import type { Registry } from 'prom-client';

/** As `registry.metrics()`, whose text is made in one piece. */
export async function renderMetrics(registry: Registry): Promise<string> {
  const texts: string[] = [];
  for (const { name } of registry.getMetricsAsArray()) {
    texts.push(await registry.getSingleMetricAsString(name));
    await othersTurn();
  }
  return `${texts.join('\n\n')}\n`;
}
