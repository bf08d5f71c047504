/** Every test file is in exactly one lane: `make test` or `make test-extended`. */
import { execFileSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { expect, it } from '@jest/globals';
import { checkoutPath } from './support/harness/checkout.ts';

/** The files that a target of the Makefile would have Jest run. */
function filesOf(target: string): readonly string[] {
  const recipe = execFileSync('make', ['--silent', '--dry-run', target], {
    cwd: checkoutPath(),
    encoding: 'utf8',
  });
  const [command = ''] = recipe.split('\n').filter((line) => line.includes(' jest -- '));
  const listed = execFileSync('bash', ['-c', `${command} --listTests --json`], {
    cwd: checkoutPath(),
    encoding: 'utf8',
  });
  const paths: readonly string[] = JSON.parse(listed);
  return paths.map((path) => path.slice(checkoutPath().length + 1));
}

it('has every test file in one lane', () => {
  const fast = filesOf('test');
  const extended = filesOf('test-extended');
  const there = readdirSync(checkoutPath('test'), { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.test.ts'))
    .map((path) => `test/${path}`);
  expect(extended.filter((path) => !path.endsWith('.extended.test.ts'))).toEqual([]);
  expect([...fast, ...extended].toSorted()).toEqual(there.toSorted());
});
