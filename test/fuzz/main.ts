/** Fuzzes one target and prints the result as a line of JSON on standard output. Started by `scripts/fuzz.mjs`. */
import { createHash } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { coverageFigures } from './engine/coverage.ts';
import { type Finding, fuzz } from './engine/fuzzer.ts';
import type { FuzzTarget } from './target.ts';
import { TARGET_NAMES, TARGETS, type TargetName } from './targets.ts';

const FINDINGS = fileURLToPath(new URL('../../.build/fuzz-findings/', import.meta.url));

const [, , name = '', runs = '', seed = ''] = process.argv;
const startedMs = performance.now();
const target = await load(name);
const loadedMs = performance.now();
const result = await fuzz(target, { runs: Number(runs), seed: Number(seed), onProgress: report });
const { finding, ...figures } = result;
const seconds = (performance.now() - loadedMs) / 1000;
const line = {
  target: name,
  seed: Number(seed),
  ...figures,
  ...coverageFigures(),
  seconds,
  perSecond: figures.executions / seconds,
};
process.stdout.write(`${JSON.stringify({ ...line, finding: finding && written(finding) })}\n`);
// Timers of what was loaded would keep the process.
process.exit(finding === undefined ? 0 : 1);

async function load(wanted: string): Promise<FuzzTarget> {
  if (wanted === 'canary') return (await import('./canary.ts')).canaryTarget;
  if (!TARGET_NAMES.includes(wanted as TargetName)) throw new Error(`no such target: ${wanted}`);
  return TARGETS[wanted as TargetName]();
}

function report(executions: number, kept: number): void {
  const { edgesTaken, features } = coverageFigures();
  const seconds = Math.round((performance.now() - startedMs) / 1000);
  process.stderr.write(
    `${name}: ${executions} executions, ${kept} inputs kept, ${edgesTaken} edges, ${features} features, ${seconds} s\n`,
  );
}

/** The input as a file, and what it broke. */
function written({ error, input }: Finding): { readonly file: string; readonly error: string } {
  mkdirSync(FINDINGS, { recursive: true });
  const id = createHash('sha256').update(input).digest('hex').slice(0, 12);
  const file = `${FINDINGS}${name}-${id}`;
  writeFileSync(file, input);
  return { file, error: error.stack ?? error.message };
}
