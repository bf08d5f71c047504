/** What docs/ctl.md says of signing in is what there is. */
import { expect, it } from '@jest/globals';
import { LOGIN_SETTINGS } from '../../src/cli/commands/ctl/login.ts';
import { readText } from '../docs/markdown.ts';

const document = readText('docs/ctl.md');
const [, rest = ''] = document.split('\n## Signing in\n');
const [signingIn = ''] = rest.split('\n## ');
const [, endings = ''] = document.split('\n## What ctl ends with\n');

it.each([
  ['--session-file', '$XDG_CONFIG_HOME/proofgate/session-'],
  ['--no-browser', '--browser'],
  ['--redirect-port', '0'],
  ['--timeout', '5m'],
])('explains %s, with its default', (flag, byDefault) => {
  const row = signingIn.split('\n').find((line) => line.startsWith(`| \`${flag}`)) ?? '';
  expect(row.split('|')[2]).toContain(byDefault);
});

it('has the defaults that there are', () => {
  expect(LOGIN_SETTINGS.timeoutMs.absent).toEqual({ kind: 'value', value: 300_000 });
  expect(LOGIN_SETTINGS.redirectPort.absent).toEqual({ kind: 'value', value: 0 });
  expect(LOGIN_SETTINGS.browser.absent).toEqual({ kind: 'value', value: true });
});

it('explains no flag of login that there is not', () => {
  const named = [...signingIn.matchAll(/^\| `--(?:no-)?([a-z-]+)/gm)].map(([, flag]) => flag);
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
  expect(endings).toContain(`\`${code}\``);
});
