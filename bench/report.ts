/** The results of a part of the benchmark, printed for people and stored for programs in `bench/results.json`. */
import { readFileSync, writeFileSync } from 'node:fs';
import { cpus, loadavg } from 'node:os';
import { type Interval, median, medianInterval, type Spread, spreadOf } from './statistics.ts';

export interface Figure extends Spread {
  readonly name: string;
  readonly unit: string;
}

/** A figure with an upper bound. */
export interface Bound {
  readonly name: string;
  readonly value: number;
  readonly atMost: number;
  /** Where the value lies, for a median of ratios. */
  readonly interval?: Interval;
}

/** A wider interval says more about the machine than about what was measured. */
const WIDEST_INTERVAL = 0.15;

/** @param ratios of slices that were neighbours in time */
export function ratioBound(name: string, ratios: readonly number[], atMost: number): Bound {
  return { name, value: median(ratios), atMost, interval: medianInterval(ratios) };
}

export interface PartResult {
  readonly figures: readonly Figure[];
  readonly bounds: readonly Bound[];
}

export interface Part {
  /** As on the command line. */
  readonly name: string;
  /** One line about what is measured and how. */
  readonly title: string;
  readonly run: () => Promise<PartResult>;
}

export function figure(name: string, unit: string, samples: readonly number[]): Figure {
  return { name, unit, ...spreadOf(samples) };
}

/** Whether all bounds hold. A ratio that is too noisy holds none. */
export function print(part: Part, { bounds, figures }: PartResult): boolean {
  console.log(`\n${part.name}: ${part.title}`);
  for (const { least, median, most, name, unit } of figures) {
    const range = least === most ? '' : `(${short(least)} to ${short(most)})`;
    console.log(`  ${name.padEnd(58)} ${short(median).padStart(9)} ${unit} ${range}`.trimEnd());
  }
  for (const bound of bounds) console.log(`  ${bound.name.padEnd(58)} ${verdictOn(bound)}`);
  return bounds.every((bound) => !isTooNoisy(bound) && bound.value <= bound.atMost);
}

function isTooNoisy({ interval }: Bound): boolean {
  return interval !== undefined && !(interval.most - interval.least <= WIDEST_INTERVAL);
}

function verdictOn(bound: Bound): string {
  const { atMost, interval, value } = bound;
  const range = interval && `${interval.least.toFixed(2)} to ${interval.most.toFixed(2)}`;
  if (isTooNoisy(bound))
    return `no ratio: ${range} is wider than ${WIDEST_INTERVAL}, the machine is too busy`;
  const where = range === undefined ? '' : `${range}, `;
  return `${value.toFixed(2).padStart(9)} (${where}at most ${atMost}): ${value <= atMost ? 'ok' : 'TOO MUCH'}`;
}

function short(value: number): string {
  return Math.abs(value) >= 1000 ? value.toFixed(0) : value.toPrecision(3);
}

/** Puts a part's result in the place of its former one; other parts keep theirs. */
export function keep(path: string, part: Part, result: PartResult): void {
  const results: { [name: string]: unknown } = readResults(path);
  results[part.name] = { title: part.title, ...machine(), ...result };
  writeFileSync(path, `${JSON.stringify(results, rounded, 2)}\n`);
}

function readResults(path: string): { [name: string]: unknown } {
  try {
    return JSON.parse(readFileSync(path, 'utf8'));
  } catch {
    return {};
  }
}

function machine() {
  const [{ model } = { model: 'unknown' }] = cpus();
  return {
    measured_at: new Date().toISOString(),
    node: process.versions.node,
    cpu: `${cpus().length} x ${model}`,
    load_average: Number(loadavg()[0]?.toFixed(1)),
  };
}

function rounded(_: string, value: unknown): unknown {
  return typeof value === 'number' && !Number.isInteger(value) ? Number(value.toPrecision(4)) : value;
}
