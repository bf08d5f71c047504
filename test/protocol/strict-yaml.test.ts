import { describe, expect, it } from '@jest/globals';
import { parseStrictYaml, StrictYamlError } from '../../src/protocol/strict-yaml.ts';

function faultOf(text: string): string {
  try {
    parseStrictYaml(text);
    return 'taken';
  } catch (error) {
    if (error instanceof StrictYamlError) return error.message.split(':', 1)[0] ?? '';
    throw error;
  }
}

describe('parseStrictYaml', () => {
  it.each([
    ['a: 1\nb: [x, "y"]\n', { a: 1, b: ['x', 'y'] }],
    ['{"a": {"b": null}}', { a: { b: null } }],
    ['', null],
    ['# nothing\n', null],
    ['a: 2026-11-21', { a: '2026-11-21' }],
    ['a: yes', { a: 'yes' }],
  ])('takes %j', (text, value) => expect(parseStrictYaml(text)).toEqual(value));

  it.each([
    ['a member twice', 'a: 1\nb: 2\na: 3\n', 'line 3'],
    ['an alias', 'a: &x [1]\nb: *x\n', 'line 2'],
    ['a merge', 'a: &x {c: 1}\nb:\n  <<: *x\n', 'line 3'],
    ['a tag', 'a: 1\nb: !!binary aGk=\n', 'line 2'],
    ['a tag of its own', 'a: !env SECRET\n', 'line 1'],
    ['a name that is no string', 'a:\n  1: x\n', 'line 2'],
    ['a name that is a list', '? [a, b]\n: 1\n', 'line 1'],
    ['two documents', 'a: 1\n---\nb: 2\n', 'line 2'],
    ['what does not end', 'a: [1\n', 'line 2'],
    ['a tab where a space belongs', 'a:\n\tb: 1\n', 'line 2'],
  ])('refuses %s and names the line', (_what, text, line) => expect(faultOf(text)).toBe(line));

  it('unfolds nothing', () => {
    const bomb = [
      'a: &a [x,x]',
      ...'bcdefghij'
        .split('')
        .map((name, i) => `${name}: &${name} [*${'abcdefghij'[i]},*${'abcdefghij'[i]}]`),
    ];
    expect(faultOf(bomb.join('\n'))).toBe('line 2');
  });
});
