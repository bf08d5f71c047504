/** Settings of shutdown and log, which every server program has. Source: docs/operate/cli.md. */
import { LOG_LEVELS } from '../telemetry/log-level.ts';
import { choice, duration, withDefault } from './settings.ts';

export const DRAIN_AND_LOG_SETTINGS = {
  drainTimeoutMs: withDefault(
    duration('--drain-timeout <duration>', 'after SIGTERM, maximum time for requests in flight'),
    '10s',
  ),
  logLevel: withDefault(
    choice('--log-level <level>', 'level of the log on standard error', LOG_LEVELS),
    'info',
  ),
};

/** Settings with a drain delay, for programs that a load balancer checks. */
export const SHUTDOWN_SETTINGS = {
  drainDelayMs: withDefault(
    duration(
      '--drain-delay <duration>',
      'after SIGTERM, accept checks this long while health reports not serving, 0s to 1h',
      { minMs: 0, maxMs: 3_600_000 },
    ),
    '0s',
  ),
  ...DRAIN_AND_LOG_SETTINGS,
};
