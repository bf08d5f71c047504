/** Tests that hostile input always gets an answer, in time that grows at most linearly with the input. */
import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { isReservedName } from '../../src/enforcement/answers/upstream-headers.ts';
import { requestHeadersOf } from '../../src/process/http-proxy/raw-headers.ts';
import { decodeBase64url } from '../../src/protocol/base64url.ts';
import { parseContentDigest } from '../../src/protocol/content-digest.ts';
import { type HeaderLookup, holdsPassport, readCredentials } from '../../src/protocol/credentials.ts';
import { isIdentifier, isSignableHeaderName } from '../../src/protocol/identifiers.ts';
import { importPublicJwk } from '../../src/protocol/import-public-key.ts';
import { parsePassport } from '../../src/protocol/passport.ts';
import { isDenial } from '../../src/protocol/reasons.ts';
import {
  isCanonicalAuthority,
  isCanonicalTarget,
  normalizeAuthority,
  parseOrigin,
} from '../../src/protocol/request-target.ts';
import { signTranscript } from '../../src/protocol/signing.ts';
import { parseStrictJson } from '../../src/protocol/strict-json.ts';
import { parseByteSequences, parseInnerLists } from '../../src/protocol/structured-fields.ts';
import { formatTranscript, parseTranscript } from '../../src/protocol/transcript.ts';
import { hasPassportScheme } from '../../src/protocol/wire-names.ts';
import { foldPath } from '../../src/verifier/observation/enforced-prefixes.ts';
import {
  claimsDraft,
  headerDraft,
  jwsOfTexts,
  TEST_2,
  TRANSCRIPT,
  VALID_JWS,
} from '../support/protocol/fixtures.ts';

const RUNS = { numRuns: 1_000 };
const anyText = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 300 }),
  fc.string({ maxLength: 300 }),
  fc.uint8Array({ maxLength: 300 }).map((bytes) => Buffer.from(bytes).toString('latin1')),
);

/** A valid text with pieces taken out, put in twice or replaced. */
function mutated(valid: string): fc.Arbitrary<string> {
  const cut = fc.record({
    from: fc.nat(valid.length),
    length: fc.nat(8),
    by: fc.constantFrom('', '\n', '.', '=', ' ', '\0', '"', '}', ',', 'é', '\ud800', valid.slice(0, 20)),
  });
  return fc
    .array(cut, { minLength: 1, maxLength: 3 })
    .map((cuts) =>
      cuts.reduce(
        (text, { from, length, by }) => text.slice(0, from) + by + text.slice(from + length),
        valid,
      ),
    );
}

const HEADER_TEXT = JSON.stringify(headerDraft());
const CLAIMS_TEXT = JSON.stringify(claimsDraft());
const PROOF = signTranscript(TRANSCRIPT, TEST_2);

describe('never throws', () => {
  it('parsePassport', () => {
    const passports = fc.oneof(
      anyText,
      mutated(VALID_JWS),
      mutated(CLAIMS_TEXT).map((claims) => jwsOfTexts(HEADER_TEXT, claims)),
      mutated(HEADER_TEXT).map((header) => jwsOfTexts(header, CLAIMS_TEXT)),
      fc.tuple(fc.json(), fc.json()).map(([header, claims]) => jwsOfTexts(header, claims)),
      fc.json().map((value) => jwsOfTexts(HEADER_TEXT, CLAIMS_TEXT.replace('300', value))),
    );
    fc.assert(
      fc.property(passports, (jws) => {
        expect(typeof parsePassport(jws)?.sha256).toMatch(/^(?:undefined|string)$/);
      }),
      RUNS,
    );
  });

  it('parseTranscript', () => {
    const text = formatTranscript(TRANSCRIPT);
    const transcripts = fc.oneof(
      fc.uint8Array({ maxLength: 300 }),
      anyText.map((value) => Buffer.from(value, 'latin1')),
      mutated(text).map((value) => Buffer.from(value, 'latin1')),
    );
    fc.assert(
      fc.property(transcripts, (bytes) => {
        const parsed = parseTranscript(bytes, 'authorization');
        expect(
          parsed === undefined || formatTranscript(parsed) === Buffer.from(bytes).toString('latin1'),
        ).toBe(true);
      }),
      RUNS,
    );
  });

  it('readCredentials', () => {
    const lookupOf = (valid: string): fc.Arbitrary<HeaderLookup> =>
      fc.oneof(
        fc.constant<HeaderLookup>({ kind: 'absent' }),
        fc.constant<HeaderLookup>({ kind: 'ambiguous' }),
        fc
          .oneof({ weight: 2, arbitrary: fc.constant(valid) }, anyText, mutated(valid))
          .map((value): HeaderLookup => ({ kind: 'single', value })),
      );
    const requests = fc.record({
      authorization: lookupOf(`Passport ${VALID_JWS}`),
      'x-proofgate-transcript': lookupOf(PROOF.transcript),
      'x-proofgate-signature': lookupOf(PROOF.signature),
    });
    fc.assert(
      fc.property(requests, (lookups) => {
        const headers = {
          lookup: (name: string): HeaderLookup => lookups[name as keyof typeof lookups] ?? { kind: 'absent' },
          values: () => [],
          names: () => Object.keys(lookups),
          lines: () => [],
        };
        const result = readCredentials(headers, 'authorization', () => undefined);
        if (isDenial(result)) expect(result.reason).toBe('invalid_request_proof');
        else expect(result.proof.signature).toHaveLength(64);
      }),
      RUNS,
    );
  });

  it('importPublicJwk and the checks of targets', () => {
    fc.assert(
      fc.property(fc.oneof(fc.jsonValue(), fc.anything()), anyText, (value, text) => {
        importPublicJwk(value);
        for (const target of [text, `/${text}`]) expect(typeof isCanonicalTarget(target)).toBe('boolean');
        expect(typeof normalizeAuthority('https', text)).toBe('string');
        expect(typeof isCanonicalAuthority('https', text)).toBe('boolean');
        parseOrigin(`https://${text}`);
      }),
      RUNS,
    );
  });
});

