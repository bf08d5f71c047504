/**
 * A histogram for durations that every request observes several times: an observation is two additions to an array.
 * The library's own looks its labels up by a text each time, which made metrics the costliest part of a check after
 * the cryptography. What is scraped is the same.
 */
import { Histogram, type Registry } from 'prom-client';

type HistogramObject = Awaited<ReturnType<Histogram['get']>>;
type HistogramValue = HistogramObject['values'][number];

/** Upper bounds, seconds; a decision takes about a tenth of a millisecond, the longest wait is for Redis. */
export const DURATION_BUCKETS_SECONDS: readonly number[] = [
  0.00001, 0.000025, 0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.05, 0.1, 0.5,
];

export interface DurationHistogramOptions {
  readonly name: string;
  readonly help: string;
  readonly labelNames: readonly string[];
  readonly registry: Registry;
}

interface Series {
  readonly labels: { readonly [name: string]: string };
  /** Observations a bucket, the last one for what is longer than all bounds; not cumulated. */
  readonly counts: Float64Array;
  sumSeconds: number;
}

export class DurationHistogram extends Histogram {
  readonly #name: string;
  /** An empty one of the library's: what it says of itself. */
  readonly #described: Histogram;
  readonly #series: Series[] = [];

  constructor({ help, labelNames, name, registry }: DurationHistogramOptions) {
    const buckets = [...DURATION_BUCKETS_SECONDS];
    super({ name, help, labelNames: [...labelNames], buckets, registers: [registry] });
    this.#name = name;
    this.#described = new Histogram({ name, help, buckets, registers: [] });
  }

  /** A function that observes seconds under these labels. Ask once, keep it. */
  series(labels: Series['labels']): (seconds: number) => void {
    const series: Series = {
      labels,
      counts: new Float64Array(DURATION_BUCKETS_SECONDS.length + 1),
      sumSeconds: 0,
    };
    this.#series.push(series);
    const { counts } = series;
    return (seconds) => {
      let bucket = 0;
      while (seconds > (DURATION_BUCKETS_SECONDS[bucket] ?? Number.POSITIVE_INFINITY)) bucket += 1;
      counts[bucket] = (counts[bucket] ?? 0) + 1;
      series.sumSeconds += seconds;
    };
  }

  /** What a scrape reads. A series that nothing was observed in is left out. */
  override async get(): Promise<HistogramObject> {
    const values = this.#series.flatMap((series) => this.#valuesOf(series));
    return { ...(await this.#described.get()), values };
  }

  /** The library's registry asks histograms by this name when it writes text. */
  getForPromString(): Promise<HistogramObject> {
    return this.get();
  }

  #valuesOf({ counts, labels, sumSeconds }: Series): HistogramValue[] {
    const values: HistogramValue[] = [];
    let count = 0;
    for (const [bucket, inBucket] of counts.entries()) {
      count += inBucket;
      const le = DURATION_BUCKETS_SECONDS[bucket] ?? '+Inf';
      values.push({ labels: { le, ...labels }, value: count, metricName: `${this.#name}_bucket` });
    }
    if (count === 0) return [];
    values.push({ labels, value: sumSeconds, metricName: `${this.#name}_sum` });
    values.push({ labels, value: count, metricName: `${this.#name}_count` });
    return values;
  }
}
