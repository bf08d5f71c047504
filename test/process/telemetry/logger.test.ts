/** Tests the operator's log: JSON lines, with secrets redacted even when a caller passes them in. */
import { describe, expect, it } from '@jest/globals';
import type { LogLevel } from '../../../src/process/telemetry/log-level.ts';
import { createLogger } from '../../../src/process/telemetry/logger.ts';

function logged(
  level: LogLevel,
  write: (logger: ReturnType<typeof createLogger>) => void,
): readonly object[] {
  const lines: string[] = [];
  write(createLogger(level, { write: (line) => void lines.push(line) }));
  return lines.map((line) => JSON.parse(line));
}

describe('the log', () => {
  it('is one object a line, with the time and the level in words', () => {
    expect(logged('info', (logger) => logger.warn({ revision: 7 }, 'loaded'))).toEqual([
      {
        level: 'warn',
        time: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
        service: 'proofgate',
        revision: 7,
        msg: 'loaded',
      },
    ]);
  });

  it('leaves out what is below its level', () => {
    expect(logged('error', (logger) => logger.warn('x'))).toEqual([]);
    expect(logged('silent', (logger) => logger.error('x'))).toEqual([]);
  });

  it.each(['authorization', 'passport', 'signature', 'transcript', 'token', 'password', 'jti'])(
    'shows no %s',
    (name) => {
      const [first, second] = logged('info', (logger) => {
        logger.info({ [name]: 'SECRET' });
        logger.info({ request: { [name]: 'SECRET' } });
      });
      expect(JSON.stringify([first, second])).not.toContain('SECRET');
      expect(first).toMatchObject({ [name]: '[redacted]' });
    },
  );
});
