/** Denials that need other callers, routes or states than the public cases, from the list of the end-to-end tests. */

import { REASONS, type Reason } from '../../../src/protocol/reasons.ts';
import { FAULT_CASES } from '../../../src/tools/conformance/public-cases.ts';
import type { WireMessage } from '../../../src/tools/conformance/wire/conformance-case.ts';
import { BINDING_AND_REPLAY_DENIALS } from '../../support/cases/binding-and-replay-denials.ts';
import type { DenialCase, DenialCases, Provocation } from '../../support/cases/denial-case.ts';
import { POLICY_DENIALS } from '../../support/cases/policy-denials.ts';
import { PROOF_DENIALS } from '../../support/cases/proof-denials.ts';
import type { ConformanceCase, PointState } from '../../support/points/conformance-case.ts';
import type { VerifierState } from '../../support/site/verifier-states.ts';

const DENIALS: DenialCases<Reason> = { ...POLICY_DENIALS, ...PROOF_DENIALS, ...BINDING_AND_REPLAY_DENIALS };

/** The list has those too, and the suite takes them from there. */
const PUBLIC_NAMES: ReadonlySet<string> = new Set(FAULT_CASES.map(({ name }) => name));

/** What only Envoy does to a request; the core decides otherwise on the request as sent. */
const ONLY_ENVOY: ReadonlySet<string> = new Set([
  'a path that Envoy normalises',
  'a body that Envoy does not send',
]);

function conformanceCase(reason: Reason, denial: DenialCase<Reason>): ConformanceCase {
  const { detail, what, state = 'usual', provoke } = denial;
  const place = detail === undefined ? reason : `${reason}/${detail}`;
  return {
    name: `${place}: ${what}`,
    state: pointState(state),
    expected: { kind: 'denied', reason, detail },
    make: (site) => messages(provoke(site)),
  };
}

function pointState(state: VerifierState): PointState {
  if (state === 'redis_twin' || state === 'bodies_unseen') throw new Error(`no point has the state ${state}`);
  return state;
}

const messages = (provocation: Provocation): WireMessage | readonly WireMessage[] => provocation;

export const DENIAL_CASES: readonly ConformanceCase[] = REASONS.flatMap((reason) =>
  DENIALS[reason]
    .filter(({ what }) => !ONLY_ENVOY.has(what))
    .map((denial) => conformanceCase(reason, denial)),
).filter(({ name }) => !PUBLIC_NAMES.has(name));
