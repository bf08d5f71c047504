/** Every rule finds what its bad files have, where they have it, and nothing else does. */
import { describe, expect, it } from '@jest/globals';
import { CONTEXT_HEADERS } from '../../src/gateway-lint/header-names.ts';
import { RULES } from '../../src/gateway-lint/rules.ts';
import { CONTEXT_HEADERS as WIRE_NAMES } from '../../src/protocol/wire-names.ts';
import { found, markedLines, ruleFiles, ruleFolders } from './rule-files.ts';

const ids = RULES.map(({ id }) => id);

it('has a bad and a good file for every rule, and names that are names', () => {
  expect(ids.length).toBeGreaterThanOrEqual(25);
  expect(new Set(ids).size).toBe(ids.length);
  expect(ids.filter((id) => !/^[a-z]+(?:-[a-z]+)*$/.test(id))).toEqual([]);
  expect(ruleFolders()).toEqual(ids.toSorted());
  for (const prefix of ['bad', 'good'] as const) {
    expect(new Set(ruleFiles(prefix).map(({ rule }) => rule))).toEqual(new Set(ids));
  }
});

it.each(ruleFiles('bad'))(
  '$rule finds the marked lines of $name, and nothing else is found',
  ({ rule, text }) => {
    const lines = markedLines(text);
    expect(lines.length).toBeGreaterThan(0);
    expect(found(text)).toEqual(lines.map((line) => ({ rule, line })));
    expect(found(text, [rule])).toEqual([]);
  },
);

it.each(ruleFiles('good'))('$rule finds nothing in $name, nor does another', ({ text }) => {
  expect(found(text)).toEqual([]);
});

describe('what a rule says', () => {
  it.each(RULES.map((rule) => [rule.id, rule] as const))(
    '%s: one line for effect and fix',
    (_id, { effect, fix }) => {
      for (const text of [effect, fix]) expect(text).toMatch(/^\S.*[^.\s]$/);
    },
  );
});

it('knows the context headers that the verifier sets', () => {
  expect(CONTEXT_HEADERS.toSorted()).toEqual(Object.values(WIRE_NAMES).toSorted());
});
