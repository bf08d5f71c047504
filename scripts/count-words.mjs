/**
 * Counts the words of hand-written Markdown, and prints the largest pages. It does not count docs/reference/, which is
 * generated from the code or compared with it, the changelog, test vectors, and the generated README of the chart.
 * test/docs/words.test.ts holds the limit.
 */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const ROOT = new URL('../', import.meta.url);
const NOT_COUNTED = /^(?:docs\/reference\/|CHANGELOG\.md$|test\/vectors\/|helm\/proofgate\/README\.md$)/;

/** @returns `[path, words]` of each page, the largest first */
export function wordsOfPages() {
  const listed = execFileSync('git', ['ls-files', '*.md'], { cwd: ROOT }).toString().split('\n');
  return listed
    .filter((path) => path !== '' && !NOT_COUNTED.test(path))
    .map((path) => [path, wordsIn(readFileSync(new URL(path, ROOT), 'utf8'))])
    .sort(([, a], [, b]) => b - a);
}

/** Text between spaces that has a letter or a digit, so the bars of a table do not count. */
function wordsIn(markdown) {
  return markdown.split(/\s+/).filter((text) => /[\p{L}\p{N}]/u.test(text)).length;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const pages = wordsOfPages();
  for (const [path, words] of pages.slice(0, 25)) console.log(`${String(words).padStart(6)} ${path}`);
  console.log(
    `${String(pages.reduce((sum, [, words]) => sum + words, 0)).padStart(6)} in ${pages.length} pages`,
  );
}
