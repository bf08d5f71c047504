import { describe, expect, it } from '@jest/globals';
import { parseDocument } from 'yaml';
import { parseStrictYaml, StrictYamlError } from '../../src/protocol/strict-yaml.ts';

function faultOf(text: string): string {
  try {
    parseStrictYaml(text);
    return 'taken';
  } catch (error) {
    if (error instanceof StrictYamlError) return error.message.split(',', 1)[0] ?? '';
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
    ['a member twice, quoted otherwise', 'a: 1\n"a": 2\n', 'line 2'],
    ['a member twice, spelt otherwise', 'a: 1\n"\\x61": 2\n', 'line 2'],
    ['a member twice within', 'a: [{ b: 1 }, { b: 1, c: 2,\n b: 3 }]\n', 'line 2'],
    ['a member twice, written out', '? a\n: 1\n? a\n: 2\n', 'line 3'],
    ['a member of every object twice', '__proto__: 1\n__proto__: 2\n', 'line 2'],
    ['an alias', 'a: &x [1]\nb: *x\n', 'line 2'],
    ['a merge', 'a: &x {c: 1}\nb:\n  <<: *x\n', 'line 3'],
    ['a tag', 'a: 1\nb: !!binary aGk=\n', 'line 2'],
    ['a tag of its own', 'a: !env SECRET\n', 'line 1'],
    ['a name that is no string', 'a:\n  1: x\n', 'line 2'],
    ['a name that is no string, behind one that is', 'a: 1\n2: x\n', 'line 1'],
    ['a name that is a list', '? [a, b]\n: 1\n', 'line 1'],
    ['two documents', 'a: 1\n---\nb: 2\n', 'line 2'],
    ['what does not end', 'a: [1\n', 'line 2'],
    ['a tab where a space belongs', 'a:\n\tb: 1\n', 'line 2'],
  ])('refuses %s and names the line', (_what, text, line) => expect(faultOf(text)).toBe(line));

  it.each([
    ['two documents', 'a: 1\n---\nb: 2\n', 2, 1],
    ['a bracket that is not closed', 'a: [1\n', 2, 1],
    ['a tab', 'a:\n\tb: 1\n', 2, 1],
    ['a quote that is not closed', 'a: "x\n', 2, 1],
    ['a member within a member', 'a: b: c\n', 1, 4],
    ['a reserved character', 'b: 1\na: @x\n', 2, 4],
    ['an unknown escape', 'a: "\\q"\n', 1, 5],
    ['a directive', '%FOO\n---\na: 1\n', 1, 1],
    ['another indentation', 'a:\n  b: 1\n c: 2\n', 3, 1],
    ['a list and an object', '- a\nb: 1\n', 2, 1],
    ['a block with more in its first line', 'a: |x\n  y\n', 1, 5],
    ['text behind a value', "a: 'x' y\n", 1, 8],
    ['an unknown tag', 'a: !!foo x\n', 1, 4],
    ['a colon on its own line', 'a\n: b\n', 2, 1],
    ['a long name', `${'x'.repeat(2000)}: 1`, 1, 1],
    ['a member twice', 'a: 1\nb: 2\na: 3\n', 3, 1],
    ['an alias', 'a: &x [1]\nb: *x\n', 2, 4],
  ])('says where %s is and what to do, not in the words of the library', (_what, text, line, column) => {
    let message = '';
    try {
      parseStrictYaml(text);
    } catch (error) {
      message = error instanceof StrictYamlError ? error.message : String(error);
    }
    expect(message.startsWith(`line ${line}, column ${column}: `)).toBe(true);
    const { errors, warnings } = parseDocument(text, { prettyErrors: false, uniqueKeys: false });
    for (const each of [...errors, ...warnings]) expect(message).not.toContain(each.message.slice(0, 20));
    expect(message).toMatch(/: .+: /);
    expect(message).not.toMatch(/YAML\.|implicit|token|scalar|\n/i);
  });

  it('takes the same members in mappings beside each other, and those of every object', () => {
    expect(parseStrictYaml('a: { x: 1 }\nb: { x: 1, b: 2 }\n')).toEqual({ a: { x: 1 }, b: { x: 1, b: 2 } });
    expect(Object.keys(Object(parseStrictYaml('constructor: 1\n__proto__: 2\n')))).toEqual([
      'constructor',
      '__proto__',
    ]);
  });

  // Time once grew with the square of their number: 830 KB took a minute and a half.
  it.each([
    [
      'of a block mapping',
      (count: number) =>
        names(count)
          .map((name) => `${name}: 1\n`)
          .join(''),
    ],
    [
      'of a flow mapping',
      (count: number) =>
        `{${names(count)
          .map((name) => `${name}: 1`)
          .join(',')}}`,
    ],
    [
      'with anchors',
      (count: number) =>
        names(count)
          .map((name) => `${name}: &${name} 1\n`)
          .join(''),
    ],
  ])('takes a time that grows with the number of members %s', (_what, textOf) => {
    const [some, more] = [textOf(4000), textOf(16_000)];
    leastCpuUs(some);
    // 4 where it grows with them, 16 where with their square.
    expect(leastCpuUs(more) / leastCpuUs(some)).toBeLessThan(9);
  });

  function names(count: number): readonly string[] {
    return Array.from({ length: count }, (_, i) => `member${i}`);
  }

  /** The least of several, of this process alone: what else the machine does only adds to it. */
  function leastCpuUs(text: string): number {
    const times = [1, 2, 3].map(() => {
      const started = process.cpuUsage();
      parseStrictYaml(text);
      const { system, user } = process.cpuUsage(started);
      return system + user;
    });
    return Math.min(...times);
  }

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
