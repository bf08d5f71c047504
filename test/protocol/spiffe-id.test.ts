import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import {
  isCanonicalSubject,
  isCanonicalSubjectPrefix,
  subjectLiesInTrustDomain,
} from '../../src/protocol/spiffe-id.ts';

const SEGMENT_CHARACTERS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-';
const AUTHORITY_CHARACTERS = SEGMENT_CHARACTERS.slice(26);

const NOT_CANONICAL = [
  // Scheme and what follows it
  'SPIFFE://shop.example/ns/prod',
  'Spiffe://shop.example/ns/prod',
  'spiffe:',
  'spiffe:shop.example/ns',
  'spiffe:/shop.example/ns',
  'spiffe:///ns',
  'spiffe:////ns',
  'spiffe:\\\\shop.example\\ns',
  // Authority
  'spiffe://Shop.example/ns',
  'spiffe://user@shop.example/ns',
  'spiffe://shop.example:443/ns',
  'spiffe://shop.example:/ns',
  'spiffe://shop%2eexample/ns',
  'spiffe://[::1]/ns',
  'spiffe://caf\u00e9.example/ns',
  `spiffe://${'d'.repeat(256)}/ns`,
  // A trust domain is not a workload.
  'spiffe://shop.example',
  'spiffe://shop.example/',
  // Segments
  'spiffe://shop.example//ns',
  'spiffe://shop.example/ns//prod',
  'spiffe://shop.example/ns/prod/',
  'spiffe://shop.example/.',
  'spiffe://shop.example/..',
  'spiffe://shop.example/ns/./prod',
  'spiffe://shop.example/ns/prod/../dev',
  'spiffe://shop.example/ns/prod/..',
  'spiffe://shop.example/ns/%2e%2e/dev',
  'spiffe://shop.example/ns%2fprod',
  'spiffe://shop.example/ns?x',
  'spiffe://shop.example/ns#y',
  'spiffe://shop.example/ns?x#y',
  'spiffe://shop.example/a,b',
  'spiffe://shop.example/a;b',
  'spiffe://shop.example/a b',
  'spiffe://shop.example/a~b',
  'spiffe://shop.example/a:b',
  'spiffe://shop.example/\u0000',
  'spiffe://shop.example/ns\u0000/prod',
  'spiffe://shop.example/ns\n',
  'spiffe://shop.example/caf\u00e9',
  'spiffe://shop.example/\uff0e\uff0e',
  `spiffe://shop.example/${'s'.repeat(2049 - 'spiffe://shop.example/'.length)}`,
];

const CANONICAL = [
  'spiffe://shop.example/ns/prod/sa/billing',
  'spiffe://s/A',
  'spiffe://a_b-c.9/...',
  'spiffe://127.0.0.1/.well-known/..x/x..',
  `spiffe://${'d'.repeat(255)}/ns`,
  `spiffe://shop.example/${'s'.repeat(2048 - 'spiffe://shop.example/'.length)}`,
];

/** Of other schemes, or of none: whatever stands in them. */
const OTHERS = [
  'client:billing',
  'client:a,b/../c?d#e',
  'https://shop.example/spiffe://evil/..',
  'spiffe',
  'xspiffe://shop.example/..',
  'spiffe%3a//shop.example/..',
];

describe('isCanonicalSubject', () => {
  it.each(NOT_CANONICAL)('refuses %j', (subject) => {
    expect(isCanonicalSubject(subject)).toBe(false);
  });

  it.each([...CANONICAL, ...OTHERS])('takes %j', (subject) => {
    expect(isCanonicalSubject(subject)).toBe(true);
  });

  it('takes of each character below 0x100 what the specification names, and nothing else', () => {
    const taken = (around: (character: string) => string) =>
      Array.from({ length: 256 }, (_, code) => String.fromCharCode(code)).filter((character) =>
        isCanonicalSubject(around(character)),
      );
    const sorted = (characters: string) => [...characters].sort();
    expect(taken((c) => `spiffe://x/a${c}b`)).toEqual(sorted(`${SEGMENT_CHARACTERS}/`));
    expect(taken((c) => `spiffe://a${c}b/x`)).toEqual(sorted(`${AUTHORITY_CHARACTERS}/`));
  });
});

describe('isCanonicalSubjectPrefix', () => {
  it.each([
    'spiffe://shop.example/',
    'spiffe://shop.example/ns/',
    'spiffe://shop.example/ns/.../',
    ...['', 'client:', 'https://shop.example/../'],
  ])('takes %j', (prefix) => {
    expect(isCanonicalSubjectPrefix(prefix)).toBe(true);
  });

  it.each([
    ...['spiffe:', 'spiffe:/', 'spiffe://', 'spiffe:///', 'SPIFFE://shop.example/', 'spiffe://Shop.example/'],
    ...['spiffe://shop.example/ns:', 'spiffe://shop.example:/', 'spiffe://user@shop.example/'],
    ...['spiffe://shop.example//', 'spiffe://shop.example/ns//', 'spiffe://shop.example/%2e/'],
    ...['spiffe://shop.example/./', 'spiffe://shop.example/ns/../', 'spiffe://shop.example/a?b/'],
    `spiffe://shop.example/${'s'.repeat(2048)}/`,
  ])('refuses %j', (prefix) => {
    expect(isCanonicalSubjectPrefix(prefix)).toBe(false);
  });

  it('takes whatever a canonical ID begins with, up to the end of a segment: what it refuses matches none', () => {
    const text = (characters: string) =>
      fc.string({ unit: fc.constantFrom(...characters), minLength: 1, maxLength: 6 });
    const segment = text(SEGMENT_CHARACTERS).filter((found) => found !== '.' && found !== '..');
    const path = fc.array(segment, { minLength: 1, maxLength: 5 });
    fc.assert(
      fc.property(text(AUTHORITY_CHARACTERS), path, (trustDomain, segments) => {
        const id = `spiffe://${trustDomain}/${segments.join('/')}`;
        expect(isCanonicalSubject(id)).toBe(true);
        for (let end = 1; end < id.length; end++) {
          const prefix = id.slice(0, end);
          if (!/[/:]$/.test(prefix) || !subjectLiesInTrustDomain(prefix, trustDomain)) continue;
          expect(isCanonicalSubjectPrefix(prefix)).toBe(true);
        }
      }),
    );
  });
});

describe('subjectLiesInTrustDomain', () => {
  it.each([
    ['spiffe://shop.example/ns/prod', true],
    ['spiffe://shop.example/', true],
    ['spiffe://shop.example', false],
    ['spiffe://shop.example.evil/ns', false],
    ['spiffe://evil/shop.example/', false],
    ['spiffe://user@shop.example/ns', false],
    ['spiffe://shop.example:443/ns', false],
    ['spiffe://SHOP.example/ns', false],
    ['SPIFFE://shop.example/ns', false],
    ['Spiffe://evil/ns', false],
    ['spiffe:/shop.example/ns', false],
    ['spiffe:shop.example', false],
    ['client:billing', true],
    ['https://shop.example/spiffe://evil', true],
  ])('%s: %s', (subject, expected) => {
    expect(subjectLiesInTrustDomain(subject, 'shop.example')).toBe(expected);
  });
});
