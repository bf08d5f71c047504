/** Moments as people and programs write them: RFC 3339 in UTC, with or without parts of a second. */
import { parseTime } from '../../bundle/format/times.ts';

const MOMENT = /^([0-9-]{10}T[0-9:]{8})(?:\.[0-9]{1,9})?Z$/;

/** Whole seconds since the epoch, rounded down as the verifier does; undefined for another spelling. */
export function parseMoment(text: string): number | undefined {
  const [, wholeSeconds] = MOMENT.exec(text) ?? [];
  return wholeSeconds === undefined ? undefined : parseTime(`${wholeSeconds}Z`);
}
