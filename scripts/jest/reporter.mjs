/**
 * A Jest reporter: shows the progress of a run, its slowest and most expensive files, and its total, `N passed, N
 * failed, N skipped`, alone on a line.
 *
 * `PROOFGATE_TEST_CPU_SECONDS=N` fails a run that costs more, on a machine as fast as the one of slowness.mjs.
 * `PROOFGATE_TEST_RESULTS=FILE` adds the results to that file instead of printing the total: see results.mjs.
 */
import { appendFileSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { lineOf } from './results.mjs';
import { removeScratchFolder, scratchFolder } from './scratch-folder.mjs';

const LISTED_FILES = 10;
const PROGRESS_INTERVAL_MS = 20_000;
/** Name of the error when a test's condition does not become true: test/support/wait.ts. */
const TIMED_OUT = 'WaitTimedOut: ';

export default class {
  #scratch = scratchFolder();
  #costs = join(this.#scratch, 'costs');
  #startMs = performance.now();
  #reportedMs = this.#startMs;
  #failed = 0;
  #budgetSeconds = Number(process.env.PROOFGATE_TEST_CPU_SECONDS ?? Number.POSITIVE_INFINITY);
  #isOverBudget = false;

  constructor() {
    // Workers inherit both.
    process.env.PROOFGATE_TEST_COSTS = this.#costs;
    process.env.TMPDIR = this.#scratch;
  }

  onTestResult(_test, _result, { numFailedTestSuites, numPassedTestSuites, numTotalTestSuites }) {
    const nowMs = performance.now();
    if (nowMs - this.#reportedMs < PROGRESS_INTERVAL_MS) return;
    this.#reportedMs = nowMs;
    const done = numFailedTestSuites + numPassedTestSuites;
    const leftMinutes = ((nowMs - this.#startMs) / 60_000 / done) * (numTotalTestSuites - done);
    const left = leftMinutes < 1 ? 'less than a minute' : `about ${Math.round(leftMinutes)} min`;
    console.log(`${done} of ${numTotalTestSuites} files, ${numFailedTestSuites} failed, ${left} left`);
  }

  onRunComplete(_contexts, results) {
    const costs = this.#measuredCosts();
    removeScratchFolder(this.#scratch);
    const files = results.testResults.map((file) => ({
      path: relative('.', file.testFilePath),
      seconds: file.perfStats.runtime / 1000,
    }));
    print('Slowest files', files);
    print(
      'Dearest files, by processor time',
      costs.map(({ file, cpu }) => ({ path: file, seconds: cpu })),
    );
    this.#judge(costs, files.length);
    const { numPassedTests, numFailedTests, numRuntimeErrorTestSuites, numPendingTests } = results;
    const total = {
      passed: numPassedTests,
      failed: numFailedTests + numRuntimeErrorTestSuites + (this.#isOverBudget ? 1 : 0),
      skipped: numPendingTests,
    };
    const file = process.env.PROOFGATE_TEST_RESULTS;
    if (file === undefined) console.log(lineOf(total));
    else appendFileSync(file, `${JSON.stringify({ ...total, failures: this.#failures(results) })}\n`);
  }

  getLastError() {
    return this.#isOverBudget ? new Error('the lane costs more than its budget') : undefined;
  }

  #measuredCosts() {
    try {
      const lines = readFileSync(this.#costs, 'utf8').trimEnd().split('\n');
      return lines.map((line) => JSON.parse(line));
    } catch (error) {
      if (error.code === 'ENOENT') return [];
      throw error;
    }
  }

  #judge(costs, fileCount) {
    if (fileCount < 2) return;
    const measured = costs.reduce((sum, { cpu }) => sum + cpu, 0);
    const slowness = costs.map((cost) => cost.slowness).toSorted((a, b) => a - b)[costs.length >> 1] ?? 1;
    const seconds = measured / slowness;
    const told = `${Math.round(seconds)} s of a processor (${Math.round(measured)} s here, ${slowness.toFixed(2)} times as slow)`;
    this.#isOverBudget = seconds > this.#budgetSeconds;
    if (this.#isOverBudget) console.log(`Over the budget of ${this.#budgetSeconds} s: ${told}`);
    else console.log(`These files cost ${told}`);
  }

  /** The failed files; `timedOut` when only waits failed, and no assertion or process. */
  #failures({ testResults }) {
    const failures = testResults
      .filter(({ numFailingTests, testExecError }) => numFailingTests > 0 || testExecError !== undefined)
      .map((file) => {
        const failed = file.testResults.filter(({ status }) => status === 'failed');
        const thrown = failed.flatMap(({ failureMessages }) => failureMessages);
        const timedOut = thrown.length > 0 && thrown.every((text) => text.startsWith(TIMED_OUT));
        return {
          path: relative('.', file.testFilePath),
          failed: failed.length,
          timedOut: timedOut && file.testExecError === undefined,
        };
      });
    return this.#isOverBudget ? [...failures, { path: 'budget', failed: 1, timedOut: false }] : failures;
  }
}

function print(title, files) {
  if (files.length < 2) return;
  console.log(`${title}:`);
  for (const { path, seconds } of files.toSorted((a, b) => b.seconds - a.seconds).slice(0, LISTED_FILES)) {
    console.log(`${seconds.toFixed(1).padStart(8)} s  ${path}`);
  }
}
