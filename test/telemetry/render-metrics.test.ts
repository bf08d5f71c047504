/** Tests the text of a scrape, which is rendered in pieces. */
import { expect, it } from '@jest/globals';
import { Counter, Registry } from 'prom-client';
import { renderMetrics } from '../../src/telemetry/metrics.ts';

const METRICS = 20;

function registryOf(count: number): Registry {
  const registry = new Registry();
  registry.setDefaultLabels({ worker: '1' });
  for (let at = 0; at < count; at += 1) {
    new Counter({ name: `counter_${at}`, help: 'One', labelNames: ['of'], registers: [registry] }).inc({
      of: 'x',
    });
  }
  return registry;
}

it('says what the library says', async () => {
  for (const registry of [registryOf(METRICS), registryOf(0)]) {
    expect(await renderMetrics(registry)).toBe(await registry.metrics());
  }
});

it('lets others have their turn after each metric', async () => {
  let turns = 0;
  let isDone = false;
  const turn = () => {
    turns += 1;
    if (!isDone) setImmediate(turn);
  };
  setImmediate(turn);
  await renderMetrics(registryOf(METRICS));
  isDone = true;
  expect(turns).toBeGreaterThanOrEqual(METRICS - 1);
});
