import { expect, it } from '@jest/globals';
import fc from 'fast-check';
import { ApiProblem, PROBLEMS, type ProblemCode } from '../../../src/control/domain/api-problem.ts';
import {
  ID_PREFIXES,
  type IdentifiedKind,
  newId,
  newPolicyReference,
} from '../../../src/control/domain/resource-identifiers.ts';

const KINDS = Object.keys(ID_PREFIXES) as IdentifiedKind[];
const MAX_MS = 2 ** 48 - 1;
const millis = fc.integer({ min: 0, max: MAX_MS });

it('IDs have their kind and 26 characters, and no kind has the prefix of another', () => {
  expect(new Set(Object.values(ID_PREFIXES)).size).toBe(KINDS.length);
  fc.assert(
    fc.property(fc.constantFrom(...KINDS), millis, (kind, ms) => {
      const [prefix, text] = newId(kind, ms).split('_');
      expect(prefix).toBe(ID_PREFIXES[kind]);
      expect(text).toMatch(/^[0-9a-hjkmnp-tv-z]{26}$/);
    }),
  );
});

it('IDs sort by the moment they were made, as bytes', () => {
  fc.assert(
    fc.property(millis, millis, (a, b) => {
      fc.pre(a !== b);
      const order = Buffer.compare(Buffer.from(newId('source', a)), Buffer.from(newId('source', b)));
      expect(order).toBe(a < b ? -1 : 1);
    }),
  );
});

it('IDs of one moment differ, in all of their random part', () => {
  const ids = Array.from({ length: 10_000 }, () => newId('derivedKey', MAX_MS));
  expect(new Set(ids).size).toBe(ids.length);
  // 48 bits fill ten characters except for two bits; two zero bits precede them.
  expect(new Set(ids.map((id) => id.slice(0, 'dk_'.length + 9))).size).toBe(1);
  for (let at = 'dk_'.length + 11; at < 'dk_'.length + 26; at++) {
    expect(new Set(ids.map((id) => id[at])).size).toBe(32);
  }
});

it('no ID is made of a moment that is none', () => {
  for (const ms of [-1, MAX_MS + 1, Number.NaN]) expect(() => newId('source', ms)).toThrow();
});

it('policy references are 160 random bits', () => {
  const references = Array.from({ length: 1000 }, newPolicyReference);
  expect(new Set(references).size).toBe(references.length);
  for (const reference of references) expect(reference).toMatch(/^epr_[A-Za-z0-9_-]{27}$/);
});

it.each(Object.keys(PROBLEMS) as ProblemCode[])('problem %s has a status, a title and its code', (code) => {
  expect(code).toMatch(/^[a-z]+(_[a-z0-9]+)*$/);
  const [status, title] = PROBLEMS[code];
  expect(status).toBeGreaterThanOrEqual(400);
  expect(status).toBeLessThan(600);
  expect(new ApiProblem(code)).toMatchObject({ code, message: title, name: 'ApiProblem' });
  expect(new ApiProblem(code, 'more', { retryAfterSeconds: 3 })).toMatchObject({
    message: 'more',
    retryAfterSeconds: 3,
  });
});
