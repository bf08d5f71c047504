/** Checks that docs/operate/run-book.md lists every check of `/readyz`, and the codes of its problems and warnings. */
import { expect, it } from '@jest/globals';
import { REPLAY_FENCE_REASONS } from '../../src/verifier/replay/store.ts';
import { codesIn, filesOfCheckout, readText, tableNamed } from '../support/docs/markdown.ts';

const page = readText('docs/operate/enforcement.md');
const codesOfRunBook = readText('docs/operate/run-book.md').split('\n').flatMap(codesIn);
/** Control, the broker, the agent and the signer have separate checks. */
const OTHERS = /\/(?:broker|control|caller)\//;
const files = filesOfCheckout('src', '.ts').filter((file) => !OTHERS.test(file));
const sources = files.map(readText).join('\n');

/** Code constructs a `ReadinessCheck` with its name first, then the problem; a listener names its TLS check, then its port. */
const checks = new Set(
  [...sources.matchAll(/\b(?:name: '([a-z_]+)',\s+problem|check: '([a-z_]+)', port)\b/g)].map(
    ([, name, ofTls]) => name ?? ofTls ?? '',
  ),
);

it('has every check that there is, and no other', () => {
  const described = tableNamed(page, 'readiness-checks').map(([cell]) => codesIn(cell)[0]);
  expect(checks.size).toBeGreaterThan(6);
  expect(described.toSorted()).toEqual([...checks].toSorted());
  expect([...checks].filter((name) => !codesOfRunBook.includes(name))).toEqual([]);
});

/**
 * Matches `signature_invalid: …`, and `(primary_changed)` within a text. Causes of the operating system and HTTP statuses are
 * excluded.
 */
const prefixed = codesOfRunBook.flatMap((code) => /^([a-z]+_[a-z_]+): …$/.exec(code)?.[1] ?? []);
const inBrackets = codesOfRunBook.flatMap((code) =>
  [...code.matchAll(/\(([a-z]+(?:_[a-z]+)*)\)/g)].map(([, name = '']) => name),
);
const ours = [...prefixed, ...inBrackets].filter((code) => !/^e[a-z]{2,}$/.test(code));

it.each([...new Set(ours)])('%s is a code that there is', (code) => {
  expect(sources).toMatch(new RegExp(`['(]${code}[')]`));
});

it('has every reason for which the replay store puts up a fence', () => {
  expect(REPLAY_FENCE_REASONS.filter((reason) => !inBrackets.includes(reason))).toEqual([]);
});
