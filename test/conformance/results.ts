/** The results of each point as data: `results/<point>.json`. `make conformance` writes them again. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { checkoutPath } from '../support/harness/checkout.ts';
import type { Protocol } from '../support/site/gateway.ts';

/** One outcome where it is the same over every protocol of the point and case. */
export type Result = string | { readonly [P in Protocol]?: string };
export type PointResults = { readonly [name: string]: Result };

/** Set by `make conformance`. */
export const WRITES_RESULTS = process.env.PROOFGATE_TEST_WRITE_RESULTS === '1';

const fileOf = (point: string) => checkoutPath('test', 'conformance', 'results', `${point}.json`);

export interface NamedResults {
  readonly point: string;
  readonly results: PointResults;
}

/** What becomes of the headers of other proxies, by their names. */
export const forwardedResultsOf = (point: string) => `forwarded/${point}`;

/** Undefined for a point that has not run yet. */
export function readResults(point: string): PointResults | undefined {
  const file = fileOf(point);
  return existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : undefined;
}

export function writeResults(point: string, results: PointResults): void {
  writeFileSync(fileOf(point), `${JSON.stringify(results, undefined, 2)}\n`);
}

/** @param outcomes by protocol, at least one */
export function resultOf(outcomes: ReadonlyMap<Protocol, string>): Result {
  const [first, ...others] = new Set(outcomes.values());
  return first !== undefined && others.length === 0 ? first : Object.fromEntries(outcomes);
}

/** Each outcome once. */
export function outcomesOf(result: Result): readonly string[] {
  return typeof result === 'string' ? [result] : [...new Set(Object.values(result))];
}

/** What the core decides about each case: `allowed`, `malformed` or `reason/detail`. */
export function readCoreResults(): { readonly [name: string]: string } {
  return JSON.parse(readFileSync(fileOf('core'), 'utf8'));
}

export function writeCoreResults(results: { readonly [name: string]: string }): void {
  writeFileSync(fileOf('core'), `${JSON.stringify(results, undefined, 2)}\n`);
}
