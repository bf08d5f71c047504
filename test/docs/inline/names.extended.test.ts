/** Checks that the values, documents and sections named in the chart's notes exist. */
import { expect, it } from '@jest/globals';
import { describeChart, notesOf, VALUE_FILES } from '../../support/chart/chart.ts';
import { headings, isInCheckout, readText, sourcePaths } from '../../support/docs/markdown.ts';
import { isValue, valuePathsIn } from './value-paths.ts';

describeChart("the chart's notes", () => {
  it.each(VALUE_FILES)('of %s name values, documents and sections that are there', (file) => {
    const notes = notesOf({ file });
    expect(valuePathsIn(notes).filter((path) => !isValue(path))).toEqual([]);
    expect(sourcePaths(notes).filter((path) => !isInCheckout(path))).toEqual([]);
    const cited = [...notes.matchAll(/(docs\/[\w/-]+\.md) "([^"]+)"/g)];
    const missing = cited.filter(
      ([, document = '', section = '']) => !headings(readText(document)).includes(section),
    );
    expect(missing.map(([text]) => text)).toEqual([]);
  });
});
