import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { command, ProofgateCommand } from '../../../src/cli/define/define-command.ts';
import { CliError, oneLine, toCliError } from '../../../src/process/program/errors.ts';
import { type Environment, Output } from '../../../src/process/program/output.ts';
import {
  duration,
  formatDurationMs,
  integer,
  list,
  optional,
  parseDurationMs,
  required,
  requiredList,
  settingValues,
  text,
  toggle,
  withDefault,
} from '../../../src/process/settings/settings.ts';

const SETTINGS = {
  names: list(text('--name <name>', 'names')),
  lines: list(text('--line <line>', 'lines'), '\n'),
  waits: toggle('--wait-for-it', 'wait', true),
  isLoud: toggle('--loud', 'be loud', false),
  count: withDefault(integer('--count <n>', 'how many', { min: 0, max: 9 }), '3'),
  everyMs: optional(duration('--every <duration>', 'how often', { minMs: 0 })),
};

let folder = '';
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'proofgate-settings-'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

/** The parsed values of a command with these settings. */
async function settingsOf(args: readonly string[], env: Environment = {}): Promise<unknown> {
  const output = new Output(new PassThrough(), new PassThrough(), env);
  const program = new ProofgateCommand('program').enablePositionalOptions().exitOverride();
  let seen: unknown;
  command({
    name: 'try',
    summary: 'Try',
    settings: SETTINGS,
    examples: [],
    run: async ({ settings }) => {
      seen = settings;
    },
  }).addTo(program, { env, output, version: '0.0.0' });
  await program.parseAsync(['try', ...args], { from: 'user' });
  return seen;
}

async function fromFile(yaml: string, ...args: readonly string[]): Promise<unknown> {
  const file = join(folder, 'config.yaml');
  await writeFile(file, yaml);
  return settingsOf(['--config', file, ...args]);
}

it('names every required setting that is missing, at once', () => {
  const declared = {
    first: required(text('--first <a>', 'first')),
    given: required(text('--given <b>', 'given')),
    last: requiredList(text('--last <c>', 'last')),
  };
  const missing = () => settingValues(declared, new Map([['given', ['b']]]));
  expect(missing).toThrow(expect.objectContaining({ code: 'flag_required' }));
  expect(missing).toThrow(/--first, --last/);
});

