/**
 * Selects the tests for mutation testing: those of the mutated folders that are quick enough for thousands of runs in an hour,
 * with real Redis servers among them. `PROOFGATE_MUTATION_TESTS` names others, as paths separated by spaces.
 */
import { readdirSync } from 'node:fs';

/** The mutated folders, see stryker.config.mjs. */
export const MUTATED_FOLDERS = ['src/protocol', 'src/verifier'];

/** Folders with their whole content. */
const FOLDERS = ['test/protocol', 'test/verifier', 'test/cli/explain'];
const FILES = ['test/vectors/in-process.test.ts'];

const FILES_LEFT_OUT = [
  // Tests with random requests, which need tens of thousands of them.
  'test/verifier/decision/order.property.test.ts',
  'test/verifier/redis/replay-scripts.property.test.ts',
  // Tests that mount a file system while they are loaded, because killed processes would leave it mounted.
  'test/verifier/assembly/audit-readiness.test.ts',
  'test/verifier/audit/full-disk.test.ts',
  'test/verifier/capture/full-disk.test.ts',
  'test/verifier/loading/read-only-directory.test.ts',
  // A test that writes to the standard output of its own process.
  'test/verifier/audit/standard-output.test.ts',
];

/**
 * By full name. Tests that measure time would report a mutant on a slow machine, and long tests would run completely
 * for each undetected mutant. Mutants that only these tests detect count as undetected.
 */
const TESTS_LEFT_OUT = [
  'takes a time that grows with',
  '^costs what its length says',
  'keeps up with expiry at a steady rate',
  'a slow server answers late',
  'consumes no proof twice when the clock (creeps|leaps)',
  'renamed and reopened again and again, in the middle of writing',
  '^the shared mark elsewhere',
  '^of two faults the first in the table wins',
].map((text) => new RegExp(text));

/** Paths of test files, from the project's folder. */
export function testFiles() {
  const chosen = process.env.PROOFGATE_MUTATION_TESTS?.split(' ');
  return chosen ?? [...FOLDERS.flatMap(testsIn), ...FILES].filter((path) => !FILES_LEFT_OUT.includes(path));
}

function testsIn(folder) {
  return readdirSync(folder, { recursive: true })
    .filter((path) => path.endsWith('.test.ts') && !path.endsWith('.extended.test.ts'))
    .map((path) => `${folder}/${path}`)
    .sort();
}

/** Slow tests with the code that they test. They do not run for other mutants, even if they reach them. */
const MEANT_FOR = {
  'test/cli/explain/': ['src/verifier/explain/', 'src/verifier/decision/explain/'],
  'test/verifier/audit/': ['src/verifier/audit/'],
  'test/verifier/decision/explain/': ['src/verifier/decision/explain/'],
  'test/verifier/redis/': ['src/verifier/redis/', 'src/verifier/replay/'],
  'test/verifier/replay/': ['src/verifier/redis/', 'src/verifier/replay/'],
};

/** @param testPath, mutatedPath both from the project's folder */
export function isMeantFor(testPath, mutatedPath) {
  const folder = Object.keys(MEANT_FOR).find((path) => testPath.startsWith(path));
  return folder === undefined || MEANT_FOR[folder].some((path) => mutatedPath?.startsWith(path));
}

export function isLeftOut(fullName) {
  return TESTS_LEFT_OUT.some((pattern) => pattern.test(fullName));
}
