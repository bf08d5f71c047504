/** The run-book of docs/enforcement.md against what `/readyz` says: every check, and every text, in the words of the code. */
import { describe, expect, it } from '@jest/globals';
import ts from 'typescript';
import { codesIn, filesOfCheckout, readText, sectionOf, tableRows } from './markdown.ts';

const page = readText('docs/enforcement.md');
const runBook = sectionOf(page, 'Run-book');

/** Where the texts of checks are made. */
const MAKERS = [
  'src/cli/verifier/readiness.ts',
  'src/cli/verifier/door-tls.ts',
  'src/cli/verifier/workers/worker-pool.ts',
  'src/verifier/replay/kept-fence.ts',
  'src/verifier/replay/memory.ts',
  ...filesOfCheckout('src/verifier/replay', '.ts').filter((file) => /redis-/.test(file)),
  ...filesOfCheckout('src/verifier/redis', '.ts').filter(
    (file) => !/shared-mark|replay-scripts|endpoint|greeting/.test(file),
  ),
];

/** Stands for what is put in when it happens. */
const GAP = '…';

/** Literals and templates of a file, with those that are added up as one. */
function textsOf(file: string): readonly string[] {
  const texts: string[] = [];
  const visit = (node: ts.Node): void => {
    if (ts.isThrowStatement(node) || isSaidElsewhere(node)) return;
    const text = textOf(node);
    if (text === undefined) ts.forEachChild(node, visit);
    else texts.push(text);
  };
  visit(ts.createSourceFile(file, readText(file), ts.ScriptTarget.Latest, true));
  return texts;
}

/** The start's errors and the log have lists of their own. */
function isSaidElsewhere(node: ts.Node): boolean {
  return (
    ts.isCallExpression(node) && /^(?:usageError|(?:\S*\.)?logger\.\w+)$/.test(node.expression.getText())
  );
}

function textOf(node: ts.Node): string | undefined {
  if (ts.isStringLiteralLike(node)) return node.text;
  if (ts.isTemplateExpression(node)) {
    return [node.head.text, ...node.templateSpans.map(({ literal }) => literal.text)].join(GAP);
  }
  if (!ts.isBinaryExpression(node) || node.operatorToken.kind !== ts.SyntaxKind.PlusToken) return undefined;
  const parts = [textOf(node.left), textOf(node.right)];
  return parts.every((part) => part === undefined) ? undefined : parts.map((part) => part ?? GAP).join('');
}

/** What a row has in words: without gaps, figures (`N`) and codes, which may be put in. */
function wordsOf(pattern: string): readonly string[] {
  const words = pattern.split(/…|\bN\b|\([a-z_0-9]+\)|(?<=: )[a-z]+_[a-z_]+$/);
  return words.map((word) => word.trim()).filter((word) => /[a-z]{2}/i.test(word));
}

const tables = runBook.split('\n### ').filter((section) => section.includes('`/readyz` says'));
const rows = tables.flatMap((section) => tableRows(section).flatMap(([cell]) => codesIn(cell)));
const points = [...runBook.matchAll(/^- (`.*?`): /gm)].flatMap(([, text]) => codesIn(text));
const told = [...rows, ...points];
const patterns = told.filter((code) => / /.test(code) && !/^[a-z_]+: …$/.test(code));
const texts = MAKERS.flatMap(textsOf);

it('names the checks that there are, and each has a section', () => {
  const named = ['readiness.ts', 'door-tls.ts', 'workers/worker-pool.ts'].flatMap((file) =>
    [...readText(`src/cli/verifier/${file}`).matchAll(/\bname: '([a-z_]+)'/g)].map(([, name = '']) => name),
  );
  const [, table = ''] = sectionOf(page, 'Health and readiness').split('| check |');
  const described = tableRows(`| check |${table}`).map(([cell]) => codesIn(cell)[0]);
  expect(new Set(described)).toEqual(new Set(named));
  for (const name of new Set(named)) {
    expect(runBook).toMatch(new RegExp(`[Cc]heck \`${name}\``));
  }
});

it.each(patterns)('%s is what the code says', (pattern) => {
  const words = wordsOf(pattern);
  expect(words).not.toEqual([]);
  for (const word of words) expect(texts.some((text) => text.includes(word))).toBe(true);
});

it.each(told.flatMap((code) => /^([a-z_]+): …$/.exec(code)?.[1] ?? []))(
  '%s is a code that there is',
  (code) => {
    const files = filesOfCheckout('src/bundle', '.ts');
    expect(files.some((file) => readText(file).includes(`'${code}'`))).toBe(true);
  },
);

/** Sentences: of three words or more, and no example, name of a setting or fault of ours. */
const sentences = texts.filter(
  (text) => text.split(' ').length > 2 && !/^[ :,(]|^\w+ \w+ \w+$|internal/.test(text),
);

describe('every text of the code', () => {
  it.each([...new Set(sentences)])('%s', (text) => {
    const words = patterns.map((pattern) => wordsOf(pattern));
    const isTold = words.some((row) => row.some((word) => word.length > 8 && text.includes(word)));
    expect(isTold).toBe(true);
  });
});
