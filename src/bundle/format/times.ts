/**
 * Times in documents: RFC 3339 in UTC, whole seconds, only in the form `2026-11-21T04:00:00Z`, so that each time has
 * one encoding.
 */

/** As a JSON Schema pattern; {@link parseTime} checks the calendar. */
export const TIME_PATTERN = '^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z$';

const TIME = new RegExp(TIME_PATTERN);

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
