/** Checks that docs/reference/command-line.md has every flag of `proofgate control`, with its default value. */
import { expect, it } from '@jest/globals';
import { CONTROL_SETTINGS } from '../../src/control/program/control-settings.ts';
import { readText, sectionOf } from '../support/docs/markdown.ts';

const document = sectionOf(readText('docs/reference/command-line.md'), '`control`');

it.each(Object.values(CONTROL_SETTINGS).map(({ flag, description }) => [flag, description] as const))(
  '--%s',
  (flag, description) => {
    const isNamed = new RegExp(`\`--${flag}[ \`]`);
    const rows = document.split('\n').filter((line) => line.startsWith('|') && isNamed.test(line));
    expect(rows).not.toEqual([]);
    const byDefault = /\(default: ([\w./:-]+)\)$/.exec(description)?.[1] ?? '';
    expect(rows.filter((row) => row.includes(byDefault))).not.toEqual([]);
  },
);

it('names no unknown flag', () => {
  const known = new Set(Object.values(CONTROL_SETTINGS).map(({ flag }) => flag));
  const named = [...document.matchAll(/^\| `--[^|]*\|/gm)].flatMap(([cells]) =>
    [...cells.matchAll(/`--([a-z][a-z-]*[a-z])/g)].map(([, flag = '']) => flag),
  );
  expect(named.length).toBeGreaterThan(25);
  expect(named.filter((flag) => !known.has(flag) && flag !== 'oidc')).toEqual([]);
});
