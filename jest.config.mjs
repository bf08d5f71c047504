/** Jest in ESM mode; swc strips the types, `tsc` checks them in the same test command. */
export default {
  testEnvironment: 'node',
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
  testTimeout: 30_000,
  // Both cores: most tests wait for processes, not for a processor.
  maxWorkers: 2,
  // Modules of files that are done are not let go of: a worker that has grown is replaced.
  workerIdleMemoryLimit: '1GB',
  reporters: ['default', '<rootDir>/scripts/jest-totals.mjs'],
};
