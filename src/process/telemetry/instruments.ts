/** Creates metrics in a registry of prom-client, and renders the registry. */
import { setImmediate as yieldToEventLoop } from 'node:timers/promises';
import { Counter, Gauge, type Registry } from 'prom-client';

/** Values of a metric by the value of its label. */
export type Series = Iterable<readonly [labels: string | readonly string[], value: number]>;

type AddCount = (labels: { readonly [name: string]: string }, count: number) => void;

export function instrumentsOf(registry: Registry) {
  const registers = [registry];
  return {
    counter: (name: string, help: string, ...labelNames: string[]) =>
      new Counter({ name, help, labelNames, registers }),

    /**
     * A counter that requests do not touch.
     * @param read called at each scrape; adds every series with its count
     */
    countsRead(
      name: string,
      help: string,
      labelNames: readonly string[],
      read: (add: AddCount) => void,
    ): void {
      new Counter({
        name,
        help,
        labelNames: [...labelNames],
        registers,
        collect() {
          this.reset();
          read((labels, count) => this.inc(labels, count));
        },
      });
    },

    gauge: (name: string, help: string) => new Gauge({ name, help, registers }),

    /** @param read called at each scrape */
    reading(name: string, help: string, read: () => number): void {
      new Gauge({
        name,
        help,
        registers,
        collect() {
          this.set(read());
        },
      });
    },

    /**
     * @param labels names, or the only one
     * @param read called at each scrape; returns every series with its labels' values in order
     */
    readings(
      name: string,
      help: string,
      labels: string | readonly string[],
      read: () => Series | Promise<Series>,
    ): void {
      const labelNames = [labels].flat();
      new Gauge({
        name,
        help,
        labelNames,
        registers,
        async collect() {
          const series = await read();
          this.reset();
          for (const [of, value] of series) {
            const values = [of].flat();
            this.set(Object.fromEntries(labelNames.map((name, index) => [name, values[index] ?? ''])), value);
          }
        },
      });
    },
  };
}

/**
 * Returns the same text as `registry.metrics()`, which blocks until all of it is rendered. This yields after each metric
 * so that decisions are not delayed.
 */
export async function renderMetrics(registry: Registry): Promise<string> {
  const texts: string[] = [];
  for (const { name } of registry.getMetricsAsArray()) {
    texts.push(await registry.getSingleMetricAsString(name));
    await yieldToEventLoop();
  }
  return `${texts.join('\n\n')}\n`;
}