/** Seconds that one run takes: the least of several measurements, which interruptions can only lengthen. */
function cost(run: () => unknown): number {
  let least = Number.POSITIVE_INFINITY;
  for (let round = 0; round < 12; round++) {
    const start = process.hrtime.bigint();
    let runs = 0;
    // At least a millisecond, so that the clock's resolution does not matter.
    do {
      run();
      runs += 1;
    } while (process.hrtime.bigint() - start < 1_000_000n);
    least = Math.min(least, Number(process.hrtime.bigint() - start) / runs);
  }
  return least;
}

function outcomeOf(run: () => unknown): unknown {
  try {
    return run();
  } catch {
    return undefined;
  }
}

/** Texts of about that many characters on which a bad pattern or a bad loop would take its worst. */
const TARGETS: readonly (readonly [string, (length: number) => string])[] = [
  ['dots', (length) => `/${'.'.repeat(length)}`],
  ['slash and dots', (length) => `/${'...x/'.repeat(length / 5)}`],
  ['escapes', (length) => `/${'%20'.repeat(length / 3)}`],
  ['escapes of three bytes', (length) => `/${'%e2%82%ac'.repeat(length / 9)}`],
  ['escapes, the last one bad', (length) => `/${'%20'.repeat(length / 3)}%`],
  ['escapes that end too soon', (length) => `/${'%c3%a9'.repeat(length / 6)}%c3`],
  ['a query of question marks', (length) => `/${'?'.repeat(length)}\n`],
  ['letters and a control character', (length) => `/${'a'.repeat(length)}\0`],
];

const JSON_TEXTS: readonly (readonly [string, (length: number) => string])[] = [
  ['open arrays', (length) => '['.repeat(length)],
  ['arrays', (length) => '['.repeat(length / 2) + ']'.repeat(length / 2)],
  ['objects in objects', (length) => `${'{"a":'.repeat(length / 6)}1${'}'.repeat(length / 6)}`],
  ['a string of backslashes', (length) => `"${'\\'.repeat(length & ~1)}"`],
  ['a string of escapes, not closed', (length) => `"${'\\u0061'.repeat(length / 6)}`],
  ['many members', (length) => `{${Array.from({ length: length / 10 }, (_, i) => `"${i}":1`).join(',')}}`],
  ['a long name twice', (length) => `{"${'a'.repeat(length / 2)}":1,"${'a'.repeat(length / 2)}":1}`],
  ['empty objects', (length) => `[${'{},'.repeat(length / 3)}1]`],
];

/** What one repeats in the middle of a text. */
const REPEATED: readonly string[] = [
  ' ',
  '\t',
  ', ',
  ' ,',
  '.',
  '. ',
  ';',
  '%20',
  '"',
  '" ',
  '(',
  'a=',
  ':',
  '=',
  '-',
  'x-',
];
const inside = (repeated: string) => (length: number) => `a${repeated.repeat(length / repeated.length)}b`;
const READERS: readonly (readonly [string, (text: string) => unknown])[] = [
  ['a header', (value) => requestHeadersOf(['x-name', value]).lookup('x-name')],
  ['hasPassportScheme', hasPassportScheme],
  ['holdsPassport', holdsPassport],
  ['isReservedName', (name) => isReservedName(`x${name}`)],
  ['parseInnerLists', (value) => parseInnerLists(`sig=("x" ${value})`)],
  ['parameters of parseInnerLists', (value) => parseInnerLists(`sig=("x");tag=${value}`)],
  ['parseByteSequences', (value) => parseByteSequences(`sig=:${value}:`)],
  ['parseContentDigest', (value) => parseContentDigest(`sha-256=${value}`)],
  ['foldPath', (text) => foldPath(`/v1/${text}`)],
];

const HEADERS_LINE = 'headers=content-type,x-tenant';

