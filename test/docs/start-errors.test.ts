/** Checks that docs/reference/command-line.md lists exactly the error codes with which a verifier fails at start. */
import { expect, it } from '@jest/globals';
import { codesIn, filesOfCheckout, readText, tableNamed } from '../support/docs/markdown.ts';

const cli = readText('docs/reference/command-line.md');

const codesOf = (name: string) => tableNamed(cli, name).flatMap((cells) => cells.flatMap(codesIn));
const documented = tableNamed(cli, 'verifier-start-errors').flatMap(([cell]) => codesIn(cell));
/** Codes that other commands also raise. */
const general = new Set(codesOf('error-codes').filter((code) => !documented.includes(code)));

/** Sources outside the verifier's folder that it shares with other commands. */
const SHARED = [
  'src/process/connections/listen-failure.ts',
  'src/process/connections/listener-tls.ts',
  'src/process/files/secret-files.ts',
  'src/process/files/input-files.ts',
  'src/verifier/assembly/audit-settings.ts',
  'src/verifier/assembly/state-lock.ts',
];
const OTHER_PROGRAMS = /\/(?:proxy|middleware)\//;
const RAISED = /(?:usageError\(\s*|new CliError\(\s*'usage',\s*)(?:'([a-z0-9_]+)'|`([^`]+)`)/g;

/** Codes as literals, and as patterns for template strings. */
function raisedCodes(): { readonly codes: ReadonlySet<string>; readonly patterns: readonly RegExp[] } {
  const files = [
    ...filesOfCheckout('src/enforcement/programs', '.ts').filter((file) => !OTHER_PROGRAMS.test(file)),
    'src/cli/commands/verifier-command.ts',
    ...SHARED,
  ];
  const raised = files.flatMap((file) => [...readText(file).matchAll(RAISED)]);
  const templates = raised.flatMap(([, , template]) => template ?? []);
  return {
    codes: new Set(raised.flatMap(([, code]) => code ?? []).filter((code) => !general.has(code))),
    patterns: templates.map((template) => new RegExp(`^${template.replace(/\$\{[^}]*\}/g, '[a-z_]+')}$`)),
  };
}

it('has each of them once, and no other', () => {
  const { codes, patterns } = raisedCodes();
  expect(codes.size).toBeGreaterThan(20);
  const literal = documented.filter(
    (code) => codes.has(code) || !patterns.some((pattern) => pattern.test(code)),
  );
  expect(literal.toSorted()).toEqual([...codes].toSorted());
  expect(patterns.filter((pattern) => !documented.some((code) => pattern.test(code)))).toEqual([]);
});
