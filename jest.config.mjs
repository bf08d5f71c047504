/** Jest in ESM mode; swc strips the types, `tsc` checks them in the same test command. */
export default {
  testEnvironment: '<rootDir>/scripts/jest/environment.mjs',
  extensionsToTreatAsEsm: ['.ts'],
  testMatch: ['<rootDir>/test/**/*.test.ts'],
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
  workerIdleMemoryLimit: '1GB',
  reporters: ['default', '<rootDir>/scripts/jest/reporter.mjs'],
};
