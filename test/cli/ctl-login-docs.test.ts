/** Checks that docs/operate/ctl.md describes sign-in as it works. */
import { expect, it } from '@jest/globals';
import { LOGIN_SETTINGS } from '../../src/cli/commands/ctl/ctl-login.ts';
import { codesIn, readText, tableNamed } from '../support/docs/markdown.ts';

const reference = readText('docs/reference/command-line.md');
const flags = tableNamed(reference, 'login-flags');
const codes = tableNamed(reference, 'ctl-errors').flatMap(([, cell]) => codesIn(cell));

it.each([
  ['--session-file', '$XDG_CONFIG_HOME/proofgate/session-'],
  ['--no-browser', '--browser'],
  ['--redirect-port', '0'],
  ['--timeout', '5m'],
])('explains %s, with its default', (flag, byDefault) => {
  const row = flags.find(([cell]) => cell?.startsWith(`\`${flag}`));
  expect(row?.[1]).toContain(byDefault);
});

it('has the defaults that there are', () => {
  expect(LOGIN_SETTINGS.timeoutMs.absent).toEqual({ kind: 'value', value: 300_000 });
  expect(LOGIN_SETTINGS.redirectPort.absent).toEqual({ kind: 'value', value: 0 });
  expect(LOGIN_SETTINGS.browser.absent).toEqual({ kind: 'value', value: true });
});

it('explains no flag of login that there is not', () => {
  const named = flags.map(([cell = '']) => /^`--(?:no-)?([a-z-]+)/.exec(cell)?.[1]);
  const own = Object.values(LOGIN_SETTINGS).map(({ flag }) => flag);
  expect(named.length).toBe(4);
  for (const flag of named) expect(own).toContain(flag);
});

it.each([
  'not_signed_in',
  'session_file_required',
  'session_file_invalid',
  'listen_failed',
  'authentication_required',
  'sign_in_not_configured',
  'sign_in_code_invalid',
  'sign_in_denied',
  'sign_in_timed_out',
  'sign_in_stopped',
])('has the code %s', (code) => {
  expect(codes).toContain(code);
});
