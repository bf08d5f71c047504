/**
 * A histogram for durations that every request observes several times: one observation is two additions to an array.
 * prom-client looks up labels by a string each time, which made metrics the most expensive part of a check after the
 * cryptography. The scraped output is the same.
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
  /** Number of observations in each bucket, not cumulative; the last bucket has no upper bound. */
  readonly counts: Float64Array;
  sumSeconds: number;
}

export class DurationHistogram extends Histogram {
  readonly #name: string;
  /** An empty prom-client histogram, for its metadata. */
  readonly #described: Histogram;
  readonly #series: Series[] = [];

  constructor({ help, labelNames, name, registry }: DurationHistogramOptions) {
    const buckets = [...DURATION_BUCKETS_SECONDS];
    super({ name, help, labelNames: [...labelNames], buckets, registers: [registry] });
    this.#name = name;
    this.#described = new Histogram({ name, help, buckets, registers: [] });
  }

  /** Returns a function that observes seconds under these labels. Call once and keep the result. */
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

  /** The values of a scrape. Omits series without observations. */
  override async get(): Promise<HistogramObject> {
    const values = this.#series.flatMap((series) => this.#valuesOf(series));
    return { ...(await this.#described.get()), values };
  }

  /** The registry of prom-client calls this method of histograms when it renders text. */
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
