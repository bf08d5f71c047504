/** Checks that the documents contain every command, every flag of `ctl`, and every error code of the command line. */
import { expect, it } from '@jest/globals';
import { KINDS } from '../../src/cli/ctl/resource-kinds.ts';
import { startInProcess } from '../support/cli/in-process.ts';
import { codesIn, filesOfCheckout, readText, tableNamed } from '../support/docs/markdown.ts';

interface Command {
  /** Such as `ctl apply`. */
  readonly name: string;
  readonly flags: readonly string[];
}

/** Read from the program's own help, so that a new command needs no change here. */
async function commandsBelow(path: readonly string[]): Promise<readonly Command[]> {
  const { exitCode, stdout } = await startInProcess([...path, '--help']).ended;
  expect(exitCode).toBe(0);
  const [options = '', commands = ''] = stdout.split('\nCommands:\n');
  // The examples below are not commands.
  const listed = commands.split('\n\n')[0] ?? '';
  const names = [...listed.matchAll(/^ {2}([a-z][a-z-]*) /gm)].map(([, name = '']) => name);
  const own = names.filter((name) => name !== 'help');
  const flags = [...options.matchAll(/^ {2}(?:-\w, )?--([a-z-]+)/gm)].map(([, flag = '']) => flag);
  const below: Command[] = [];
  for (const name of own) below.push(...(await commandsBelow([...path, name])));
  // A group has no settings of its own.
  const isCommand = own.length === 0 || flags.includes('config');
  return isCommand && path.length > 0 ? [{ name: path.join(' '), flags }, ...below] : below;
}

const commands = await commandsBelow([]);
const ofCtl = commands.filter(({ name }) => name.startsWith('ctl '));
const ctl = ['docs/operate/ctl.md', 'docs/reference/ctl.md', 'docs/reference/command-line.md']
  .map(readText)
  .join('\n');
const reference = readText('docs/reference/command-line.md');

it('knows the program', () => {
  expect(commands.map(({ name }) => name)).toEqual(
    expect.arrayContaining(['enroll', 'control', 'bundle sign', 'ctl apply', 'ctl revoke']),
  );
});

it('docs/reference/command-line.md has every command in its table', () => {
  const described = tableNamed(reference, 'commands').map(([cell]) => codesIn(cell)[0] ?? '');
  expect(described.toSorted()).toEqual(commands.map(({ name }) => name).toSorted());
});

it.each(ofCtl.map(({ name, flags }) => [name, flags] as const))('the documents have %s', (name, flags) => {
  const [, verb] = name.split(' ');
  const missing = flags.filter(
    (flag) => !['help', 'config', 'output'].includes(flag) && !new RegExp(`--${flag}\\b`).test(ctl),
  );
  expect(missing).toEqual([]);
  expect(new RegExp(`\`(?:proofgate ctl )?${verb}[\` ]`).test(ctl)).toBe(true);
});

it('docs/reference/ctl.md has every kind that get shows', () => {
  const known = Object.keys(KINDS);
  const described = tableNamed(readText('docs/reference/ctl.md'), 'get-kinds').flatMap(([cell]) =>
    codesIn(cell),
  );
  expect(known.length).toBeGreaterThan(10);
  expect(described.toSorted()).toEqual(known.toSorted());
});

/** Matches the code argument of these errors, after an optional kind. */
const RAISED =
  /(?:usageError|new (?:Cli|Operator|Enroll)Error)\(\s*(?:'(?:usage|refused|unreachable|timed_out|pending|internal)',\s*)?'([a-z0-9_]+)'/g;
const ERROR_KINDS = ['usage', 'refused', 'pending'];

it('every code that the command line raises is in a document', () => {
  const files = [
    'src/cli',
    'src/process',
    'src/enforcement',
    'src/broker/program',
    'src/control/program',
    'src/caller',
    'src/tools/dev',
    'src/verifier/assembly',
  ].flatMap((folder) => filesOfCheckout(folder, '.ts'));
  const raised = files.flatMap((file) => [...readText(file).matchAll(RAISED)].map(([, code = '']) => code));
  const lines = filesOfCheckout('docs', '.md').flatMap((file) => readText(file).split('\n'));
  const described = new Set(lines.flatMap(codesIn));
  // A matched kind is no code: there the code is not a literal.
  const missing = new Set(raised.filter((code) => !described.has(code) && !ERROR_KINDS.includes(code)));
  expect(raised.length).toBeGreaterThan(100);
  expect([...missing]).toEqual([]);
});
