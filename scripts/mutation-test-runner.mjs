/**
 * What makes thousands of mutants affordable. Of the test files only those are run that hold a test which reaches the
 * mutant: Stryker names these tests by a pattern, and Jest alone would load every file to find that nothing in it matches.
 * The quickest file is first, and none is run after one has failed: one is enough to know that a mutant is noticed.
 */
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { dirname, relative } from 'node:path';
import Runner from 'jest-runner';

/** Beside the copy that the mutants are in. Written by the run without mutants, read by all others. */
const FILES_SEEN = new URL('../.build/mutation-test-files.json', import.meta.url).pathname;
const ACTIVE_MUTANT = '__STRYKER_ACTIVE_MUTANT__';

export default class SelectingRunner extends Runner {
  async runTests(tests, watcher, options) {
    if (process.env[ACTIVE_MUTANT] === undefined) return this.#runAndRemember(tests, watcher, options);
    const { rootDir, testNamePattern } = this._globalConfig;
    const wanted = new RegExp(testNamePattern ?? '', 'i');
    const seen = JSON.parse(readFileSync(FILES_SEEN, 'utf8'));
    // A file that the first run did not see is run, and first: leaving it out could only hide that it kills.
    const seenOf = ({ path }) => seen[relative(rootDir, path)];
    const durationOf = (test) => seenOf(test)?.durationMs ?? 0;
    const reaching = tests
      .filter((test) => seenOf(test)?.names.some((name) => wanted.test(name)) ?? true)
      .sort((a, b) => durationOf(a) - durationOf(b));
    await this.#runUntilOneFails(reaching, watcher, options);
  }

  async #runAndRemember(tests, watcher, options) {
    const seen = {};
    const forget = this.on('test-file-success', ([test, { perfStats, testResults }]) => {
      const names = testResults.map(({ fullName }) => fullName);
      seen[relative(test.context.config.rootDir, test.path)] = { names, durationMs: perfStats.runtime };
    });
    await super.runTests(tests, watcher, options);
    forget();
    mkdirSync(dirname(FILES_SEEN), { recursive: true });
    writeFileSync(`${FILES_SEEN}.new`, JSON.stringify(seen));
    renameSync(`${FILES_SEEN}.new`, FILES_SEEN);
  }

  async #runUntilOneFails(tests, watcher, options) {
    let hasFailed = false;
    const marks = [
      this.on('test-file-success', ([, { numFailingTests, testExecError }]) => {
        hasFailed ||= numFailingTests > 0 || Boolean(testExecError);
      }),
      this.on('test-file-failure', () => {
        hasFailed = true;
      }),
    ];
    for (const test of tests) {
      if (hasFailed) break;
      await super.runTests([test], watcher, options);
    }
    for (const forget of marks) forget();
  }
}
