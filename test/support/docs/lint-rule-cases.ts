/**
 * Cases of each rule: changes to clean configurations that it must or must not report. `test/tools/gateway-lint/` has the
 * configurations in `bases/`, and in `cases/` the changes, one file for each file of rules.
 *
 * A case begins with `=== RULE bad|good BASE`, and empty lines separate its hunks. A line of a hunk begins with `-` (removed),
 * `+` (added) or a blank (kept). In a bad case, lines that the rule reports end in `# finding`.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { lintGateway } from '../../../src/tools/gateway-lint/lint.ts';

export interface RuleCase {
  readonly rule: string;
  readonly kind: string;
  readonly base: string;
  readonly text: string;
}

const FOLDER = new URL('../../tools/gateway-lint/', import.meta.url);
const fileBelow = (path: string) => readFileSync(new URL(path, FOLDER), 'utf8');

/** A clean configuration, such as `istio`. */
export function cleanBase(name: string): string {
  return fileBelow(`bases/${name}.yaml`);
}

export function cleanBases(): readonly string[] {
  return readdirSync(new URL('bases/', FOLDER)).map((file) => file.replace('.yaml', ''));
}

export function ruleCases(kind: 'bad' | 'good'): readonly RuleCase[] {
  return readdirSync(new URL('cases/', FOLDER))
    .flatMap((file) => fileBelow(`cases/${file}`).split(/^=== /m).slice(1))
    .map(caseIn)
    .filter((one) => one.kind === kind);
}

function caseIn(text: string): RuleCase {
  const [, rule = '', kind = '', base = '', hunks = ''] =
    /^(\S+) (bad|good) (\S+)\n([\s\S]*)$/.exec(text) ?? [];
  const clean = base === 'nothing' ? '' : cleanBase(base);
  return { rule, kind, base, text: hunks.trimEnd().split('\n\n').reduceRight(patched, clean) };
}

function patched(text: string, hunk: string): string {
  const lines = hunk.split('\n').filter((line) => line !== '');
  const side = (mark: string) =>
    lines
      .filter((line) => line.startsWith(mark) || line.startsWith(' '))
      .map((line) => `${line.slice(1)}\n`)
      .join('');
  const removed = side('-');
  return exchanged(`\n${text}`, `\n${removed}`, `\n${side('+')}`).slice(1);
}

export interface Found {
  readonly rule: string;
  readonly line: number;
}

/** @throws Error when the text is no gateway configuration */
export function found(text: string, allowedRules: readonly string[] = []): readonly Found[] {
  const report = lintGateway(text, { allowedRules });
  if (report === undefined) throw new Error('nothing was recognised');
  return report.findings.map(({ place, rule }) => ({ rule, line: place.line }));
}

export function rulesIn(text: string): readonly string[] {
  return [...new Set(found(text).map(({ rule }) => rule))];
}

/** Line numbers that end in `# finding`. */
export function markedLines(text: string): readonly number[] {
  return text.split('\n').flatMap((line, i) => (line.endsWith('# finding') ? [i + 1] : []));
}

/** The text with one passage replaced. @throws Error when the passage is absent */
export function exchanged(text: string, passage: string, by: string): string {
  if (!text.includes(passage)) throw new Error(`not there: ${passage}`);
  return text.replace(passage, () => by);
}