describe('settings', () => {
  it('have defaults', async () => {
    expect(await settingsOf([])).toEqual({
      names: [],
      lines: [],
      waits: true,
      isLoud: false,
      count: 3,
      everyMs: undefined,
    });
  });

  it('come from flags', async () => {
    const args = [
      '--name',
      'a,b',
      '--name=c',
      '--no-wait-for-it',
      '--loud',
      '--count',
      '0',
      '--every=1m30s',
      '--line',
      '-',
    ];
    expect(await settingsOf(args)).toEqual({
      names: ['a,b', 'c'],
      lines: ['-'],
      waits: false,
      isLoud: true,
      count: 0,
      everyMs: 90_000,
    });
  });

  it.each([
    ['--wait-for-it=false', false],
    ['--wait-for-it=true', true],
    ['--wait-for-it false', false],
    ['--wait-for-it true', true],
    ['--wait-for-it', true],
  ])('take %s', async (args, waits) => {
    expect(await settingsOf(args.split(' '))).toMatchObject({ waits });
  });

  it('come from variables', async () => {
    const env = {
      PROOFGATE_NAME: 'a, b,',
      PROOFGATE_LINE: 'x: 1, 2\ny: 3\n',
      PROOFGATE_WAIT_FOR_IT: 'false',
      PROOFGATE_LOUD: '1',
      PROOFGATE_COUNT: '4',
      PROOFGATE_EVERY: '',
      // Kubernetes sets this variable for a Service of this name.
      PROOFGATE_PORT: 'tcp://10.0.0.1:80',
    };
    expect(await settingsOf([], env)).toEqual({
      names: ['a', 'b'],
      lines: ['x: 1, 2', 'y: 3'],
      waits: false,
      isLoud: true,
      count: 4,
      everyMs: undefined,
    });
    expect(await settingsOf(['--name', 'flag'], env)).toMatchObject({ names: ['flag'], count: 4 });
  });

  it('come from a file', async () => {
    const yaml = 'name: [a, "b,c"]\nline: one\nwait_for_it: false\nloud: true\ncount: 5\nevery: 2s\n';
    expect(await fromFile(yaml)).toEqual({
      names: ['a', 'b,c'],
      lines: ['one'],
      waits: false,
      isLoud: true,
      count: 5,
      everyMs: 2000,
    });
    expect(await fromFile(yaml, '--count', '6', '--wait-for-it')).toMatchObject({ count: 6, waits: true });
  });

  it.each([
    ['wait-for-it: true', 'config_unknown_member'],
    ['config: other.yaml', 'config_unknown_member'],
    ['wait_for_it: "false"', 'config_invalid'],
    ['count: "5"', 'config_invalid'],
    ['count: 5.5', 'bad_integer'],
    ['count: 10', 'out_of_range'],
    ['every: 2', 'config_invalid'],
    ['name: [[a]]', 'config_invalid'],
    ['name: [1]', 'config_invalid'],
    ['count: [1]', 'config_invalid'],
    ['count:', 'config_invalid'],
  ])('refuse %p in a file: %s', async (yaml, code) => {
    await expect(fromFile(yaml)).rejects.toMatchObject({ code, exitCode: 2 });
  });

  it.each([
    [{ PROOFGATE_LOUD: 'yes' }, 'bad_boolean'],
    [{ PROOFGATE_COUNT: '1e1' }, 'bad_integer'],
    [{ PROOFGATE_COUNT: '-1' }, 'out_of_range'],
    [{ PROOFGATE_EVERY: '5' }, 'bad_duration'],
    [{ PROOFGATE_CONFIG: '/nowhere/config.yaml' }, 'file_not_found'],
  ])('refuse the variable %p: %s', async (env: Environment, code) => {
    await expect(settingsOf([], env)).rejects.toMatchObject({ code, exitCode: 2 });
  });

  it.each([
    [['--loud', '--loud'], 'flag_repeated'],
    [['--loud', '--no-loud'], 'flag_repeated'],
    [['--count', '1', '--count', '2'], 'flag_repeated'],
    [['--loud=1'], 'bad_boolean'],
    [['--name', ''], 'bad_value'],
    [['--count', ''], 'bad_integer'],
    [['--count', '9'.repeat(17)], 'out_of_range'],
  ])('refuse %p: %s', async (args, code) => {
    await expect(settingsOf(args)).rejects.toMatchObject({ code, exitCode: 2 });
  });
});

describe('durations', () => {
  it.each([
    ['1ms', 1],
    ['5s', 5000],
    ['5m', 300_000],
    ['1h', 3_600_000],
    ['1m30s', 90_000],
    ['1h2m3s4ms', 3_723_004],
    ['0s', 0],
    ['90s', 90_000],
    ['1m5ms', 60_005],
  ])('%s is %d ms', (written, durationMs) => {
    expect(parseDurationMs(written)).toBe(durationMs);
    expect(parseDurationMs(formatDurationMs(durationMs))).toBe(durationMs);
  });

  it.each([
    '',
    '5',
    's',
    '-5s',
    '1.5s',
    '1s1m',
    '1s1s',
    '5 s',
    '5S',
    '1d',
    '5ms1s',
    '1e3s',
    '9999999999s',
    '٣s',
  ])('refuses %p', (written) => {
    expect(parseDurationMs(written)).toBeUndefined();
  });
});

describe('errors', () => {
  it('are one line, without control characters', () => {
    expect(oneLine('a\n  b\r\n\tc\u001b[31m\u202ed\u0000')).toBe('a b c[31md');
    expect(oneLine('x'.repeat(5000))).toHaveLength(2001);
  });

  it('are internal when unexpected', () => {
    expect(toCliError(new TypeError('x is not\na function'))).toMatchObject({
      code: 'internal',
      message: 'x is not a function',
      exitCode: 1,
    });
    expect(toCliError('thrown text')).toMatchObject({ code: 'internal', exitCode: 1 });
    expect(toCliError(new CliError('refused', 'some_code', 'text'))).toMatchObject({
      code: 'some_code',
      exitCode: 3,
    });
  });
});
