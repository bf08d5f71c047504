/** Parses and formats times as RFC 3339 in UTC. */

const MOMENT = /^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,9})?Z$/;

export function isMoment(value: unknown): value is string {
  return typeof value === 'string' && MOMENT.test(value) && !Number.isNaN(Date.parse(value));
}

/** Whole seconds are written without a fraction. */
export function formatMoment(timeMs: number): string {
  return new Date(timeMs).toISOString().replace('.000Z', 'Z');
}
