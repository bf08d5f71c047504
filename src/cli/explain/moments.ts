/** Parses times: RFC 3339 in UTC, with or without fractional seconds. */
import { parseTime } from '../../bundle/format/times.ts';

const MOMENT = /^([0-9-]{10}T[0-9:]{8})(?:\.[0-9]{1,9})?Z$/;

/** Whole seconds since the epoch, rounded down as in the verifier; undefined for another format. */
export function parseMoment(text: string): number | undefined {
  const [, wholeSeconds] = MOMENT.exec(text) ?? [];
  return wholeSeconds === undefined ? undefined : parseTime(`${wholeSeconds}Z`);
}
