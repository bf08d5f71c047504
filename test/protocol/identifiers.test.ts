import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import {
  isIdentifier,
  isJti,
  isKeyBinding,
  isKeyId,
  isMethod,
  isSignableHeaderName,
  KEY_BINDINGS,
  parsePositiveInteger,
  satisfiesKeyBinding,
} from '../../src/protocol/identifiers.ts';

/** Every character of one byte that the check takes as a whole value. */
function acceptedCharacters(check: (value: string) => boolean): string {
  return Array.from({ length: 256 }, (_, code) => String.fromCharCode(code))
    .filter((character) => check(character))
    .join('');
}

const VISIBLE = Array.from({ length: 0x7e - 0x21 + 1 }, (_, i) => String.fromCharCode(0x21 + i)).join('');

describe.each([
  ['isIdentifier', isIdentifier, 512],
  ['isKeyId', isKeyId, 128],
])('%s', (_, check, limit) => {
  it('takes 0x21 to 0x7e and nothing else', () => {
    expect(acceptedCharacters(check)).toBe(VISIBLE);
  });

  it(`takes 1 to ${limit} characters`, () => {
    expect(['', 'a', 'a'.repeat(limit), 'a'.repeat(limit + 1)].map(check)).toEqual([
      false,
      true,
      true,
      false,
    ]);
  });

  it('takes strings only, and no line feed at the end', () => {
    expect([1, null, undefined, ['a'], {}, 'a\n', '\na'].map(check)).toEqual(Array(7).fill(false));
  });
});

describe('isMethod', () => {
  it('takes the token characters of RFC 9110 section 5.6.2', () => {
    const token = "!#$%&'*+-.0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ^_`abcdefghijklmnopqrstuvwxyz|~";
    expect(acceptedCharacters(isMethod)).toBe(token);
  });

  it('takes at most 32 characters', () => {
    expect(['', 'A'.repeat(32), 'A'.repeat(33), 'GET\n'].map(isMethod)).toEqual([false, true, false, false]);
  });
});

describe('isJti', () => {
  it('takes 22 to 128 characters of the base64url alphabet', () => {
    const of = (length: number) => 'a'.repeat(length);
    expect([21, 22, 128, 129].map((length) => isJti(of(length)))).toEqual([false, true, true, false]);
    expect(acceptedCharacters((character) => isJti(of(21) + character))).toBe(
      '-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz',
    );
  });
});

describe('parsePositiveInteger', () => {
  it.each([
    ['1', 1],
    ['10', 10],
    ['1800000000', 1_800_000_000],
    ['9007199254740991', Number.MAX_SAFE_INTEGER],
  ])('reads %j', (text, expected) => {
    expect(parsePositiveInteger(text)).toBe(expected);
  });

  it.each([
    '',
    '0',
    '01',
    '-1',
    '+1',
    '1.0',
    '1e3',
    ' 1',
    '1 ',
    '1\n',
    '0x1',
    '1_0',
    '١',
    '9007199254740992',
    '99999999999999999',
  ])('refuses %j', (text) => {
    expect(parsePositiveInteger(text)).toBeUndefined();
  });

  it('reads back every positive integer up to 2^53 - 1', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER }), (value) => {
        expect(parsePositiveInteger(String(value))).toBe(value);
      }),
    );
  });
});

describe('isSignableHeaderName', () => {
  it.each([
    'a',
    '0',
    'content-type',
    'x-tenant',
    'x_tenant',
    'a-',
    'a'.repeat(128),
    'x-proofgate',
    'authorization-2',
  ])('takes %j', (name) => {
    expect(isSignableHeaderName(name, 'authorization')).toBe(true);
  });

  it.each([
    '',
    '-a',
    '_a',
    'A',
    'x-Tenant',
    'a b',
    'a.b',
    'a:b',
    ':path',
    'a,b',
    'a=b',
    'a\n',
    'é',
    'a'.repeat(129),
    'authorization',
    'x-proofgate-',
    'x-proofgate-transcript',
    'x-proofgate-subject',
  ])('refuses %j', (name) => {
    expect(isSignableHeaderName(name, 'authorization')).toBe(false);
  });

  it('takes authorization where the passport is in a header of its own, and never that header', () => {
    expect(isSignableHeaderName('authorization', 'x-proofgate-passport')).toBe(true);
    expect(isSignableHeaderName('x-proofgate-passport', 'x-proofgate-passport')).toBe(false);
  });
});

describe('key bindings', () => {
  it('are closed', () => {
    expect(KEY_BINDINGS.every(isKeyBinding)).toBe(true);
    expect(['Software', '', 'none', null, undefined, 0].some(isKeyBinding)).toBe(false);
  });

  it('satisfy their own class and weaker ones', () => {
    const pairs = KEY_BINDINGS.flatMap((actual) =>
      KEY_BINDINGS.map((required) => [actual, required] as const),
    );
    expect(pairs.filter(([actual, required]) => satisfiesKeyBinding(actual, required))).toEqual([
      ['software', 'software'],
      ['attested_workload', 'software'],
      ['attested_workload', 'attested_workload'],
    ]);
  });
});
