/** The results of a part of the benchmark, printed for people and stored for programs in `bench/results.json`. */
import { readFileSync, writeFileSync } from 'node:fs';
import { cpus, loadavg } from 'node:os';
import { type Spread, spreadOf } from './statistics.ts';

export interface Figure extends Spread {
  readonly name: string;
  readonly unit: string;
}

/** A figure with an upper bound. */
export interface Bound {
  readonly name: string;
  readonly value: number;
  readonly atMost: number;
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

/** Whether all bounds hold. */
export function print(part: Part, { bounds, figures }: PartResult): boolean {
  console.log(`\n${part.name}: ${part.title}`);
  for (const { least, median, most, name, unit } of figures) {
    const range = least === most ? '' : `(${short(least)} to ${short(most)})`;
    console.log(`  ${name.padEnd(58)} ${short(median).padStart(9)} ${unit} ${range}`.trimEnd());
  }
  for (const { atMost, name, value } of bounds) {
    const verdict = value <= atMost ? 'ok' : 'TOO MUCH';
    console.log(`  ${name.padEnd(58)} ${value.toFixed(2).padStart(9)} (at most ${atMost}): ${verdict}`);
  }
  return bounds.every(({ atMost, value }) => value <= atMost);
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
