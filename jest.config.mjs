import { filesOf, PURE, SHOWN } from './scripts/jest/fast-lane.mjs';

/** `PROOFGATE_TEST_LANE` is `quick`, `fast` or `extended`; otherwise every test can be named. */
function testsOf(lane) {
  if (lane === 'quick') return { testMatch: below(filesOf(PURE)) };
  const fast = filesOf(Object.values(SHOWN).flat());
  if (lane === 'fast') return { testMatch: below(fast) };
  const testMatch = below(['test/**/*.test.ts']);
  return lane === 'extended'
    ? { testMatch, testPathIgnorePatterns: fast.map((path) => `/${path}$`) }
    : { testMatch };
}

function below(paths) {
  return paths.map((path) => `<rootDir>/${path}`);
}

/** Jest in ESM mode; swc strips the types, `tsc` checks them in the same test command. */
export default {
  testEnvironment: '<rootDir>/scripts/jest/environment.mjs',
  testSequencer: '<rootDir>/scripts/jest/sequencer.mjs',
  extensionsToTreatAsEsm: ['.ts'],
  ...testsOf(process.env.PROOFGATE_TEST_LANE),
  transform: {
    '^.+\\.ts$': [
      '@swc/jest',
      {
        jsc: { target: 'es2022', parser: { syntax: 'typescript' } },
        module: { type: 'es6' },
      },
    ],
  },
  modulePathIgnorePatterns: ['<rootDir>/dist/', '<rootDir>/.build/'],
  // Generous, for a busy machine: a test that passes is no slower. `--testTimeout=20000` ends a wait sooner.
  testTimeout: 300_000,
  // One more than the two cores: most tests wait for processes, not for a processor.
  maxWorkers: 3,
  // A worker keeps the modules of finished files, so one that has grown is replaced.
  workerIdleMemoryLimit: '2GB',
  reporters: ['default', '<rootDir>/scripts/jest/reporter.mjs'],
};
