/**
 * The verifier's own steps, one after the other, without an end at the first fault: what a later step would say is worth
 * knowing to whoever mends the first one. No rule lives here; each verdict is the answer of the function that decides.
 */
import type { Snapshot, SourceRule } from '../../bundle/snapshot.ts';
import { type Credentials, readCredentials } from '../../protocol/credentials.ts';
import type { PublicKey } from '../../protocol/public-key.ts';
import { type Denial, deny, isDenial } from '../../protocol/reasons.ts';
import { type Caller, identifyCaller } from '../caller.ts';
import type { DecisionInputs } from '../decide.ts';
import type { RequestFacts } from '../request-facts.ts';
import { checkAttributes } from '../steps/attributes.ts';
import { checkBinding } from '../steps/binding.ts';
import { checkFreshness } from '../steps/freshness.ts';
import { verifyCredentials } from '../steps/proof.ts';
import { type MatchedRoute, matchRoute } from '../steps/route.ts';
import { matchSource } from '../steps/source.ts';

/** What a function said; `skipped`: it could not be asked, since something before it gave nothing to ask about. */
export type Finding<T> =
  | { readonly kind: 'passed'; readonly value: T }
  | { readonly kind: 'failed'; readonly denial: Denial }
  | { readonly kind: 'skipped' };

/** In the order of the pipeline. */
export interface Walk {
  readonly bundle: Finding<Snapshot>;
  readonly route: Finding<MatchedRoute>;
  readonly credentials: Finding<Credentials>;
  readonly source: Finding<SourceRule>;
  readonly freshness: Finding<undefined>;
  readonly attributes: Finding<undefined>;
  readonly proof: Finding<PublicKey>;
  readonly binding: Finding<undefined>;
  /** Who the request says it comes from; undefined when its credentials cannot be read. */
  readonly caller: Caller | undefined;
}

export type Stage = Exclude<keyof Walk, 'caller'>;

export const STAGES: readonly Stage[] = [
  'bundle',
  'route',
  'credentials',
  'source',
  'freshness',
  'attributes',
  'proof',
  'binding',
];

const SKIPPED = { kind: 'skipped' } as const;

export function walkSteps(facts: RequestFacts, snapshot: Snapshot | undefined, inputs: DecisionInputs): Walk {
  if (snapshot === undefined) return withoutBundle();
  const route = findingOf(matchRoute(facts, snapshot));
  const credentials = findingOf(readCredentials(facts.headers, () => undefined));
  const caller =
    credentials.kind === 'passed' ? identifyCaller(snapshot.keys, credentials.value.passport) : undefined;
  return {
    bundle: { kind: 'passed', value: snapshot },
    route,
    credentials,
    caller,
    ...walkOnRoute({ facts, snapshot, inputs, route, credentials, caller }),
  };
}

interface RouteInputs extends Pick<Walk, 'route' | 'credentials' | 'caller'> {
  readonly facts: RequestFacts;
  readonly snapshot: Snapshot;
  readonly inputs: DecisionInputs;
}

function walkOnRoute({ facts, snapshot, inputs, ...found }: RouteInputs) {
  const { caller } = found;
  if (found.route.kind !== 'passed') return NO_ROUTE;
  const { route, authority } = found.route.value;
  const { nowSeconds, passports, realtimeStalenessSeconds } = inputs;
  const freshness = faultOf(checkFreshness(route.freshness, snapshot, nowSeconds, realtimeStalenessSeconds));
  if (found.credentials.kind !== 'passed' || caller === undefined) return { ...NO_ROUTE, freshness };
  const credentials = found.credentials.value;
  const { skewSeconds } = snapshot;
  return {
    source: findingOf(matchSource(route, caller)),
    freshness,
    attributes: faultOf(checkAttributes(route, caller)),
    proof: findingOf(verifyCredentials({ credentials, caller, route, nowSeconds, skewSeconds, passports })),
    binding: faultOf(checkBinding({ facts, snapshot, route, authority, credentials })),
  };
}

const NO_ROUTE = {
  source: SKIPPED,
  freshness: SKIPPED,
  attributes: SKIPPED,
  proof: SKIPPED,
  binding: SKIPPED,
} as const;

function withoutBundle(): Walk {
  const bundle = { kind: 'failed', denial: deny('bundle_policy_missing') } as const;
  return { ...NO_ROUTE, bundle, route: SKIPPED, credentials: SKIPPED, caller: undefined };
}

function findingOf<T extends object>(answer: T | Denial): Finding<T> {
  return isDenial(answer) ? { kind: 'failed', denial: answer } : { kind: 'passed', value: answer };
}

function faultOf(denial: Denial | undefined): Finding<undefined> {
  return denial === undefined ? { kind: 'passed', value: undefined } : { kind: 'failed', denial };
}

/** Where the pipeline would have ended. */
export function firstFault(walk: Walk): { readonly stage: Stage; readonly denial: Denial } | undefined {
  for (const stage of STAGES) {
    const finding = walk[stage];
    if (finding.kind === 'failed') return { stage, denial: finding.denial };
  }
  return undefined;
}
