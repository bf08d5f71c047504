/**
 * Node's environment for tests that mutants are put to; Stryker wraps it in its own.
 *
 * Tests named in `testEnvironmentOptions.leftOut` (patterns of full names) do not run. Once a test has failed under a
 * mutant, the rest of its file is skipped: one is enough to know that the mutant is noticed, and Jest itself stops between
 * files at most.
 */
import { TestEnvironment } from 'jest-environment-node';

/** The number of the mutant that is looked at; not there while all tests run without one. */
const ACTIVE_MUTANT = '__STRYKER_ACTIVE_MUTANT__';
/** Whatever waits for what a mutant keeps from happening waits this long. */
const TEST_TIMEOUT_MS = 10_000;

export default class MutationTestEnvironment extends TestEnvironment {
  #hasFailed = false;
  #leftOut;

  constructor(config, context) {
    super(config, context);
    this.#leftOut = config.projectConfig.testEnvironmentOptions.leftOut.map((text) => new RegExp(text));
  }

  async handleTestEvent({ name, test }, state) {
    if (name === 'setup' && process.env[ACTIVE_MUTANT] !== undefined) state.testTimeout = TEST_TIMEOUT_MS;
    // Stryker does not see the end of a test that is skipped, and would take what is loaded next for its doing.
    if (name === 'test_skip') this.global[this.global.__strykerGlobalNamespace__].currentTestId = undefined;
    if (name === 'test_done' && process.env[ACTIVE_MUTANT] !== undefined)
      this.#hasFailed ||= test.errors.length > 0;
    if (name === 'test_start' && (this.#hasFailed || this.#isLeftOut(test))) test.mode = 'skip';
  }

  #isLeftOut(test) {
    const fullName = fullNameOf(test);
    return this.#leftOut.some((pattern) => pattern.test(fullName));
  }
}

/** Names of all that a test is in, from the outermost, without the file itself. */
function fullNameOf({ name, parent }) {
  return parent === undefined || parent.parent === undefined ? name : `${fullNameOf(parent)} ${name}`;
}
