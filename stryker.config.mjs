import { availableParallelism } from 'node:os';

// One seed, so that a mutant fares the same each time; and few rounds of what `make test` does many of.
process.env.PROOFGATE_TEST_SEED ??= '1';
process.env.PROOFGATE_TEST_MUTATIONS ??= '60';

/**
 * Mutants of the request plane: `make mutation`. What they are put to is in `scripts/mutation/tests.mjs`.
 * @type {import('@stryker-mutator/api/core').PartialStrykerOptions}
 */
export default {
  mutate: ['src/protocol/**/*.ts', 'src/verifier/**/*.ts', '!src/**/*.d.ts'],
  plugins: [new URL('scripts/mutation/test-runner.mjs', import.meta.url).pathname],
  testRunner: 'loading-once',
  coverageAnalysis: 'perTest',
  // A mutant in what a module does while it loads reaches every test, so that each would cost a whole run.
  ignoreStatic: true,
  // Most of the time of most mutants goes into waiting for what they keep from happening.
  concurrency: Number(process.env.PROOFGATE_MUTATION_WORKERS ?? 3 * availableParallelism()),
  // What mutants leave behind, such as timers and sockets, goes with the process.
  maxTestRunnerReuse: 200,
  // Machines differ, and a mutant that is only slow must not count as killed.
  timeoutMS: 20_000,
  timeoutFactor: 2.5,
  dryRunTimeoutMinutes: 20,
  // Types are stripped, not checked.
  disableTypeChecks: false,
  ignorePatterns: ['dist', '.build', '.cache', '.venv', 'bench', 'demo', 'docs/reference/openapi.json'],
  tempDirName: '.build/mutation',
  incremental: true,
  incrementalFile: '.build/mutation-results.json',
  reporters: ['progress-append-only', 'clear-text', 'json', 'html'],
  jsonReporter: { fileName: '.build/mutation-report.json' },
  htmlReporter: { fileName: '.build/mutation-report.html' },
  clearTextReporter: { allowColor: false, logTests: false, reportTests: false },
  thresholds: { high: 95, low: 90, break: 85 },
};