const CASES: readonly (readonly [string, (length: number) => () => unknown])[] = [
  ...TARGETS.map(
    ([name, text]) => [`isCanonicalTarget: ${name}`, prepared(text, isCanonicalTarget)] as const,
  ),
  ...READERS.flatMap(([name, read]) =>
    REPEATED.map(
      (repeated) => [`${name}: ${JSON.stringify(repeated)}`, prepared(inside(repeated), read)] as const,
    ),
  ),
  ...JSON_TEXTS.map(([name, text]) => [`parseStrictJson: ${name}`, prepared(text, parseStrictJson)] as const),
  ['decodeBase64url: not canonical', prepared((length) => `${'A'.repeat(length)}=`, decodeBase64url)],
  [
    'parsePassport: full stops',
    prepared(
      (length) => '.'.repeat(length),
      (text) => parsePassport(text, ''),
    ),
  ],
  [
    'parsePassport: claims of open arrays',
    prepared(
      (length) => jwsOfTexts(HEADER_TEXT, '['.repeat(length * 0.7)),
      (text) => parsePassport(text, ''),
    ),
  ],
  ['parseTranscript: line feeds', prepared((length) => '\n'.repeat(length), parseText)],
  [
    'parseTranscript: a target of spaces',
    prepared((length) => formatTranscript({ ...TRANSCRIPT, target: `/${' '.repeat(length)}x` }), parseText),
  ],
  [
    'parseTranscript: commas in the list of headers',
    prepared(
      (length) => formatTranscript(TRANSCRIPT).replace(HEADERS_LINE, `headers=${','.repeat(length)}`),
      parseText,
    ),
  ],
  [
    'parseTranscript: many headers',
    prepared((length) => formatTranscript({ ...TRANSCRIPT, headers: manyHeaders(length / 22) }), parseText),
  ],
  ['isIdentifier: far too long', prepared((length) => 'a'.repeat(length), isIdentifier)],
  [
    'isSignableHeaderName: far too long',
    prepared(
      (length) => 'a-'.repeat(length / 2),
      (name) => isSignableHeaderName(name, 'authorization'),
    ),
  ],
  ['parseOrigin: far too long', prepared((length) => `https://${'a-'.repeat(length / 2)}`, parseOrigin)],
];

const letters = (length: number) => 'a'.repeat(length);

/** The text is made outside what is measured. */
function prepared(text: (length: number) => string, run: (text: string) => unknown) {
  return (length: number) => {
    const given = text(Math.floor(length));
    return () => outcomeOf(() => run(given));
  };
}

function parseText(text: string): unknown {
  return parseTranscript(Buffer.from(text, 'latin1'), 'authorization');
}

function manyHeaders(count: number): { name: string; value: string }[] {
  return Array.from({ length: count }, (_, i) => ({ name: `h${String(i).padStart(4, '0')}`, value: 'v' }));
}

/** Eight times the length costs 8 times as much when it is linear, 64 times when it is quadratic. */
const MOST_GROWTH = 32;

describe('costs what its length says, at 8 times the length', () => {
  it('is a question that a quadratic pattern fails', () => {
    const quadratic = (length: number) => prepared(letters, (text) => /a+b/.test(text))(length);
    expect(cost(quadratic(7_200)) / cost(quadratic(900))).toBeGreaterThan(MOST_GROWTH);
  });

  it.each(CASES)('%s', (_, make) => {
    const ratio = () => cost(make(7_200)) / cost(make(900));
    // Measures again when the machine was busy the first time.
    const growth = ratio();
    expect(growth < MOST_GROWTH ? growth : ratio()).toBeLessThan(MOST_GROWTH);
  });

  it.each(['a,', 'a.b.c,', 'e30.b.c,', 'e30.e30.AAAA '])(
    'holdsPassport: as little as letters, for %j',
    (part) => {
      const text = (repeated: string) => (length: number) => repeated.repeat(length / repeated.length);
      const costOf = (repeated: string) => cost(prepared(text(repeated), holdsPassport)(7_200));
      const ratio = () => costOf(part) / costOf(`${'a'.repeat(199)},`);
      const factor = ratio();
      expect(factor < 8 ? factor : ratio()).toBeLessThan(8);
    },
  );

  it.each<[string, (length: number) => string]>([
    ['letters', (length) => `${'a'.repeat(length)}!`],
    ['letters and hyphens', (length) => `${'a-'.repeat(length / 2)}!`],
    ['hyphens', (length) => `a${'-'.repeat(length)}`],
    ['labels', (length) => `${'a.'.repeat(length / 2)}.`],
    ['long labels', (length) => `${'aaaaaaa.'.repeat(length / 8)}!`],
    ['colons in brackets', (length) => `[${':'.repeat(length)}`],
  ])('isCanonicalAuthority, at most 512 characters: %s', (_, text) => {
    const make = (length: number) => {
      const authority = text(length);
      return () => isCanonicalAuthority('https', authority);
    };
    const ratio = () => cost(make(496)) / cost(make(62));
    const growth = ratio();
    expect(growth < MOST_GROWTH ? growth : ratio()).toBeLessThan(MOST_GROWTH);
  });
});
