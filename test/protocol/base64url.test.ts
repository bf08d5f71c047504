import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { decodeBase64url, decodeBase64urlText, isBase64urlOf32Bytes } from '../../src/protocol/base64url.ts';

const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
const CHARACTERS = [...ALPHABET];

describe('decodeBase64url', () => {
  it.each([
    ['', ''],
    ['Zg', 'f'],
    ['Zm8', 'fo'],
    ['Zm9v', 'foo'],
    ['Zm9vYg', 'foob'],
    ['Zm9vYmE', 'fooba'],
    ['Zm9vYmFy', 'foobar'],
  ])('reads the test vectors of RFC 4648, without their padding: %j', (text, bytes) => {
    expect(decodeBase64url(text)?.toString('latin1')).toBe(bytes);
  });

  it.each([
    ['padding', 'Zg=='],
    ['some of the padding', 'Zg='],
    ['padding after a whole group', 'Zm9v='],
    ['the other alphabet, 62', '-_-+'],
    ['the other alphabet, 63', '-_-/'],
    ['a space', 'Zm 9v'],
    ['a space at the start', ' Zm9v'],
    ['a line feed at the end', 'Zm9v\n'],
    ['one character', 'A'],
    ['one character beyond a group', 'Zm9vA'],
    ['stray bits behind one byte', 'Zh'],
    ['stray bits behind two bytes', 'Zm9'],
    ['a character beyond ASCII', 'Zm9é'],
    ['a character that is an A in its low byte', 'Zm9\u0141'],
    ['NUL', 'Zm9v\0'],
    ['a full stop', 'Zm9v.Zg'],
  ])('refuses %s', (_, text) => {
    expect(decodeBase64url(text)).toBeUndefined();
  });

  it('takes one spelling of each byte, and refuses the 3,840 others of two characters', () => {
    const accepted = CHARACTERS.flatMap((first) =>
      CHARACTERS.filter((second) => decodeBase64url(first + second) !== undefined),
    );
    expect(accepted).toHaveLength(256);
    expect(new Set(accepted)).toEqual(new Set('AQgw'));
  });

  it('takes only last characters without stray bits behind two bytes', () => {
    const accepted = CHARACTERS.filter((last) => decodeBase64url(`Zm${last}`) !== undefined);
    expect(accepted.join('')).toBe('AEIMQUYcgkosw048');
  });

  it('round trip: any bytes', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
        expect(decodeBase64url(Buffer.from(bytes).toString('base64url'))).toEqual(Buffer.from(bytes));
      }),
    );
  });

  it('whatever it takes is how those bytes are spelt', () => {
    const nearly = fc.string({ unit: fc.constantFrom(...ALPHABET, '=', '+', '/', ' ', 'é'), maxLength: 12 });
    fc.assert(
      fc.property(fc.oneof(nearly, fc.string({ unit: 'binary' })), (text) => {
        const bytes = decodeBase64url(text);
        expect(bytes === undefined || bytes.toString('base64url') === text).toBe(true);
      }),
    );
  });
});

describe('decodeBase64urlText', () => {
  it('agrees with decodeBase64url', () => {
    const right = fc.uint8Array({ maxLength: 300 }).map((bytes) => Buffer.from(bytes).toString('base64url'));
    const nearly = fc.string({ unit: fc.constantFrom(...ALPHABET, '=', '+', '/', ' ', 'é'), maxLength: 12 });
    fc.assert(
      fc.property(fc.oneof(right, nearly, fc.string({ unit: 'binary' })), (text) => {
        expect(decodeBase64urlText(text)).toBe(decodeBase64url(text)?.toString('latin1'));
      }),
      { numRuns: 2_000 },
    );
  });

  it.each([8191, 8192])('takes %d bytes', (byteLength) => {
    const bytes = Buffer.alloc(byteLength, 'proofgate');
    expect(decodeBase64urlText(bytes.toString('base64url'))).toBe(bytes.toString('latin1'));
  });

  it.each([8193, 8194, 8195, 20_000])('refuses %d bytes', (byteLength) => {
    expect(decodeBase64urlText(Buffer.alloc(byteLength, 'proofgate').toString('base64url'))).toBeUndefined();
  });

  it('keeps nothing of the text before', () => {
    expect(decodeBase64urlText('Zm9vYmFy')).toBe('foobar');
    expect(['', 'Zg'].map(decodeBase64urlText)).toEqual(['', 'f']);
  });
});

describe('isBase64urlOf32Bytes', () => {
  it('agrees with decoding', () => {
    const text = fc
      .tuple(fc.string({ unit: fc.constantFrom(...ALPHABET), minLength: 41, maxLength: 43 }), fc.nat(63))
      .map(([start, last]) => start + ALPHABET.charAt(last));
    fc.assert(
      fc.property(fc.oneof(text, fc.string({ unit: 'binary', minLength: 43, maxLength: 43 })), (value) => {
        expect(isBase64urlOf32Bytes(value)).toBe(decodeBase64url(value)?.byteLength === 32);
      }),
      { numRuns: 2_000 },
    );
  });

  it('takes no line feed behind it', () => {
    const sha256 = 'A'.repeat(43);
    expect([sha256, `${sha256}\n`].map(isBase64urlOf32Bytes)).toEqual([true, false]);
  });
});
