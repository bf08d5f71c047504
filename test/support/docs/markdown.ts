/** Reads the checkout's Markdown files: links, paths, headings, tables, codes. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, posix } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));

/** Folders without sources of this project, or with data only. */
const NOT_OURS = new Set(['node_modules', 'dist', '.build', '.cache', '.venv', '.git', 'vectors']);

/** @returns paths below the checkout's root, sorted */
export function filesOfCheckout(folder: string, extension: string): readonly string[] {
  return readdirSync(join(ROOT, folder), { withFileTypes: true })
    .flatMap((entry) => {
      const path = posix.join(folder, entry.name);
      if (entry.isDirectory()) return NOT_OURS.has(entry.name) ? [] : filesOfCheckout(path, extension);
      return entry.name.endsWith(extension) ? [path] : [];
    })
    .sort();
}

export function readText(path: string): string {
  return readFileSync(join(ROOT, path), 'utf8');
}

/** Targets of relative links, with their line: `docs/operate/cli.md#settings`. */
export function relativeLinks(markdown: string): readonly string[] {
  const links = [...withoutCodeBlocks(markdown).matchAll(/\]\(([^)\s]+)\)/g)];
  return links.map(([, target = '']) => target).filter((target) => !/^[a-z]+:/.test(target));
}

/** Matches paths of sources in the checkout, such as `test/e2e/envoy-facts-*.test.ts` or `src/cli/`. */
const SOURCE_PATH =
  /(?<![\w./:@-])(?:src|docs|test|envoy|helm|proto|bundles|bench|demo|scripts|bin)\/[\w./*-]*[\w/*]/g;

export function sourcePaths(text: string): readonly string[] {
  return [...new Set(text.match(SOURCE_PATH) ?? [])];
}

/** Whether the path exists; `*` matches a part of a file name. */
export function isInCheckout(path: string): boolean {
  if (!path.includes('*')) return existsSync(join(ROOT, path));
  const folder = dirname(join(ROOT, path));
  const pattern = posix
    .basename(path)
    .split('*')
    .map((part) => part.replace(/[.]/g, '\\.'))
    .join('.*');
  return existsSync(folder) && readdirSync(folder).some((name) => new RegExp(`^${pattern}$`).test(name));
}

/** Texts of all headings, without code markup. */
export function headings(markdown: string): readonly string[] {
  const lines = [...withoutCodeBlocks(markdown).matchAll(/^#{1,6} (.+)$/gm)];
  return lines.map(([, text = '']) => text.replaceAll('`', '').trim());
}

/** The anchor of a heading. */
export function anchorOf(heading: string): string {
  return heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N} _-]/gu, '')
    .replaceAll(' ', '-');
}

function withoutCodeBlocks(markdown: string): string {
  return markdown.replace(/^```[\s\S]*?^```/gm, '');
}

/** The text below a heading, up to the next heading of its level or above. @throws Error when there is no such heading */
export function sectionOf(markdown: string, heading: string): string {
  const lines = markdown.split('\n');
  const start = lines.findIndex((line) => /^#+ /.test(line) && line.replace(/^#+ /, '') === heading);
  const level = /^#+/.exec(lines[start] ?? '')?.[0].length;
  if (level === undefined) throw new Error(`there is no heading ${heading}`);
  const rest = lines.slice(start + 1);
  const end = rest.findIndex((line) => /^#+ /.test(line) && line.indexOf(' ') <= level);
  return rest.slice(0, end === -1 ? undefined : end).join('\n');
}

/** Cells of a section's tables, row by row, without the header and its separator. */
export function tableRows(section: string): readonly (readonly string[])[] {
  const rows = section.split('\n').filter((line) => line.startsWith('|'));
  const cells = rows.map((row) =>
    row
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim()),
  );
  return cells.filter((row, index) => {
    const isRule = (one: readonly string[] | undefined) => one?.every((cell) => /^-+$/.test(cell)) ?? false;
    return !isRule(row) && !isRule(cells[index + 1]);
  });
}

/**
 * Rows of the tables below the comment `<!-- table: NAME -->`, so that headings and sentences around them can change.
 *
 * @throws Error when the page has no table of that name
 */
export function tableNamed(markdown: string, name: string): readonly (readonly string[])[] {
  const [, ...parts] = markdown.split(`<!-- table: ${name} -->\n`);
  if (parts.length === 0) throw new Error(`there is no table named ${name}`);
  return parts.flatMap((part) => tableRows(/^(?:\|.*\n?)*/.exec(part)?.[0] ?? ''));
}

/** Code spans of a cell: `` `a`, `b` ``. */
export function codesIn(cell: string | undefined): readonly string[] {
  return [...(cell ?? '').matchAll(/`([^`]+)`/g)].map(([, code = '']) => code);
}
