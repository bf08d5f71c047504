/** The header in which a target says what it enforces although the bundle says observe. */
import { expect, test } from '@jest/globals';
import { enforcedText, parseEnforced } from '../../../src/bundle/format/enforced-observations.ts';

test.each([
  ['1 route=orders-read', { count: 1, unmatched: false, routes: ['orders-read'] }],
  ['1 unmatched', { count: 1, unmatched: true, routes: [] }],
  [
    '50001 unmatched route=unmatched route=a,b=c',
    { count: 50_001, unmatched: true, routes: ['unmatched', 'a,b=c'] },
  ],
])('%s', (text, enforced) => {
  expect(enforcedText(enforced)).toBe(text);
  expect(parseEnforced(text)).toEqual(enforced);
});

test('names for which there is no room are left out, and the count stays', () => {
  const many = Array.from({ length: 30 }, (_, index) => `route-${index}`);
  const few = parseEnforced(enforcedText({ count: 30, unmatched: false, routes: many }));
  expect(few).toEqual({ count: 30, unmatched: false, routes: many.slice(0, 10) });
  const long = Array.from({ length: 10 }, (_, index) => `${index}`.repeat(512));
  const text = enforcedText({ count: 10, unmatched: true, routes: long });
  expect(text.length).toBeLessThanOrEqual(2000);
  expect(parseEnforced(text)).toEqual({ count: 10, unmatched: true, routes: long.slice(0, 3) });
});

test.each([
  ['', 'empty'],
  ['0', 'nothing'],
  ['-1', 'a negative number'],
  ['1000000', 'more than there can be'],
  ['1 orders-read', 'a name without its kind'],
  ['1 route=', 'an empty name'],
  ['1  route=a', 'two spaces'],
  ['1 route=a unmatched', 'another order'],
  [`11 ${Array.from({ length: 11 }, (_, index) => `route=${index}`).join(' ')}`, 'too many names'],
  [`1 route=${'a'.repeat(513)}`, 'a long name'],
  [`1 ${'route=a '.repeat(300)}`, 'a long text'],
  ['1 route=\u0001', 'a control character'],
])('%j is none: %s', (text) => {
  expect(parseEnforced(text)).toBeUndefined();
});
