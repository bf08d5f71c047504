/**
 * fast-check for tests that mutants are put to: always the same random cases, so that a mutant fares the same each time, and
 * fewer of those that wait for files or servers.
 */
import fc from 'original-fast-check';

const MOST_ASYNC_RUNS = 200;

function runsOf(property, { numRuns = 100 } = {}) {
  return property.isAsync() ? Math.min(numRuns, MOST_ASYNC_RUNS) : numRuns;
}

export default {
  ...fc,
  assert: (property, parameters) =>
    fc.assert(property, { ...parameters, seed: 1, numRuns: runsOf(property, parameters) }),
};
