/**
 * The results of several runs, a line of JSON each, as reporter.mjs adds them.
 *
 * `node scripts/jest/results.mjs total FILE` prints the sum.
 * `node scripts/jest/results.mjs again FILE` runs the failed files of the last run a second time, when that may be done. It fails
 * when it may not, or when they fail again. The total names them.
 */
import { spawnSync } from 'node:child_process';
import { appendFileSync, readFileSync } from 'node:fs';
import { argv, exit } from 'node:process';
import { fileURLToPath } from 'node:url';

const MOST_SECOND_TRIES = 3;
/** A failure here may be a vulnerability: decision, replay, conformance, hostile requests, failing closed. */
const NEVER_AGAIN = [
  /^test\/(protocol|verifier|enforcement|bundle|vectors|conformance|fuzz|smuggling|wire-fuzz)\//,
  /^test\/e2e\/([^/]+$|(replay|fail-closed|one-delivery|forward-auth|bundles)\/)/,
];

/** @param {{ passed: number, failed: number, skipped: number }} total */
export function lineOf({ failed, passed, skipped }) {
  return `${passed} passed, ${failed} failed, ${skipped} skipped`;
}

/**
 * @param {readonly { failures?: readonly { path: string, timedOut: boolean }[], secondTries?: readonly string[] }[]} runs
 * @returns {{ paths: readonly string[], refusal?: string }} the failed files of the last run, and why they may not run again
 */
export function secondTry(runs) {
  const failures = runs.at(-1)?.failures ?? [];
  const paths = failures.map(({ path }) => path);
  const other = failures.find(({ timedOut }) => !timedOut);
  const guarded = paths.find((path) => NEVER_AGAIN.some((pattern) => pattern.test(path)));
  const earlier = runs.flatMap(({ secondTries = [] }) => secondTries).length;
  if (paths.length === 0) return { paths, refusal: 'the lane failed before its tests' };
  if (other !== undefined) return { paths, refusal: `${other.path} did not fail by a wait alone` };
  if (guarded !== undefined) return { paths, refusal: `${guarded} may not fail once` };
  if (earlier + paths.length > MOST_SECOND_TRIES)
    return { paths, refusal: `more than ${MOST_SECOND_TRIES} files` };
  return { paths };
}

function runsIn(file) {
  const lines = readFileSync(file, 'utf8').split('\n').filter(Boolean);
  return lines.map((line) => JSON.parse(line));
}

function printTotal(file) {
  const runs = runsIn(file);
  const sum = { passed: 0, failed: 0, skipped: 0 };
  for (const run of runs) for (const name of Object.keys(sum)) sum[name] += run[name] ?? 0;
  const again = runs.flatMap(({ secondTries = [] }) => secondTries);
  console.log(lineOf(sum));
  if (again.length > 0) console.log(`${again.length} at the second try: ${again.join(' ')}`);
}

function tryAgain(file) {
  const { paths, refusal } = secondTry(runsIn(file));
  if (refusal !== undefined) {
    console.log(`No second try: ${refusal}`);
    return 1;
  }
  console.log(`A second try, alone: ${paths.join(' ')}`);
  const { PROOFGATE_TEST_CPU_SECONDS: _, PROOFGATE_TEST_LANE: __, ...env } = process.env;
  const jest = ['run', '--silent', 'jest', '--', '--runInBand', '--runTestsByPath', ...paths];
  const { status } = spawnSync('npm', jest, {
    stdio: 'inherit',
    env: { ...env, PROOFGATE_TEST_RESULTS: `${file}.again` },
  });
  if (status !== 0) return 1;
  const failed = runsIn(file)
    .at(-1)
    .failures.reduce((sum, failure) => sum + failure.failed, 0);
  appendFileSync(file, `${JSON.stringify({ passed: failed, failed: -failed, secondTries: paths })}\n`);
  return 0;
}

if (argv[1] === fileURLToPath(import.meta.url)) {
  const [, , command, file] = argv;
  if (command === 'again') exit(tryAgain(file));
  printTotal(file);
}
