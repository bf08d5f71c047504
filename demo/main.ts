/**
 * `make demo`: starts a token issuer, Control, a broker, a real Envoy and the sidecar, declares a site and enrolls workloads. It sends a
 * request for each of the specification's "Expected outcomes of verification", prints the answers, and stops and removes
 * everything. `--keep` leaves it running and prints command lines to paste.
 */
import { cases } from './cases.ts';
import { startConsoleSignIn } from './console-sign-in.ts';
import type { DemoEnvironment } from './environment.ts';
import { failureLines } from './failure.ts';
import { firstEnd, pasteLines } from './keep.ts';
import { messageOf, Parts, SetupError } from './parts.ts';
import { hasPassed, screenOf, Table, tableNotes, title } from './report.ts';
import { runCase } from './run-case.ts';
import { startEnvironment } from './start-environment.ts';

/** As a shell reports a program that ended by SIGINT. */
const interruptedExitCode = 130;

interface Totals {
  passed: number;
  failed: number;
}

async function main(args: readonly string[]): Promise<number> {
  const keep = args[0] === '--keep';
  if (args.length > (keep ? 1 : 0)) {
    console.error('error: usage: main.js [--keep]');
    return 2;
  }
  const startedAtMs = performance.now();
  const stop = listenForStop();
  const parts = new Parts();
  const totals: Totals = { passed: 0, failed: 0 };
  let exitCode = await Promise.race([play(parts, totals, { keep, stop }), interruption(stop)]).catch(
    (error: unknown) => {
      console.error(`error: ${messageOf(error)}`);
      if (error instanceof SetupError) for (const line of error.lookAt) console.error(`    ${line}`);
      return 1;
    },
  );
  if (keep && stop.aborted && totals.passed === cases.length) exitCode = 0;
  const problems = await parts.stopAll();
  for (const problem of problems) console.error(`error: not stopped in order: ${problem}`);
  if (problems.length > 0) exitCode ||= 1;
  const seconds = ((performance.now() - startedAtMs) / 1000).toFixed(1);
  console.log(
    `\n${problems.length === 0 ? 'Everything is stopped and removed' : 'Ended'}, after ${seconds} s.`,
  );
  if (totals.passed + totals.failed === cases.length) console.log(totalsLine(totals));
  return exitCode;
}

interface PlayOptions {
  readonly keep: boolean;
  readonly stop: AbortSignal;
}

async function play(parts: Parts, totals: Totals, { keep, stop }: PlayOptions): Promise<number> {
  console.log(`${title}\n`);
  const demo = await startEnvironment(parts, (...lines) => {
    stop.throwIfAborted();
    console.log(lines.join('\n'));
  });
  stop.throwIfAborted();
  console.log('');
  await runCases(demo, totals, stop);
  const exitCode = totals.failed === 0 ? 0 : 1;
  if (!keep) return exitCode;
  const signInUrl = await startConsoleSignIn(parts, demo.controlUrl, demo.files.operatorToken);
  console.log(`\n${totalsLine(totals)}\n\n${(await pasteLines(demo, signInUrl)).join('\n')}`);
  throw new Error(await firstEnd(demo));
}

async function runCases(demo: DemoEnvironment, totals: Totals, stop: AbortSignal): Promise<void> {
  const table = new Table(cases, screenOf(process.stdout, process.env));
  if (table.heading !== undefined) console.log(table.heading);
  const early = new Map(
    cases.filter(({ beginsEarly }) => beginsEarly).map((each) => [each, runCase(demo, each)]),
  );
  for (const played of cases) {
    const results = await (early.get(played) ?? runCase(demo, played));
    stop.throwIfAborted();
    console.log(table.line(played, results));
    if (hasPassed(results)) totals.passed += 1;
    else {
      totals.failed += 1;
      console.log((await failureLines(demo, results)).join('\n'));
    }
  }
  console.log(tableNotes.join('\n'));
}

function totalsLine({ passed, failed }: Totals): string {
  return `${passed} passed, ${failed} failed`;
}

/** Later signals change nothing: everything is being stopped already, and each part has a time limit. */
function listenForStop(): AbortSignal {
  const controller = new AbortController();
  const abort = () => controller.abort(new Error('interrupted'));
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, abort);
  // The reader of standard output is gone, for example `make demo | head`.
  process.stdout.on('error', abort);
  return controller.signal;
}

function interruption(stop: AbortSignal): Promise<number> {
  return new Promise((resolve) => {
    stop.addEventListener('abort', () => resolve(interruptedExitCode), { once: true });
  });
}

process.exitCode = await main(process.argv.slice(2));
