/**
 * The operator's log: JSON lines on standard error, so that standard output is free for audit events. Callers never
 * pass secrets; the redaction below is the second line of defense.
 */

import { type DestinationStream, type Logger, pino } from 'pino';
import { REDACTED } from '../../protocol/redacted.ts';
import type { LogLevel } from './log-level.ts';

export type { Logger } from 'pino';

const SECRET_FIELDS = ['authorization', 'passport', 'signature', 'transcript', 'token', 'password', 'jti'];

export function createLogger(level: LogLevel, destination: DestinationStream = pino.destination(2)): Logger {
  return pino(
    {
      level,
      base: { service: 'proofgate' },
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      redact: { paths: SECRET_FIELDS.flatMap((name) => [name, `*.${name}`]), censor: REDACTED },
    },
    destination,
  );
}
