/**
 * Times as RFC 3339 in UTC. A *time* is whole seconds in the one form `2026-11-21T04:00:00Z`, so that each time in a document has
 * one encoding. A *moment* may have a fraction of a second.
 */

/** JSON Schema pattern of a time; {@link parseTime} checks the calendar. */
export const TIME_PATTERN = '^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z$';

const TIME = new RegExp(TIME_PATTERN);
const MOMENT = /^([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2})(?:\.[0-9]{1,9})?Z$/;

/** Seconds since the epoch; undefined for another form, a day or hour that does not exist, or a time before 1970. */
export function parseTime(text: string): number | undefined {
  if (!TIME.test(text)) return undefined;
  const milliseconds = Date.parse(text);
  if (Number.isNaN(milliseconds) || milliseconds < 0) return undefined;
  // Date turns 30 February into 2 March and 24:00 into the next day.
  return formatTime(milliseconds / 1000) === text ? milliseconds / 1000 : undefined;
}

/** @param seconds whole seconds since the epoch, before the year 10000 */
export function formatTime(seconds: number): string {
  return `${new Date(seconds * 1000).toISOString().slice(0, 19)}Z`;
}

export function isMoment(value: unknown): value is string {
  return typeof value === 'string' && MOMENT.test(value) && !Number.isNaN(Date.parse(value));
}

/** Whole seconds since the epoch, rounded down as in the verifier; undefined as {@link parseTime}. */
export function parseMoment(text: string): number | undefined {
  const [, wholeSeconds] = MOMENT.exec(text) ?? [];
  return wholeSeconds === undefined ? undefined : parseTime(`${wholeSeconds}Z`);
}

/** Whole seconds are written without a fraction. */
export function formatMoment(timeMs: number): string {
  return new Date(timeMs).toISOString().replace('.000Z', 'Z');
}
