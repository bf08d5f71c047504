/** Rules for setting an observation, of a route or of requests that no route matches. Source: docs/operate/observe.md "With Control". */
import { MAX_OBSERVATION_SECONDS } from '../../bundle/format/bundle-limits.ts';
import type { ProblemFault } from '../../process/http-service/http-problem.ts';
import { parseTime } from '../../protocol/rfc3339.ts';
import type { SiteChange } from '../contract/hierarchy-contract.ts';
import type { RouteDefinition } from '../contract/routes-contract.ts';
import { ApiProblem } from '../domain/api-problem.ts';

interface Observation {
  readonly isObserved: boolean;
  readonly until: string | undefined;
  /** JSON Pointer of the end. */
  readonly pointer: string;
}

export function observationOfRoute({ enforcement, observe_until: until }: RouteDefinition): Observation {
  return { isObserved: enforcement === 'observe', until, pointer: '/body/definition/observe_until' };
}

export function observationOfSite({ unmatched, unmatched_until: until }: SiteChange): Observation {
  return { isObserved: unmatched === 'observe', until, pointer: '/body/unmatched_until' };
}

/** When the observation ends, in seconds since the epoch; null when nothing is observed. The end must be valid. */
export function endOf({ isObserved, until = '' }: Observation): number | null {
  return isObserved ? (parseTime(until) ?? null) : null;
}

/** @throws ApiProblem `definition_invalid` unless it ends in the future, and soon enough */
export function rejectFaultyEnd(observation: Observation, nowSeconds: number): void {
  const reason = whyFaulty(observation, nowSeconds);
  if (reason === undefined) return;
  const faults: readonly ProblemFault[] = [{ pointer: observation.pointer, reason }];
  throw new ApiProblem('definition_invalid', undefined, { faults });
}

function whyFaulty({ isObserved, until }: Observation, nowSeconds: number): string | undefined {
  if (!isObserved) return until === undefined ? undefined : 'needs observe';
  if (until === undefined) return 'missing: an observation needs an end';
  const untilSeconds = parseTime(until);
  if (untilSeconds === undefined) return 'no such time';
  if (!(untilSeconds > nowSeconds)) return 'not in the future';
  return untilSeconds - nowSeconds <= MAX_OBSERVATION_SECONDS ? undefined : 'more than 30 days ahead';
}
