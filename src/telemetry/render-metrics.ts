/** Renders a registry as Prometheus text, one metric at a time. It yields between metrics so that decisions are not delayed. */
import { setImmediate as othersTurn } from 'node:timers/promises';
import type { Registry } from 'prom-client';

/** Returns the same text as `registry.metrics()`, which blocks until all of it is rendered. */
export async function renderMetrics(registry: Registry): Promise<string> {
  const texts: string[] = [];
  for (const { name } of registry.getMetricsAsArray()) {
    texts.push(await registry.getSingleMetricAsString(name));
    await othersTurn();
  }
  return `${texts.join('\n\n')}\n`;
}
