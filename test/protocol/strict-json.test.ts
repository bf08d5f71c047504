import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import {
  hasExactMembers,
  isJsonObject,
  parseStrictJson,
  readStrictJson,
  StrictJsonError,
} from '../../src/protocol/strict-json.ts';

describe('parseStrictJson refuses', () => {
  it.each([
    ['at the top', '{"a":1,"a":1}'],
    ['not next to each other', '{"a":1,"b":2,"a":3}'],
    ['one level down', '{"x":{"a":1,"a":2}}'],
    ['in an array', '[0,{"a":1,"a":2}]'],
    ['behind an array', '{"a":[1,2],"a":3}'],
    ['behind an object', '{"a":{"a":1},"a":3}'],
    ['behind an empty object', '{"a":{},"a":[]}'],
    ['behind a string that looks like an end', '{"a":"}","a":1}'],
    ['behind a string that ends in an escaped quote', '{"a":"\\"","a":1}'],
    ['behind a string that ends in a backslash', '{"a":"\\\\","a":1}'],
    ['with white space between', '{ "a" : 1 ,\n\t"a" : 2 }'],
    ['spelt with an escape', '{"a":1,"\\u0061":2}'],
    ['spelt with escapes in two ways', '{"\\u002F":1,"\\/":2}'],
    ['spelt with capital and small hexadecimal', '{"\\u00e9":1,"\\u00E9":2}'],
    ['spelt as a surrogate pair and as it is', '{"\\ud83d\\ude00":1,"😀":2}'],
    ['that is empty', '{"":1,"":2}'],
    ['that is __proto__', '{"__proto__":1,"__proto__":2}'],
    ['that is constructor', '{"constructor":1,"constructor":2}'],
  ])('a member twice: %s', (_, text) => {
    expect(() => parseStrictJson(text)).toThrow(StrictJsonError);
  });

  it.each([
    ['nothing', ''],
    ['white space', '  '],
    ['a byte order mark', '\ufeff{}'],
    ['text behind the value', '{} x'],
    ['two values', '{}{}'],
    ['a comma at the end', '{"a":1,}'],
    ['a comment', '{/**/}'],
    ['single quotes', "{'a':1}"],
    ['NaN', 'NaN'],
    ['a leading zero', '01'],
    ['a plus sign', '+1'],
    ['a hexadecimal number', '0x10'],
    ['a raw line feed in a string', '"\n"'],
    ['an unfinished object', '{"a":1'],
    ['an unfinished string', '"a'],
    ['a vertical tab between', '{\v}'],
  ])('what is not JSON: %s', (_, text) => {
    expect(() => parseStrictJson(text)).toThrow(StrictJsonError);
  });

  it('brackets that never close, however many', () => {
    for (const bracket of ['[', '{"a":', '[{"a":']) {
      expect(() => parseStrictJson(bracket.repeat(100_000))).toThrow(StrictJsonError);
    }
  });

  it('a member twice under 100,000 arrays', () => {
    const text = `${'['.repeat(100_000)}{"a":1,"a":2}${']'.repeat(100_000)}`;
    expect(() => parseStrictJson(text)).toThrow(StrictJsonError);
  });

  it('a member twice, without quoting a value', () => {
    expect(() => parseStrictJson('{"a":"secret-1","a":"secret-2"}')).toThrow(
      expect.objectContaining({ message: expect.not.stringContaining('secret') }),
    );
  });
});

describe('the member that occurs twice', () => {
  it.each([
    ['{"x":1,"a":1,"a":1}', 'a'],
    ['{"x":{"x":1,"a":2},"y":{"b":1,"b":2}}', 'b'],
    ['{"x":[1,"x",{"x":1}],"a":["a"],"b":"a","a":1}', 'a'],
    ['[0,"a",{"x":"a","a":1,"a":2}]', 'a'],
    ['{"x":[["a","a"],{}],"a":{"x":[]},"b":1,"a":3}', 'a'],
    ['{"x":{"a":{"b":1}},"b":{"a":1},"a":{},"b":2}', 'b'],
    ['{"x":{"y":[{"a":1},"a"],"a":1},"x":2}', 'x'],
    ['{"x":"\\"a\\"","a":":","b":",","a":1}', 'a'],
    ['{"x":1,"a b":1,"\\u0061 b":2}', 'a b'],
    ['{"":1,"":2}', ''],
  ])('is named: %s', (text, member) => {
    expect(readStrictJson(text, { maxDepth: 9, maxMembers: 99 })).toEqual({ kind: 'duplicate', member });
    expect(faultOf(text)).toEqual({ name: 'StrictJsonError', twice: member });
  });

  it('is none where something else is wrong', () => {
    expect(faultOf('{"a":1,}')).toEqual({ name: 'StrictJsonError', twice: undefined });
    expect(faultOf('{"a":1')).toEqual({ name: 'StrictJsonError', twice: undefined });
  });

  function faultOf(text: string): unknown {
    try {
      return parseStrictJson(text);
    } catch (error) {
      return error instanceof StrictJsonError ? { name: error.name, twice: error.twice } : error;
    }
  }
});

