/** Reads the citations in comments of the code: paths, file names, sections of documents, and names after `@link`. */
import { lstatSync } from 'node:fs';
import { posix } from 'node:path';
import { checkoutPath } from '../harness/checkout.ts';
import { anchorOf, filesOfCheckout, headings, isInCheckout, readText, sourcePaths } from './markdown.ts';

const FOLDERS = ['src', 'test', 'scripts', 'bench', 'demo', 'sdk', 'proto', 'helm'];
const EXTENSIONS = ['.ts', '.tsx', '.mjs', '.cjs', '.go', '.py', '.sh', '.proto', '.yaml'];

/** Files with comments, each once: without the symbolic links to one. */
export const COMMENTED_FILES: readonly string[] = FOLDERS.flatMap((folder) =>
  EXTENSIONS.flatMap((extension) => filesOfCheckout(folder, extension)),
).filter((file) => !lstatSync(checkoutPath(file)).isSymbolicLink());

const HASH_COMMENT = /^\s*#(?!!)(.*)$/;
const SLASH_COMMENT = /^\s*(?:\/\/|\/\*\*?|\*)(?!\/)(.*)$|\s\/\/\s(.*)$/;

/** The comments in a source, line by line. Other lines are empty, so that line numbers stay the same. */
export function commentsIn(file: string, source: string): string {
  const lines = source.split('\n');
  if (file.endsWith('.py')) return pythonComments(lines).join('\n');
  const pattern = /\.(?:sh|yaml)$/.test(file) ? HASH_COMMENT : SLASH_COMMENT;
  return lines
    .map((line) => pattern.exec(line))
    .map((match) => (match?.[1] ?? match?.[2] ?? '').replace(/\*\/\s*$/, '').trim())
    .join('\n');
}

function pythonComments(lines: readonly string[]): readonly string[] {
  let isInDocstring = false;
  return lines.map((line) => {
    const quotes = line.split('"""').length - 1;
    const isDocstring = isInDocstring || quotes > 0;
    if (quotes % 2 === 1) isInDocstring = !isInDocstring;
    return isDocstring ? line.trim() : (/#\s(.*)$/.exec(line)?.[1] ?? '');
  });
}

interface Reference {
  /** Counted from 1. */
  readonly line: number;
  readonly text: string;
}

const ALL_FILES: ReadonlySet<string> = new Set(
  [...EXTENSIONS, '.md'].flatMap((extension) => filesOfCheckout('.', extension)),
);
/** A file name in backticks, or a path relative to the file of the comment. */
const FILE_NAME =
  /(?<=`)(?:\.{1,2}\/)*[\w-][\w.-]*(?:\/[\w.-]+)*\.(?:ts|tsx|mjs|md)(?=`)|(?<![\w`./])\.{1,2}\/[\w./-]*\.(?:ts|tsx|mjs|md)\b/g;
/** The file of a rule about names, such as `x.extended.test.ts`. */
const PLACEHOLDER = /^x\./;

/** Paths and file names in the comments that lead nowhere. A name without a folder may be that of any file. */
export function deadFiles(file: string, comments: string): readonly Reference[] {
  return comments.split('\n').flatMap((comment, index) => {
    const paths = sourcePaths(comment).filter(
      (path) => !isInCheckout(path) && !isInCheckout(posix.join(posix.dirname(file), path)),
    );
    const names = [...comment.matchAll(FILE_NAME)]
      .map(([name]) => name)
      .filter((name) => !PLACEHOLDER.test(name) && !isFileNear(file, name));
    return [...new Set([...paths, ...names])].map((text) => ({ line: index + 1, text }));
  });
}

function isFileNear(file: string, name: string): boolean {
  if (ALL_FILES.has(posix.join(posix.dirname(file), name))) return true;
  if (name.startsWith('.')) return false;
  return ALL_FILES.has(name) || [...ALL_FILES].some((path) => path.endsWith(`/${name}`));
}

/** Names after `@link` that the source neither declares nor imports, so that an editor cannot follow them. */
export function deadLinks(source: string): readonly string[] {
  const code = source.replace(/\/\*\*[\s\S]*?\*\/|\/\/.*/g, '');
  return [...source.matchAll(/\{@link (\w+)/g)]
    .map(([, name = '']) => name)
    .filter((name) => !new RegExp(`\\b${name}\\b`).test(code));
}

/** Citations such as `docs/design/bundle.md "Content" and "Freshness"` whose section is missing, also across lines of a comment. */
export function deadSections(file: string, comments: string): readonly string[] {
  const text = comments.replaceAll('\n', ' ');
  return [...text.matchAll(/([\w/-]+\.md),? ("[^"]+"(?: and "[^"]+")*)/g)].flatMap(
    ([, document = '', sections = '']) =>
      [...sections.matchAll(/"([^"]+)"/g)]
        .map(([, section = '']) => section)
        .filter((section) => !hasSection(file, document, section))
        .map((section) => `${document} "${section}"`),
  );
}

function hasSection(file: string, document: string, section: string): boolean {
  return [document, posix.join(posix.dirname(file), document)]
    .filter(isInCheckout)
    .some((path) => headings(readText(path)).map(anchorOf).includes(anchorOf(section)));
}
