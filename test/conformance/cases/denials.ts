/** Denials that need other callers, routes or states than the public cases, from the table of denials. */
import type { WireMessage } from '../../../src/tools/conformance/wire/conformance-case.ts';
import type { Provocation } from '../../support/cases/denial-case.ts';
import { CORE_DENIALS } from '../../support/cases/on-wire.ts';
import type { ConformanceCase, PointState } from '../../support/points/conformance-case.ts';
import type { VerifierState } from '../../support/site/verifier-states.ts';

function pointState(state: VerifierState): PointState {
  if (state === 'redis_twin' || state === 'bodies_unseen') throw new Error(`no point has the state ${state}`);
  return state;
}

const messages = (provocation: Provocation): WireMessage | readonly WireMessage[] => provocation;

export const DENIAL_CASES: readonly ConformanceCase[] = CORE_DENIALS.map(
  ({ detail, name, provoke, reason, state }) => ({
    name,
    state: pointState(state),
    expected: { kind: 'denied', reason, detail },
    make: (site) => messages(provoke(site)),
  }),
);
