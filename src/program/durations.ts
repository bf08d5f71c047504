/** Parses and formats durations: integers with the units `h`, `m`, `s`, `ms` in this order, such as `1m30s` or `500ms`. */

const PARTS = /^(?:([0-9]{1,9})h)?(?:([0-9]{1,9})m(?!s))?(?:([0-9]{1,9})s)?(?:([0-9]{1,9})ms)?$/;

/** Milliseconds; undefined when the text is not a duration. */
export function parseDurationMs(text: string): number | undefined {
  const match = text === '' ? null : PARTS.exec(text);
  if (match === null) return undefined;
  const [, hours = '0', minutes = '0', seconds = '0', milliseconds = '0'] = match;
  return ((Number(hours) * 60 + Number(minutes)) * 60 + Number(seconds)) * 1000 + Number(milliseconds);
}

/** Formats whole milliseconds so that {@link parseDurationMs} returns the same value. */
export function formatDurationMs(durationMs: number): string {
  const hours = Math.floor(durationMs / 3_600_000);
  const minutes = Math.floor(durationMs / 60_000) % 60;
  const seconds = Math.floor(durationMs / 1000) % 60;
  const rest = durationMs % 1000;
  const parts = [part(hours, 'h'), part(minutes, 'm'), part(seconds, 's'), part(rest, 'ms')];
  return parts.join('') || '0s';
}

function part(count: number, unit: string): string {
  return count === 0 ? '' : `${count}${unit}`;
}
