/**
 * The tests that mutants are put to: those of the mutated folders that need no process or server of their own, so that
 * thousands of runs fit into an hour. `PROOFGATE_MUTATION_TESTS` names others, as globs separated by spaces.
 */
import config from './jest.config.mjs';

const QUICK_TESTS = [
  'test/protocol/**/*.test.ts',
  // Not the random requests of `order.property`: what they show needs tens of thousands of them.
  'test/verifier/!(order.property).test.ts',
  'test/verifier/explain/*.test.ts',
  'test/verifier/audit/{decision-event,gap-event,http-batches,json-lines,rotation}.test.ts',
  'test/verifier/redis/*.test.ts',
  'test/verifier/replay/{identifier,kept-fence,memory}.test.ts',
  'test/vectors/in-process.test.ts',
];

const chosen = process.env.PROOFGATE_MUTATION_TESTS?.split(' ') ?? QUICK_TESTS;

export default {
  ...config,
  testMatch: chosen.map((glob) => `<rootDir>/${glob}`),
  testEnvironment: '@stryker-mutator/jest-runner/jest-env/node',
  runner: '<rootDir>/scripts/mutation-test-runner.mjs',
  reporters: [],
};
