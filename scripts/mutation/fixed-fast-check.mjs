/**
 * fast-check for mutation tests: always the same random cases, so that a mutant gets the same result each time, and fewer cases
 * of those that wait for files or servers.
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
