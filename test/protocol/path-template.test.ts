import { describe, expect, it } from '@jest/globals';
import { parsePathTemplate } from '../../src/protocol/path-template.ts';

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
  ])('refuses %p', (text) => {
    expect(parsePathTemplate(text).kind).toBe('problem');
  });
});
