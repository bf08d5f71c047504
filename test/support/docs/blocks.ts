/** Finds every fenced block of the documents and every file to copy, with its location. */
import { filesOfCheckout, readText } from './markdown.ts';

export interface Block {
  readonly file: string;
  /** Line of the opening fence, from 1. */
  readonly line: number;
  /** Heading above the block, without markup. */
  readonly section: string;
  /** Info string such as `sh`; empty when the fence has none. */
  readonly language: string;
  /** Lines, each with its line end. */
  readonly text: string;
}

/** Not documents: notes for people who change tests, and a fragment of another file. */
const OTHERS = /^test\/|\/README\.head\.md$/;

export const DOCUMENTS: readonly string[] = filesOfCheckout('.', '.md').filter((file) => !OTHERS.test(file));

/** Files to copy. */
export const MANIFESTS: readonly string[] = ['docs', 'envoy', 'bundles'].flatMap((folder) =>
  filesOfCheckout(folder, '.yaml'),
);

/** @throws Error for an unclosed fence */
export function blocksOf(file: string): readonly Block[] {
  const found: Block[] = [];
  let section = '';
  let open: { readonly line: number; readonly language: string; readonly lines: string[] } | undefined;
  for (const [index, line] of readText(file).split('\n').entries()) {
    const [, language] = /^\s*(?:```|~~~)(\S*)/.exec(line) ?? [];
    if (language === undefined) {
      if (open !== undefined) open.lines.push(`${line}\n`);
      else section = /^#+ (.*)$/.exec(line)?.[1]?.replaceAll('`', '').trim() ?? section;
    } else if (open === undefined) open = { line: index + 1, language, lines: [] };
    else {
      found.push({ file, section, line: open.line, language: open.language, text: open.lines.join('') });
      open = undefined;
    }
  }
  if (open !== undefined) throw new Error(`${file}:${open.line}: nothing closes this block`);
  return found;
}

export function placeOf({ file, line }: Block): string {
  return `${file}:${line}`;
}
