/**
 * Checks that the log table of docs/reference/log.md has each log line of the verifier, with its level and members. Texts may
 * differ.
 */
import { expect, it } from '@jest/globals';
import ts from 'typescript';
import { codesIn, filesOfCheckout, readText, tableNamed } from '../support/docs/markdown.ts';

const LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal'];

interface LogLine {
  /** `…` replaces values that are known only at run time. */
  readonly text: string;
  readonly level: string;
  readonly members: readonly string[];
}

/** Control, the broker, the agent and the signer have separate tables; the middleware writes to its application's log. */
const OTHERS = /^src\/(?:broker|caller|control|enforcement\/programs\/middleware)\/|\/closers\.ts$/;
const files = filesOfCheckout('src', '.ts').filter((file) => !OTHERS.test(file));
const sources = files.map((file) => {
  return ts.createSourceFile(file, readText(file), ts.ScriptTarget.Latest, true);
});

function visit(node: ts.Node, look: (node: ts.Node) => void): void {
  look(node);
  ts.forEachChild(node, (child) => visit(child, look));
}

/** @throws Error for a log line without a constant text */
function textOf(message: ts.Expression | undefined): string {
  if (message !== undefined && ts.isStringLiteralLike(message)) return message.text;
  if (message !== undefined && ts.isTemplateExpression(message) && message.head.text !== '') {
    return `${message.head.text}…`;
  }
  throw new Error(`a log line without a text of its own: ${message?.getSourceFile().fileName}`);
}

function membersOf(fields: ts.Expression | undefined): readonly string[] {
  if (fields === undefined || !ts.isObjectLiteralExpression(fields)) return [];
  return fields.properties.map((property) => property.name?.getText() ?? '').sort();
}

function loggedLines(): readonly LogLine[] {
  const lines: LogLine[] = [];
  for (const source of sources) {
    visit(source, (node) => {
      if (!ts.isCallExpression(node) || !ts.isPropertyAccessExpression(node.expression)) return;
      const { expression, name } = node.expression;
      if (!LEVELS.includes(name.text) || !/logger$/i.test(expression.getText())) return;
      const fields = node.arguments.length > 1 ? node.arguments[0] : undefined;
      lines.push({ text: textOf(node.arguments.at(-1)), level: name.text, members: membersOf(fields) });
    });
  }
  return lines;
}

/** Several places may write the same line: merges their members. */
function byText(lines: readonly LogLine[]): ReadonlyMap<string, Omit<LogLine, 'text'>> {
  const found = new Map<string, Omit<LogLine, 'text'>>();
  for (const { level, members, text } of lines) {
    const before = found.get(text);
    if (before !== undefined && before.level !== level) throw new Error(`two levels: ${text}`);
    found.set(text, { level, members: [...new Set([...(before?.members ?? []), ...members])].sort() });
  }
  return found;
}

type Row = Omit<LogLine, 'text'>;

function documentedRows(): readonly Row[] {
  return tableNamed(readText('docs/reference/log.md'), 'log').map(([, described = '']) => ({
    level: described.split(':')[0] ?? '',
    members: codesIn(described).toSorted(),
  }));
}

const sorted = (rows: Iterable<Row>) =>
  [...rows].map(({ level, members }) => `${level}: ${members.join(', ')}`).toSorted();

it('has a row for every line, with its level and its members, and no other', () => {
  const logged = byText(loggedLines());
  expect(logged.size).toBeGreaterThan(25);
  expect(sorted(documentedRows())).toEqual(sorted(logged.values()));
});
