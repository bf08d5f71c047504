/**
 * The tests that mutants are put to: those of the mutated folders that are quick enough for thousands of runs in an hour,
 * real Redis servers among them. `PROOFGATE_MUTATION_TESTS` names others, as globs separated by spaces.
 */
import { fileURLToPath } from 'node:url';
import config from './jest.config.mjs';

const QUICK_TESTS = [
  'test/protocol/**/*.test.ts',
  // Not the random requests of `order.property`: what they show needs tens of thousands of them.
  'test/verifier/!(order.property).test.ts',
  'test/verifier/explain/*.test.ts',
  'test/verifier/audit/!(standard-output).test.ts',
  'test/verifier/redis/!(replay-scripts.property).test.ts',
  // Groups of real servers take half a minute and more.
  'test/verifier/replay/!(redis-cluster|redis-sentinel).test.ts',
  'test/vectors/in-process.test.ts',
];

/**
 * By full name. Measures of time would call a slow machine a noticed mutant; long ones would be run to their end for each
 * mutant that nothing notices. Whatever these alone notice counts as not noticed.
 */
const LEFT_OUT = [
  'takes a time that grows with',
  '^costs what its length says',
  'keeps up with expiry at a steady rate',
  'consumes no proof twice when the clock (creeps|leaps)',
  'renamed and reopened again and again, in the middle of writing',
  '^the shared mark elsewhere',
  '^of two faults the first in the table wins',
];

const chosen = process.env.PROOFGATE_MUTATION_TESTS?.split(' ') ?? QUICK_TESTS;

export default {
  ...config,
  testMatch: chosen.map((glob) => `<rootDir>/${glob}`),
  moduleNameMapper: {
    '^fast-check$': '<rootDir>/scripts/mutation-fast-check.mjs',
    '^original-fast-check$': fileURLToPath(import.meta.resolve('fast-check')),
  },
  testEnvironment: fileURLToPath(new URL('scripts/mutation-test-environment.mjs', import.meta.url)),
  testEnvironmentOptions: { leftOut: LEFT_OUT },
  runner: '<rootDir>/scripts/mutation-test-runner.mjs',
  reporters: [],
};
