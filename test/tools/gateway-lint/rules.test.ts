/** Checks that each rule reports the marked lines of its bad cases, and nothing else. */
import { describe, expect, it } from '@jest/globals';
import { CONTEXT_HEADERS as WIRE_NAMES } from '../../../src/protocol/wire-names.ts';
import { CONTEXT_HEADERS } from '../../../src/tools/gateway-lint/gateway/header-names.ts';
import { RULES } from '../../../src/tools/gateway-lint/lint.ts';
import { cleanBase, cleanBases, found, markedLines, ruleCases } from '../../support/docs/lint-rule-cases.ts';

const ids = RULES.map(({ id }) => id);
const bad = ruleCases('bad');

it('has a bad case for every rule, and names that are names', () => {
  expect(ids.length).toBeGreaterThanOrEqual(25);
  expect(new Set(ids).size).toBe(ids.length);
  expect(ids.filter((id) => !/^[a-z]+(?:-[a-z]+)*$/.test(id))).toEqual([]);
  expect(new Set(bad.map(({ rule }) => rule))).toEqual(new Set(ids));
});

it.each(cleanBases())('finds nothing in the clean configuration %s', (base) => {
  expect(found(cleanBase(base))).toEqual([]);
});

it.each(bad)(
  '$rule finds the marked lines of a change to $base, and nothing else is found',
  ({ rule, text }) => {
    const lines = markedLines(text);
    expect(lines.length).toBeGreaterThan(0);
    expect(found(text)).toEqual(lines.map((line) => ({ rule, line })));
    expect(found(text, [rule])).toEqual([]);
  },
);

it.each(ruleCases('good'))('$rule finds nothing in a change to $base, nor does another', ({ text }) => {
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
