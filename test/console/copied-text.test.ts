/** What operators paste elsewhere: commands into real shells, tables into spreadsheets. */
import { execFile } from 'node:child_process';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { csvOf } from '../../src/console/api/csv.ts';
import { ctlCommand, nameWord, shellWord } from '../../src/console/api/ctl-command.ts';
import { visible, visibleJson } from '../../src/console/api/visible.ts';

const CONTROL = 'https://control.shop.example';
const run = promisify(execFile);

/** Each would make a file named `ran` if a shell took a part of it for a command. */
const HOSTILE = [
  "'$(touch ran)'",
  '"; touch ran; "',
  '`touch ran`',
  "'; touch ran; '",
  "\\'; touch ran; \\'",
  '\\',
  "\\\\'",
  // biome-ignore lint/suspicious/noTemplateCurlyInString: a shell's
  '$HOME ${IFS} ~ * ? [a] {a,b} !! # & | > ran < /dev/null',
  '=ls',
  '',
  "'",
  ' a  b ',
];

let directory: string;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'pg-copied-'));
});
afterAll(() => rm(directory, { recursive: true }));

describe.each(['bash', 'sh'])('pasted into %s', (shell) => {
  test.each(HOSTILE)('is one argument: %j', async (text) => {
    // The shell reads the line from its input, as from a terminal.
    const line = ctlCommand(CONTROL, ['block', '--subject', text]) ?? '';
    const running = run(shell, ['-i'], { cwd: directory, env: { PATH: process.env.PATH } });
    running.child.stdin?.end(`PS1=; proofgate() { printf '%s\\0' "$@"; }\n${line}\n`);
    const { stdout } = await running;
    expect(stdout.split('\0').slice(0, -1)).toEqual([
      ...['ctl', 'block', '--subject', text],
      ...['--control-url', CONTROL],
    ]);
    expect(await readdir(directory)).toEqual([]);
  });
});

/** fish reads a backslash in single quotes: none stands there. */
test.each(HOSTILE)('has no backslash between single quotes: %j', (text) => {
  const unquoted = shellWord(text).replace(/\\['\\]/g, '');
  expect(unquoted).toMatch(/^(?:'[^'\\]*'|[\w./:@=,+-]+)*$/);
});

test.each([
  'a\nb',
  'a\rb',
  'a\u001b[2Jb',
  'a\u0085b',
  'a\u202eb',
  'a\u2066b',
  'a\u200bb',
  'a\u2028b',
  'a\u00a0b',
  'a\u115fb',
  'a\u{e0041}b',
  'a\ud800b',
])('there is no command with %j', (text) => {
  expect(ctlCommand(CONTROL, ['block', '--subject', text])).toBeUndefined();
  expect(shellWord(text)).toBe(`'${visible(text)}'`);
  expect(visible(text)).toMatch(/^a⟨U\+[0-9A-F]{4,5}⟩(?:\[2J)?b$/);
  expect(visibleJson({ text })).toMatch(/^\{"text":"a\\[ -~]+b"\}$/);
  expect(JSON.parse(visibleJson({ text }, 2))).toEqual({ text });
});

test('a name that ctl would take for a flag has no command', () => {
  expect(ctlCommand(CONTROL, ['delete', 'client', nameWord('--site=other'), '--yes'])).toBeUndefined();
  expect(ctlCommand(CONTROL, ['delete', 'client', nameWord('a-b'), '--yes'])).toContain(' client a-b --yes');
});

describe('a spreadsheet takes no cell for a formula', () => {
  const table = (text: string) => csvOf<string>([['name', (item) => item]], [text]);
  test.each([
    ...[
      '=1+1',
      '+1',
      '-1',
      '@SUM(A1)',
      '\t=1',
      '\r=1',
      '\n=1',
      ' =1',
      '|calc',
      '%0A=1',
      '\uff1d1',
      '\u00a0=1',
    ],
  ])('%j', (text) => {
    expect(table(text)).toMatch(/^"name"\r\n"'/);
  });

  test.each(["x;=cmd|'/C calc'!A0;", 'x\t=1', 'x\n=1', 'x; =1'])(
    'nor a part of one, in locales with other separators: %j',
    (text) => {
      expect(table(text)).not.toMatch(/[;\t\n]\s*=/);
    },
  );

  test('what is none stays as it is, in quotes', () => {
    expect(table('a "b", c=1')).toBe('"name"\r\n"a ""b"", c=1"\r\n');
  });
});
