/** Tests the corpus itself: every case can be written, names are unique, and there are as many as promised. */
import { expect, it } from '@jest/globals';
import { HTTP1_CASES } from './http1/corpus.ts';
import { HTTP2_CASES } from './http2/corpus.ts';

it.each([
  ['HTTP/1.1', HTTP1_CASES, 700],
  ['HTTP/2', HTTP2_CASES, 600],
] as const)('has unique cases of %s', (_protocol, cases, atLeast) => {
  const names = cases.map(({ name }) => name);
  expect(names.filter((name, index) => names.indexOf(name) !== index)).toEqual([]);
  expect(cases.length).toBeGreaterThanOrEqual(atLeast);
  const contents = cases.map((one) =>
    JSON.stringify([one.signs, 'frames' in one ? [one.frames, one.bare] : one.writes]),
  );
  const repeated = contents.flatMap((content, index) =>
    contents.indexOf(content) === index ? [] : [names[index]],
  );
  expect(repeated).toEqual([]);
});
