/** Checks that the generated tables of docs/reference/ are current; `make reference` writes them. */
import { existsSync, writeFileSync } from 'node:fs';
import { expect, it } from '@jest/globals';
import { readText } from '../support/docs/markdown.ts';
import { type ReferenceTable, referenceTables } from '../support/docs/reference-tables.ts';
import { checkoutPath } from '../support/harness/checkout.ts';

const WRITES = process.env.PROOFGATE_TEST_WRITE_REFERENCE === '1';

const tables = await referenceTables();
const pages = [...new Set(tables.map(({ page }) => page))];

function textOf({ columns, rows }: ReferenceTable): string {
  const cell = (text: string) => text.replaceAll('|', '\\|');
  const lines = [columns, columns.map(() => '---'), ...rows];
  return lines
    .map((cells) => `| ${cells.map(cell).join(' | ')} |\n`)
    .join('')
    .replace(/^(?:\| --- )+\|$/m, (line) => line.replaceAll(' ', ''));
}

/** Replaces the table below its comment; a page that has none gets it at its end, below its heading. */
function withTable(page: string, table: ReferenceTable): string {
  const mark = `<!-- table: ${table.name} -->\n`;
  const [before = '', after] = page.split(mark);
  if (after !== undefined) return before + mark + textOf(table) + after.replace(/^(?:\|.*\n?)*/, '');
  if (table.heading === undefined) throw new Error(`${table.page} has no place for the table ${table.name}`);
  return `${page.trimEnd()}\n\n## ${table.heading}\n\n${mark}${textOf(table)}`;
}

it.each(pages)('%s has the tables of the code', (page) => {
  const path = checkoutPath(page);
  const own = tables.filter((table) => table.page === page);
  const text = existsSync(path) ? readText(page) : '';
  const current = own.reduce(withTable, text);
  if (WRITES) writeFileSync(path, current);
  else expect(text).toBe(current);
});

it('has no table of a command or tag that is gone', () => {
  const known = tables.map(({ name }) => name);
  const generated = readText('docs/reference/resources.md').matchAll(/<!-- table: (.*) -->/g);
  expect([...generated].map(([, name]) => name).filter((name = '') => !known.includes(name))).toEqual([]);
});
