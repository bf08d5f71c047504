/**
 * A Jest reporter: the slowest files of a run, then its total, `N passed, N failed, N skipped`, alone on a line.
 * With `PROOFGATE_TEST_TOTALS=FILE` it adds the total to that file instead, and `node scripts/jest-totals.mjs FILE` prints the sum.
 */
import { appendFileSync, readFileSync } from 'node:fs';
import { relative } from 'node:path';
import { argv } from 'node:process';
import { fileURLToPath } from 'node:url';

const SLOWEST_FILES = 10;

export default class Totals {
  onRunComplete(_contexts, results) {
    for (const line of slowest(results.testResults)) console.log(line);
    const total = {
      passed: results.numPassedTests,
      failed: results.numFailedTests + results.numRuntimeErrorTestSuites,
      skipped: results.numPendingTests,
    };
    const file = process.env.PROOFGATE_TEST_TOTALS;
    if (file === undefined) console.log(lineOf(total));
    else appendFileSync(file, `${JSON.stringify(total)}\n`);
  }
}

/** @param {readonly { testFilePath: string, perfStats: { runtime: number } }[]} testResults */
function slowest(testResults) {
  const files = testResults
    .toSorted((a, b) => b.perfStats.runtime - a.perfStats.runtime)
    .slice(0, SLOWEST_FILES)
    .map(({ perfStats, testFilePath }) => {
      const seconds = (perfStats.runtime / 1000).toFixed(1).padStart(8);
      return `${seconds} s  ${relative('.', testFilePath)}`;
    });
  return files.length > 1 ? ['Slowest files:', ...files] : [];
}

function lineOf({ failed, passed, skipped }) {
  return `${passed} passed, ${failed} failed, ${skipped} skipped`;
}

function printSum(file) {
  const sum = { passed: 0, failed: 0, skipped: 0 };
  for (const line of readFileSync(file, 'utf8').split('\n').filter(Boolean)) {
    for (const [name, count] of Object.entries(JSON.parse(line))) sum[name] += count;
  }
  console.log(lineOf(sum));
}

if (argv[1] === fileURLToPath(import.meta.url)) printSum(argv[2]);
