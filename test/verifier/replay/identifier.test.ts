import { createHash } from 'node:crypto';
import { describe, expect, it } from '@jest/globals';
import { replayIdentifier, subjectHash } from '../../../src/verifier/replay/identifier.ts';

describe('replay identifier', () => {
  it('is the SHA-256 of four lines, as base64url', () => {
    const lines = ['proofgate-jti-v1', 'shop', 'holder', 'jti'].map((line) => `${line}\n`).join('');
    const expected = createHash('sha256').update(lines).digest('base64url');
    expect(replayIdentifier('shop', 'holder', 'jti')).toBe(expected);
    expect(expected).toMatch(/^[A-Za-z0-9_-]{43}$/);
  });

  it('differs with every part, and with where one part ends', () => {
    const variants = [
      replayIdentifier('a', 'b', 'c'),
      replayIdentifier('x', 'b', 'c'),
      replayIdentifier('a', 'x', 'c'),
      replayIdentifier('a', 'b', 'x'),
      replayIdentifier('ab', '', 'c'),
    ];
    expect(new Set(variants).size).toBe(variants.length);
  });
});

describe('subject hash', () => {
  it('differs with issuer and subject, and with where one ends', () => {
    const variants = [
      subjectHash('a', 'b'),
      subjectHash('x', 'b'),
      subjectHash('a', 'x'),
      subjectHash('ab', ''),
    ];
    expect(new Set(variants).size).toBe(variants.length);
    expect(variants[0]).toMatch(/^[A-Za-z0-9_-]{43}$/);
  });
});