describe('readStrictJson', () => {
  const limits = { maxDepth: 2, maxMembers: 3 };

  it.each([
    ['{"a":1,"b":2,"c":3}'],
    ['{"a":{"b":1},"c":{}}'],
    ['[[1],{"a":":{[,"}]'],
    ['{"a":"\\":{\\\\","b":[]}'],
  ])('takes what is within them: %s', (text) => {
    expect(readStrictJson(text, limits)).toEqual({ kind: 'read', value: JSON.parse(text) });
  });

  it.each([
    ['{"a":1,"b":2,"c":3,"d":4}'],
    ['{"a":{"b":1,"c":1},"d":1}'],
    ['{"a":{"b":{}}}'],
    ['[[[]]]'],
    ['[{"a":[]}]'],
    ['[[[not JSON'],
  ])('refuses what is beyond, whether or not it is JSON: %s', (text) => {
    expect(readStrictJson(text, limits)).toEqual({ kind: 'beyond' });
  });

  it.each<[string, 'invalid' | 'duplicate']>([
    ['{"a":1', 'invalid'],
    ['{"a":1,"b":2,"c":3,"d', 'invalid'],
    ['{"a"', 'invalid'],
    ['{a:1}', 'invalid'],
    ['{"a":1,"a":2}', 'duplicate'],
  ])('tells what else is wrong: %s', (text, kind) => {
    expect(readStrictJson(text, limits).kind).toBe(kind);
  });

  it('finds the end of every string, whatever is escaped in it', () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 3 }), (value) => {
        const text = JSON.stringify(value);
        expect(parseStrictJson(text)).toEqual(JSON.parse(text));
      }),
    );
  });
});

describe('parseStrictJson takes', () => {
  it.each([
    ['the same name in two objects', '[{"a":1},{"a":2}]'],
    ['the same name in an object and in its member', '{"a":{"a":{"a":1}}}'],
    ['a value that equals a name', '{"a":"a","b":"a"}'],
    ['strings in an array that are equal', '{"a":["b","b"],"b":["b"]}'],
    ['names that differ in case', '{"a":1,"A":2}'],
    ['names that differ in normalisation only', '{"\\u00e9":1,"e\\u0301":2}'],
    ['a string full of JSON', '{"a":"{\\"a\\":1,\\"a\\":2}","b":1}'],
    ['100,000 arrays in each other', `${'['.repeat(100_000)}${']'.repeat(100_000)}`],
  ])('%s', (_, text) => {
    expect(JSON.stringify(Object.keys(Object(parseStrictJson(text))))).toBe(
      JSON.stringify(Object.keys(Object(JSON.parse(text)))),
    );
  });

  it('__proto__ as a member like any other', () => {
    const value = parseStrictJson('{"__proto__":{"admin":true}}');
    expect(Object.getPrototypeOf(value)).toBe(Object.prototype);
    expect(Object.hasOwn(Object(value), '__proto__')).toBe(true);
  });

  it('every value that JSON.parse takes, as JSON.parse takes it', () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.constantFrom(undefined, 1, '\t'), (value, indent) => {
        const text = JSON.stringify(value, null, indent);
        expect(parseStrictJson(text)).toEqual(JSON.parse(text));
      }),
    );
  });

  it('no text that JSON.parse refuses', () => {
    const nearly = fc.string({ unit: fc.constantFrom(...'{}[]",:\\ua0e1-.'), maxLength: 12 });
    fc.assert(
      fc.property(nearly, (text) => {
        const expected = outcome(() => JSON.parse(text));
        const actual = outcome(() => parseStrictJson(text));
        expect(actual === 'refused' || actual === expected).toBe(true);
      }),
      { numRuns: 5_000 },
    );
  });
});

function outcome(parse: () => unknown): string {
  try {
    return `value ${JSON.stringify(parse())}`;
  } catch {
    return 'refused';
  }
}

