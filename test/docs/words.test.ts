/** Limits the number of hand-written words: a change that adds a page shortens another. */
import { expect, it } from '@jest/globals';
import { wordsOfPages } from '../../scripts/count-words.mjs';

/** A new page may raise it, never above 50,000. Lower it with each cut. */
const MAX_WORDS = 50_000;

it('hand-written pages have no more words', () => {
  const words = wordsOfPages().reduce((sum, [, count]) => sum + count, 0);
  expect(words).toBeGreaterThan(10_000);
  expect(words).toBeLessThanOrEqual(MAX_WORDS);
});
