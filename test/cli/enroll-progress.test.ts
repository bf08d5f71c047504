/** Tests the output of a long wait: one line that is overwritten in a terminal, log lines elsewhere. */
import { Writable } from 'node:stream';
import { describe, expect, it } from '@jest/globals';
import { EnrollProgress } from '../../src/cli/enroll/enroll-progress.ts';
import { CliError } from '../../src/process/program/errors.ts';
import { Output, type OutputFormat } from '../../src/process/program/output.ts';

class Screen extends Writable {
  readonly isTTY: boolean;
  text = '';

  constructor(isTTY: boolean) {
    super();
    this.isTTY = isTTY;
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: () => void): void {
    this.text += chunk.toString();
    done();
  }
}

function watch(isTTY: boolean, format: OutputFormat = 'text') {
  const stderr = new Screen(isTTY);
  const output = new Output(new Screen(isTTY), stderr, { NO_COLOR: '1' });
  output.useFormat(format);
  const progress = new EnrollProgress(output);
  const waiting = (seconds: number, fault?: string) =>
    progress.report({ kind: 'waiting', enrollmentId: 'enr_1', elapsedMs: seconds * 1000 + 7, fault });
  return { stderr, output, progress, waiting };
}

describe('in a terminal', () => {
  it('is one line, gone when something else is said', () => {
    const { stderr, output, waiting } = watch(true);
    waiting(2);
    waiting(64, 'no answer in time');
    output.error(new CliError('timed_out', 'enrollment_pending', 'later'));
    const erase = '\r\u001b[2K';
    expect(stderr.text).toBe(
      `${erase}waiting for enrollment enr_1, 2s${erase}waiting for enrollment enr_1, 1m4s (no answer in time)${erase}error: enrollment_pending: later\n`,
    );
  });

  it.each(['note', 'result'] as const)('gives way to a %s', (what) => {
    const { stderr, output, waiting } = watch(true);
    waiting(2);
    if (what === 'note') output.note('n', 'text');
    else output.result(['done'], {});
    expect(stderr.text.endsWith(what === 'note' ? '\r\u001b[2Ktext\n' : '\r\u001b[2K')).toBe(true);
  });
});

describe.each([
  ['elsewhere', false, 'text'],
  ['in JSON', true, 'json'],
] as const)('%s', (_where, isTTY, format) => {
  it('is a line at each change, and every 30 s', () => {
    const { stderr, waiting } = watch(isTTY, format);
    for (let second = 0; second <= 70; second += 2) waiting(second, second < 40 ? undefined : 'rate_limited');
    const lines = stderr.text.trimEnd().split('\n');
    expect(lines.map((line) => /, (?:(\d+)m)?(?:(\d+)s)?/.exec(line)?.slice(1).join(':'))).toEqual([
      ':0',
      ':30',
      ':40',
      '1:10',
    ]);
    expect(stderr.text).not.toContain('\u001b');
    if (format === 'json') expect(JSON.parse(lines[0] ?? '')).toMatchObject({ note: 'enrollment_waiting' });
  });
});
