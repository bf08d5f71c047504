/** A Jest reporter that closes with one plain line: `N passed, N failed, N skipped`. */
export default class Totals {
  onRunComplete(_contexts, { numFailedTests, numPassedTests, numPendingTests, numRuntimeErrorTestSuites }) {
    const failed = numFailedTests + numRuntimeErrorTestSuites;
    console.log(`tests: ${numPassedTests} passed, ${failed} failed, ${numPendingTests} skipped`);
  }
}