/** JSON as a tree in which an object may name a member twice. */
type Tree =
  | { readonly kind: 'leaf'; readonly text: string }
  | { readonly kind: 'array'; readonly items: readonly Tree[] }
  | { readonly kind: 'object'; readonly members: readonly Member[] };
interface Member {
  readonly name: string;
  /** Which characters of the name are written as escapes. */
  readonly escaped: readonly boolean[];
  readonly value: Tree;
}

const tree = fc.letrec<{ tree: Tree; member: Member }>((tie) => ({
  tree: fc.oneof(
    { maxDepth: 4 },
    fc.constantFrom('1', 'null', '"a"', '"}"', '"\\""', '"\\\\"', '",\\"a\\":"').map(
      (text): Tree => ({
        kind: 'leaf',
        text,
      }),
    ),
    fc.array(tie('tree'), { maxLength: 3 }).map((items): Tree => ({ kind: 'array', items })),
    fc.array(tie('member'), { maxLength: 4 }).map((members): Tree => ({ kind: 'object', members })),
  ),
  member: fc.record({
    name: fc.string({ unit: fc.constantFrom('a', 'b', '"', '\\', 'é', '😀'), maxLength: 2 }),
    escaped: fc.array(fc.boolean(), { minLength: 4, maxLength: 4 }),
    value: tie('tree'),
  }),
})).tree;

function write(value: Tree): string {
  if (value.kind === 'leaf') return value.text;
  if (value.kind === 'array') return `[${value.items.map(write).join(',')}]`;
  return `{${value.members.map((member) => `${writeName(member)}: ${write(member.value)}`).join(' ,')}}`;
}

function writeName({ name, escaped }: Member): string {
  const units = name.split('').map((unit, i) => (escaped[i] === true ? escapeOf(unit) : plain(unit)));
  return `"${units.join('')}"`;
}

function escapeOf(unit: string): string {
  return `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;
}

function plain(unit: string): string {
  // Half of a surrogate pair beside an escaped half is no character: both are escaped then.
  return /[\ud800-\udfff]/.test(unit) ? escapeOf(unit) : JSON.stringify(unit).slice(1, -1);
}

function namesTwice(value: Tree): boolean {
  if (value.kind === 'leaf') return false;
  if (value.kind === 'array') return value.items.some(namesTwice);
  const names = value.members.map(({ name }) => name);
  return new Set(names).size < names.length || value.members.some((member) => namesTwice(member.value));
}

describe('parseStrictJson', () => {
  it('refuses exactly the trees in which some object names a member twice', () => {
    const seen = { accepted: 0, refused: 0 };
    fc.assert(
      fc.property(tree, (value) => {
        const text = write(value);
        const isRefused = outcome(() => parseStrictJson(text)) === 'refused';
        expect(isRefused).toBe(namesTwice(value));
        seen[isRefused ? 'refused' : 'accepted'] += 1;
      }),
      { numRuns: 3_000 },
    );
    expect(Math.min(seen.accepted, seen.refused)).toBeGreaterThan(100);
  });
});

describe('isJsonObject', () => {
  it('tells objects from everything else', () => {
    expect([{}, [], null, 'a', 1, true, undefined].map(isJsonObject)).toEqual([
      true,
      false,
      false,
      false,
      false,
      false,
      false,
    ]);
  });
});

describe('hasExactMembers', () => {
  it.each([
    ['all required', '{"a":1}', true],
    ['an optional one too', '{"a":1,"b":1}', true],
    ['a required one missing', '{"b":1}', false],
    ['another one', '{"a":1,"c":1}', false],
    ['__proto__', '{"a":1,"__proto__":1}', false],
    ['a required one that only a prototype has', '{}', false],
  ])('%s', (_, text, expected) => {
    const object = parseStrictJson(text);
    expect(isJsonObject(object) && hasExactMembers(object, ['a'], ['b'])).toBe(expected);
  });

  it('does not look at prototypes', () => {
    expect(hasExactMembers({}, ['toString'])).toBe(false);
    expect(hasExactMembers(Object.create({ a: 1 }), ['a'])).toBe(false);
  });

  it.each([
    [{ a: 1 }, false],
    [{ b: 1 }, false],
    [{ a: 1, b: 1 }, true],
    [{ a: 1, b: 1, c: 1 }, false],
  ])('wants each of several: %j', (object, expected) => {
    expect(hasExactMembers(object, ['a', 'b'])).toBe(expected);
  });
});
