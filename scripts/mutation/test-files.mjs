/**
 * Loads test files once and runs them repeatedly with jest-circus, Jest's own test runner, because loading them for
 * each of thousands of mutants is slow. A file keeps its own tree of tests; all share one set of modules.
 */
import { relative, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { addEventHandler, getState, resetState, run, setState } from 'jest-circus';
import { isLeftOut } from './tests.mjs';

/** As in jest.config.mjs. */
const TEST_TIMEOUT_MS = 300_000;

/**
 * @typedef {object} TestRun
 * @property {string} id the file and all names of the test, from the outermost
 * @property {'passed' | 'failed' | 'skipped'} status
 * @property {number} durationMs
 * @property {string} failure empty unless failed
 */

/**
 * Maximum durations of tests and hooks.
 * @typedef {object} MostMs
 * @property {(id: string) => number} ofTest
 * @property {number} ofHook
 */

export class TestFile {
  path;
  #state;
  /** By ID. */
  #tests = new Map();

  /** @param path path below the project's folder */
  static async load(path) {
    resetState();
    await import(pathToFileURL(resolve(path)).href);
    return new TestFile(path, getState());
  }

  constructor(path, state) {
    this.path = path;
    this.#state = state;
    for (const test of testsUnder(state.rootDescribeBlock)) {
      const name = fullNameOf(test);
      const id = this.#freeId(`${relative('.', path)}: ${name}`);
      this.#tests.set(id, { test, mode: isLeftOut(name) ? 'skip' : test.mode, timeoutMs: test.timeout });
      idOf.set(test, id);
    }
  }

  /** Names may repeat. */
  #freeId(wanted) {
    let id = wanted;
    for (let n = 2; this.#tests.has(id); n += 1) id = `${wanted} (${n})`;
    return id;
  }

  /** IDs of its tests. */
  get ids() {
    return [...this.#tests.keys()];
  }

  /**
   * @param {{ ids?: ReadonlySet<string>, mostMs?: MostMs, stopsAtFailure?: boolean }} options `ids`: run only these;
   * `mostMs`: replaces the limits of the tests themselves
   * @returns {Promise<TestRun[]>}
   */
  async run({ ids, mostMs, stopsAtFailure = false } = {}) {
    const state = setState(this.#state);
    state.testTimeout = mostMs?.ofHook ?? TEST_TIMEOUT_MS;
    state.hasStarted = false;
    state.unhandledErrors = [];
    for (const [id, { mode, test, timeoutMs }] of this.#tests) {
      test.timeout = mostMs?.ofTest(id) ?? timeoutMs;
      test.errors = [];
      test.status = null;
      test.duration = null;
      test.mode = ids === undefined || ids.has(id) ? mode : 'skip';
    }
    current = { tests: this.#tests, stopsAtFailure };
    try {
      await run();
    } finally {
      current = undefined;
    }
    return this.#results(state.unhandledErrors);
  }

  #results(unhandledErrors) {
    const results = [...this.#tests].map(([id, { test }]) => {
      const isSkipped = test.status !== 'done' && test.errors.length === 0;
      const status = isSkipped ? 'skipped' : test.errors.length > 0 ? 'failed' : 'passed';
      return { id, status, durationMs: test.duration ?? 0, failure: textOf(test.errors[0]) };
    });
    if (unhandledErrors.length === 0) return results;
    // An error outside of any test, such as in an `afterAll` hook, is attributed to the last test that ran.
    const last = results.findLast(({ status }) => status !== 'skipped');
    if (last !== undefined) Object.assign(last, { status: 'failed', failure: textOf(unhandledErrors[0]) });
    return results;
  }
}

/** The unit of work that is running. */
let current;
const idOf = new WeakMap();
const listeners = { started: () => undefined, ended: () => undefined };

/**
 * Registers listeners for the start and the end of a unit of work, each with the test IDs that it belongs to: one test with its
 * hooks, or all tests that share a `beforeAll`.
 */
export function onTests({ ended, started }) {
  Object.assign(listeners, { started, ended });
}

addEventHandler((event, { testTimeout }) => {
  if (event.name === 'hook_start' || event.name === 'test_fn_start') {
    // For test/support/wait.ts.
    globalThis.waitsEndAtMs = performance.now() + ((event.hook ?? event.test).timeout || testTimeout);
  }
  switch (event.name) {
    case 'hook_start':
      if (event.hook.type === 'beforeAll') listeners.started(wantedIdsUnder(event.hook.parent));
      break;
    case 'hook_success':
    case 'hook_failure':
      if (event.hook.type === 'beforeAll') listeners.ended();
      break;
    case 'test_started':
      listeners.started([idOf.get(event.test)]);
      break;
    case 'test_done':
      listeners.ended();
      if (event.test.errors.length > 0 && current?.stopsAtFailure) skipTheRest();
      break;
  }
});

function skipTheRest() {
  for (const { test } of current.tests.values()) if (test.status === null) test.mode = 'skip';
}

// An uncaught exception or unhandled rejection fails the test that is running.
for (const name of ['uncaughtException', 'unhandledRejection']) {
  process.on(name, (error) => {
    const state = getState();
    (state.currentlyRunningTest?.errors ?? state.unhandledErrors).push(error);
  });
}

function* testsUnder(block) {
  for (const child of block.children) {
    if (child.type === 'test') yield child;
    else yield* testsUnder(child);
  }
}

function wantedIdsUnder(block) {
  return [...testsUnder(block)].filter(({ mode }) => mode !== 'skip').map((test) => idOf.get(test));
}

/** Names of a test and its enclosing blocks, from the outermost, without the file itself. */
function fullNameOf({ name, parent }) {
  return parent === undefined || parent.parent === undefined ? name : `${fullNameOf(parent)} ${name}`;
}

/** circus stores an error alone, or with the place of the test or hook. */
function textOf(error) {
  if (error === undefined) return '';
  const thrown = Array.isArray(error) ? (error[0] ?? error[1]) : error;
  return String(thrown?.message ?? thrown);
}
