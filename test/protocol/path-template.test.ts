import { describe, expect, it } from '@jest/globals';
import { foldSegment, parsePathTemplate } from '../../src/protocol/path-template.ts';

describe('parsePathTemplate', () => {
  it.each(['/', '/a', '/a/', '/{x}', '/a/{x}/b', '/{x*}', '/a/{rest_1*}', '/a%20b'])('takes %s', (text) => {
    expect(parsePathTemplate(text)).toMatchObject({ kind: 'template', text });
  });

  it.each([
    '',
    'a',
    '/a//b',
    '/{x*}/b',
    '/{}',
    '/{1}',
    '/a{x}',
    '/{x}y',
    '/a/../b',
    '/a?b',
    '/a b',
    '/%41',
    '/a;b',
    '/{x**}',
    '/{x}/{x}',
    '/{x}/a/{x*}',
  ])('refuses %p', (text) => {
    expect(parsePathTemplate(text).kind).toBe('problem');
  });
});

it('takes a template apart into its segments', () => {
  expect(parsePathTemplate('/v1/{id}/{rest*}')).toEqual({
    kind: 'template',
    text: '/v1/{id}/{rest*}',
    segments: [
      { kind: 'literal', text: 'v1' },
      { kind: 'one', name: 'id' },
      { kind: 'rest', name: 'rest' },
    ],
  });
});

/** As a lenient upstream may read it; `%E2%84%AA` is the Kelvin sign, which only Unicode folds to `k`. */
it.each([
  ['orders', 'orders'],
  ['ORDERS-Az', 'orders-az'],
  ['a%40B', 'a@b'],
  ['caf%C3%89', 'caf\u00c9'],
  ['%E2%84%AA', '\u212a'],
  ['100%', '100%'],
  ['%FFA', '%ffa'],
])('folds %s to %s', (segment, folded) => {
  expect(foldSegment(segment)).toBe(folded);
});
