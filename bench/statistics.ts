/** Statistics over samples. */

export interface Spread {
  readonly median: number;
  readonly least: number;
  readonly most: number;
}

export function spreadOf(samples: readonly number[]): Spread {
  const sorted = ascending(samples);
  return {
    median: percentile(sorted, 0.5),
    least: sorted[0] ?? Number.NaN,
    most: sorted.at(-1) ?? Number.NaN,
  };
}

export function median(samples: readonly number[]): number {
  return percentile(ascending(samples), 0.5);
}

/** Least and most that the median is, with a confidence of 95 %, by ranks (Conover, Practical Nonparametric Statistics, section 3.2). */
export interface Interval {
  readonly least: number;
  readonly most: number;
}

export function medianInterval(samples: readonly number[]): Interval {
  const sorted = ascending(samples);
  const skipped = Math.max(0, Math.floor((sorted.length - 1.96 * Math.sqrt(sorted.length)) / 2));
  return { least: sorted[skipped] ?? Number.NaN, most: sorted.at(-1 - skipped) ?? Number.NaN };
}

/** @param sorted ascending @param share 0 to 1: the sample that so many are at or below */
export function percentile(sorted: readonly number[], share: number): number {
  return sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)] ?? Number.NaN;
}

export function ascending(samples: readonly number[]): readonly number[] {
  return [...samples].sort((a, b) => a - b);
}

/** Least squares: how much `y` grows while `x` grows by one. */
export function slopeOf(points: readonly { readonly x: number; readonly y: number }[]): number {
  const meanX = points.reduce((sum, { x }) => sum + x, 0) / points.length;
  const meanY = points.reduce((sum, { y }) => sum + y, 0) / points.length;
  const covariance = points.reduce((sum, { x, y }) => sum + (x - meanX) * (y - meanY), 0);
  return covariance / points.reduce((sum, { x }) => sum + (x - meanX) ** 2, 0);
}
