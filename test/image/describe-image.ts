/** Groups tests of the image; a skipped test states the reason in its name. */
import { spawnSync } from 'node:child_process';
import { describe, it } from '@jest/globals';
import { hasImageTools } from '../support/image/built.ts';

/** Whether `make test-image` runs the tests, and not `make test-extended`. */
export const IS_WHOLE = process.env.PROOFGATE_TEST_IMAGE === 'whole';

/** Requires the inputs of the image. */
export function describeImage(name: string, tests: () => void): void {
  if (hasImageTools()) describe(name, tests);
  // Does not run `tests`: they create folders while they are defined, and only tests that run remove them.
  else it.skip(`${name} (skips: run make image-tools first)`, () => {});
}

/** `make test-image` alone runs them: they build a further image. */
export function describeWholeImage(name: string, tests: () => void): void {
  if (IS_WHOLE) describeImage(name, tests);
}

/** Mounting also requires privileges that some machines do not give. */
export function describeContainer(name: string, tests: () => void): void {
  if (!hasImageTools() || canMount()) describeImage(name, tests);
  else it.skip(`${name} (skips: mounting is not permitted here, run it as root)`, () => {});
}

function canMount(): boolean {
  return spawnSync('unshare', ['--mount', 'mount', '-t', 'tmpfs', 'none', '/mnt']).status === 0;
}
