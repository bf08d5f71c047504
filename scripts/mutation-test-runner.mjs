/**
 * What makes thousands of mutants affordable. Of the test files only those are run that hold a test which reaches the
 * mutant: Stryker names these tests by a pattern, and Jest alone would load every file to find that nothing in it matches.
 * First comes the file that will most likely notice soon, and none is run after one has noticed.
 */
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { dirname, relative } from 'node:path';
import { createEmptyTestResult } from '@jest/test-result';
import Runner from 'jest-runner';

/** Beside the copy that the mutants are in. Written by the run without mutants, read by all others. */
const FILES_SEEN = new URL('../.build/mutation-test-files.json', import.meta.url).pathname;
/** Outlives the process, which Stryker replaces before it has grown too much. Of several processes the last to write wins. */
const FILES_NOTICED = new URL('../.build/mutation-noticed-by.json', import.meta.url).pathname;
const ACTIVE_MUTANT = '__STRYKER_ACTIVE_MUTANT__';
/** What loading a file costs, about, however few of its tests are run. */
const LOADING_MS = 150;
/** Stands for a test, where a file fails before its first one. */
const LOADING = '(the file is loaded)';
/** How much of what was seen of a file is kept each time it is run: neighbouring mutants are noticed by the same. */
const KEPT = 0.8;

/** Of each file: how often it was run for a mutant, and how often it noticed, the latest counting most. */
const noticedBy = new Map(Object.entries(readOr(FILES_NOTICED, {})));

export default class SelectingRunner extends Runner {
  #resultListeners = [];

  /**
   * A file that cannot even be loaded any more has noticed the mutant, which loads without it. Stryker would call that an
   * error of the run and leave the mutant out of its sums: elsewhere, code that does not compile ends like that.
   */
  on(eventName, listener) {
    if (eventName === 'test-file-success') this.#resultListeners.push(listener);
    if (eventName !== 'test-file-failure' || process.env[ACTIVE_MUTANT] === undefined) {
      return super.on(eventName, listener);
    }
    return super.on(eventName, async ([test, error]) => {
      for (const take of this.#resultListeners) await take([test, failedResult(test, error)]);
    });
  }

  async runTests(tests, watcher, options) {
    if (process.env[ACTIVE_MUTANT] === undefined) return this.#runAndRemember(tests, watcher, options);
    const { rootDir, testNamePattern } = this._globalConfig;
    const wanted = new RegExp(testNamePattern ?? '', 'i');
    const seen = JSON.parse(readFileSync(FILES_SEEN, 'utf8'));
    const reaching = tests
      .map((test) => ({ test, ...expectationOf(test.path, seen[relative(rootDir, test.path)], wanted) }))
      .filter(({ isReaching }) => isReaching)
      .sort((a, b) => a.costMs - b.costMs)
      .map(({ test }) => test);
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
    write(FILES_SEEN, seen);
  }

  async #runUntilOneFails(tests, watcher, options) {
    let hasFailed = false;
    const marks = [
      super.on('test-file-success', ([, { numFailingTests, testExecError }]) => {
        hasFailed ||= numFailingTests > 0 || Boolean(testExecError);
      }),
      super.on('test-file-failure', () => {
        hasFailed = true;
      }),
    ];
    for (const test of tests) {
      await super.runTests([test], watcher, options);
      remember(test.path, hasFailed);
      if (hasFailed) break;
    }
    for (const forget of marks) forget();
    write(FILES_NOTICED, Object.fromEntries(noticedBy));
  }
}

/** One failed test, which stands for all of the file. */
function failedResult(test, error) {
  const failed = {
    ancestorTitles: [],
    failureDetails: [],
    failureMessages: [String(error?.stack ?? error)],
    fullName: LOADING,
    status: 'failed',
    title: LOADING,
  };
  return { ...createEmptyTestResult(), numFailingTests: 1, testFilePath: test.path, testResults: [failed] };
}

/** Whether a file can notice, and the time that it takes over the odds that it does. */
function expectationOf(path, seen, wanted) {
  // A file that the first run did not see is run, and first: leaving it out could only hide that it notices.
  if (seen === undefined) return { isReaching: true, costMs: 0 };
  const reachingCount = seen.names.filter((name) => wanted.test(name)).length;
  const durationMs = LOADING_MS + (seen.durationMs * reachingCount) / Math.max(1, seen.names.length);
  const { runs, notices } = noticedBy.get(path) ?? { runs: 0, notices: 0 };
  return { isReaching: reachingCount > 0, costMs: durationMs / ((notices + 0.2) / (runs + 1)) };
}

function remember(path, hasNoticed) {
  const { runs, notices } = noticedBy.get(path) ?? { runs: 0, notices: 0 };
  noticedBy.set(path, { runs: runs * KEPT + 1, notices: notices * KEPT + (hasNoticed ? 1 : 0) });
}

function readOr(file, otherwise) {
  return existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : otherwise;
}

function write(file, value) {
  const partial = `${file}.${process.pid}`;
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(partial, JSON.stringify(value));
  renameSync(partial, file);
}
