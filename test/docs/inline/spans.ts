/** Finds inline code in sentences and tables of the documents, and in comments of files to copy, with its location. */
import { DOCUMENTS, MANIFESTS } from '../../support/docs/blocks.ts';
import { readText } from '../../support/docs/markdown.ts';

export interface Span {
  readonly file: string;
  /** Counted from 1. */
  readonly line: number;
  readonly text: string;
}

/** CommonMark 0.31.2, section 6.1: a code span ends with as many backticks as it begins with. */
const CODE_SPAN = /(?<!`)(`+)(?!`)([\s\S]*?[^`])\1(?!`)/g;
/** A code span does not cross paragraphs, rows or items. */
const PARTS = /\n(?=\n|\||#+ | *[-*] | *\d+\. )/;

export function spansOf(file: string): readonly Span[] {
  const text = readText(file);
  return file.endsWith('.md') ? spansIn(file, text) : spansOfComments(file, text);
}

/** Code spans of all documents and files that people read. */
export function allSpans(): readonly Span[] {
  return [...DOCUMENTS, ...MANIFESTS, 'helm/proofgate/values.yaml', 'Dockerfile'].flatMap(spansOf);
}

/** In comments: code in backticks, indented lines, and flags without backticks. */
function spansOfComments(file: string, text: string): readonly Span[] {
  const comments = text.split('\n').map((line) => /^\s*#[|+*]? ?(.*)$/.exec(line)?.[1] ?? '');
  const bare = comments.flatMap((comment, index) => {
    const setOff = /^ {2,}([a-z].*)$/.exec(comment)?.[1];
    const flags = comment.match(/(?<![\w`-])--[a-z][a-z-]*[a-z](?![\w`-])/g) ?? [];
    const found = setOff === undefined ? flags : [setOff];
    return found.map((one) => ({ file, line: index + 1, text: one }));
  });
  return [...spansIn(file, comments.join('\n')), ...bare];
}

export function spansIn(file: string, markdown: string): readonly Span[] {
  const prose = markdown.replace(/^( *)(```|~~~)[\s\S]*?^\1\2/gm, (block) => block.replace(/[^\n]/g, ''));
  const spans: Span[] = [];
  let line = 1;
  for (const part of prose.split(PARTS)) {
    for (const { 2: text = '', index } of part.matchAll(CODE_SPAN)) {
      const before = part.slice(0, index).split('\n').length - 1;
      spans.push({ file, line: line + before, text: text.replace(/\s*\n\s*/g, ' ').trim() });
    }
    line += part.split('\n').length;
  }
  return spans;
}

export function placeOf({ file, line, text }: Span): string {
  return `${file}:${line}: ${text}`;
}
