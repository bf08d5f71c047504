/** Checks that docs/operate/cli.md describes enrollment as it works. */
import { describe, expect, it } from '@jest/globals';
import { ENROLL_SETTINGS, KUBERNETES_TOKEN_FILE } from '../../src/caller/enroll/enroll-settings.ts';
import { STATUS_SETTINGS } from '../../src/cli/commands/status-command.ts';
import type { Setting } from '../../src/process/settings/settings.ts';
import { readText, sectionOf } from '../support/docs/markdown.ts';

const [, rest = ''] = readText('docs/operate/cli.md').split('\n## Enrolling\n');
const [enrollingPage = ''] = rest.split('\n## ');
const enrolling = sectionOf(readText('docs/reference/command-line.md'), '`enroll`') + enrollingPage;
const [, statusSection = ''] = readText('docs/operate/cli.md').split('\n## `status`\n');
const settings: readonly Setting<unknown>[] = Object.values(ENROLL_SETTINGS);

describe('docs/operate/cli.md on enroll', () => {
  it.each(settings.map((setting) => [setting.flag, setting] as const))(
    'has --%s, with its default',
    (flag, setting) => {
      const row = enrolling.split('\n').find((line) => new RegExp(`^\\| \`--${flag}[ \`]`).test(line)) ?? '';
      const byDefault = /\(default: ([\w./:-]+)\)/.exec(setting.description)?.[1] ?? '';
      expect(row.split('|')[2]).toContain(byDefault);
      for (const alias of setting.aliases) expect(row).toContain(`--${alias}`);
    },
  );

  it('has no flag that enroll has not', () => {
    const described = [...enrolling.matchAll(/^\| `--([a-z-]+)[ `]/gm)].map(([, flag]) => flag);
    expect(described).toEqual(settings.map(({ flag }) => flag));
  });

  it.each([
    'control_url_and_policy_required',
    'set_exactly_one_private_key_file_or_out',
    'invalid_enroll_timing',
    'unsupported_enrollment_provider',
  ])('has the error %s of the specification', (code) => {
    expect(enrolling).toContain(`\`${code}\``);
  });

  it('has the defaults of the specification', () => {
    const defaultOf = (flag: string) => settings.find((setting) => setting.flag === flag)?.absent;
    expect(defaultOf('provider')).toEqual({ kind: 'value', value: 'oidc_jwks' });
    expect(defaultOf('wait-for-activation')).toEqual({ kind: 'value', value: true });
    expect(defaultOf('submit-retries')).toEqual({ kind: 'value', value: 2 });
    expect(defaultOf('timeout')).toEqual({ kind: 'value', value: 300_000 });
    expect(defaultOf('refresh-skew')).toEqual({ kind: 'value', value: 300_000 });
    expect(enrolling).toContain(KUBERNETES_TOKEN_FILE);
  });
});

describe('docs/operate/cli.md on status', () => {
  it.each(Object.values(STATUS_SETTINGS).map(({ flag }) => flag))('has --%s', (flag) => {
    expect(statusSection).toContain(`--${flag}`);
  });
});
