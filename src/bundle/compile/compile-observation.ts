/**
 * Compiles the end of an observation: of a route, or of the requests that no route matches.
 * Source: docs/design/bundle.md "Content".
 */
import { parseTime } from '../../protocol/rfc3339.ts';
import type { Faults } from '../format/bundle-error.ts';
import { MAX_OBSERVATION_SECONDS } from '../format/bundle-limits.ts';

interface ObservationMembers {
  readonly mode: 'observe' | undefined;
  readonly until: string | undefined;
}

interface MemberNames {
  readonly mode: string;
  /** JSON Pointer. */
  readonly untilPath: string;
}

/**
 * An end that has passed is not an error: the next revision may have to be signed in a hurry, and the route enforces.
 * @returns undefined when nothing is observed
 */
export function compileObservation(
  { mode, until }: ObservationMembers,
  names: MemberNames,
  issuedAtSeconds: number,
  faults: Faults,
): number | undefined {
  const { untilPath } = names;
  if (mode === undefined) {
    if (until !== undefined) faults.add('value_invalid', untilPath, `needs ${names.mode}: observe`);
    return undefined;
  }
  if (until === undefined) {
    faults.add('missing_member', untilPath, `missing, ${names.mode}: observe needs an end`);
    return undefined;
  }
  const untilSeconds = parseTime(until);
  if (untilSeconds === undefined) {
    faults.add('time_invalid', untilPath, 'no such time');
    return undefined;
  }
  if (!(untilSeconds - issuedAtSeconds <= MAX_OBSERVATION_SECONDS)) {
    faults.add('value_invalid', untilPath, 'more than 30 days after issued_at');
    return undefined;
  }
  return untilSeconds;
}
