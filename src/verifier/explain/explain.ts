/**
 * Why a request was allowed or denied: the decision as `decide.ts` makes it, and what each of its steps says. Nothing is
 * consumed: of replay this knows nothing.
 * Source: specification "Request evaluation order (adapter)".
 */
import type { RequiredAttribute, Route, Snapshot, SourceRule } from '../../bundle/snapshot.ts';
import type { Credentials } from '../../protocol/credentials.ts';
import { type Denial, isDenial } from '../../protocol/reasons.ts';
import type { Caller } from '../caller.ts';
import { type DecisionInputs, decide, type Verified } from '../decide.ts';
import { createPassportCache } from '../passport-cache.ts';
import type { RequestFacts } from '../request-facts.ts';
import { checkAttributes } from '../steps/attributes.ts';
import { rebuildTranscript } from '../steps/binding.ts';
import { mostAgeSeconds } from '../steps/freshness.ts';
import { matchSource } from '../steps/source.ts';
import { explainProofChecks, type ProofCheckVerdict } from './proof-checks.ts';
import { type ComparedLine, compareTranscripts } from './transcript-lines.ts';
import { explainSteps, type StepVerdict } from './verdicts.ts';
import { firstFault, type Walk, walkSteps } from './walk.ts';

export type ExplainInputs = Omit<DecisionInputs, 'passports'>;

export interface Explanation {
  readonly nowSeconds: number;
  readonly snapshot: Snapshot | undefined;
  /** What the verifier decides; `verified`: allowed, if the `jti` is unused. */
  readonly decision: Verified | Denial;
  /** Of steps 1 to 7. */
  readonly steps: readonly StepVerdict[];
  readonly route: Route | undefined;
  readonly credentials: Credentials | undefined;
  readonly caller: Caller | undefined;
  /** Each source rule of the route, asked alone. */
  readonly rules: readonly ExplainedRule[];
  readonly freshness: ExplainedFreshness | undefined;
  readonly attributes: readonly ExplainedAttribute[];
  /** The parts of step 5 before the binding. */
  readonly proofChecks: readonly ProofCheckVerdict[];
  /** Empty without a route, or without credentials that can be read. */
  readonly transcript: readonly ComparedLine[];
  /** For a denial that has to do with clocks: what would be decided at the moment that the proof says it was made. */
  readonly whenMade: { readonly nowSeconds: number; readonly decision: Verified | Denial } | undefined;
}

export interface ExplainedRule {
  readonly rule: SourceRule;
  readonly denial: Denial | undefined;
}

export interface ExplainedFreshness {
  /** Below zero: known to be the latest at a moment after the one that is explained. */
  readonly ageSeconds: number;
  /** Undefined for an unknown freshness class. */
  readonly limitSeconds: number | undefined;
}

export interface ExplainedAttribute extends RequiredAttribute {
  readonly kind: 'provenance' | 'context';
  readonly actual: string | undefined;
  readonly denial: Denial | undefined;
}

/** @throws Error when the steps and the decision disagree: then nothing that is said here could be relied on */
export function explainRequest(
  facts: RequestFacts,
  snapshot: Snapshot | undefined,
  inputs: ExplainInputs,
): Explanation {
  const walk = walkSteps(facts, snapshot, withCache(inputs));
  const decision = decide(facts, snapshot, withCache(inputs), {});
  const fault = firstFault(walk);
  assertAgreement(decision, fault?.denial);
  const route = walk.route.kind === 'passed' ? walk.route.value.route : undefined;
  const credentials = walk.credentials.kind === 'passed' ? walk.credentials.value : undefined;
  const { caller } = walk;
  return {
    nowSeconds: inputs.nowSeconds,
    snapshot,
    decision,
    steps: explainSteps(walk, fault?.stage),
    route,
    credentials,
    caller,
    rules: route === undefined || caller === undefined ? [] : explainRules(route, caller),
    freshness: route && snapshot && explainFreshness(route, snapshot, inputs),
    attributes: route === undefined || caller === undefined ? [] : explainAttributes(route, caller),
    proofChecks: explainProofChecks(walk.proof, fault?.stage),
    transcript: explainTranscript(facts, snapshot, walk),
    whenMade: decideWhenMade(facts, snapshot, inputs, { decision, credentials }),
  };
}

/** Nothing that one explanation verified is taken on trust by another. */
function withCache(inputs: ExplainInputs): DecisionInputs {
  return { ...inputs, passports: createPassportCache() };
}

function assertAgreement(decision: Verified | Denial, fault: Denial | undefined): void {
  const decided = isDenial(decision) ? decision : undefined;
  const agree = decided?.reason === fault?.reason && decided?.detail === fault?.detail;
  if (!agree) throw new StepsDisagree('the steps and the decision disagree');
}

class StepsDisagree extends Error {
  override readonly name = 'StepsDisagree';
}

function explainRules(route: Route, caller: Caller): readonly ExplainedRule[] {
  return route.sources.map((rule) => {
    const answer = matchSource({ ...route, sources: [rule] }, caller);
    return { rule, denial: isDenial(answer) ? answer : undefined };
  });
}

function explainFreshness(
  { freshness }: Route,
  { freshAsOfSeconds }: Snapshot,
  { nowSeconds, realtimeStalenessSeconds }: ExplainInputs,
): ExplainedFreshness {
  const limitSeconds =
    freshness.kind === 'unknown' ? undefined : mostAgeSeconds(freshness, realtimeStalenessSeconds);
  return { ageSeconds: nowSeconds - freshAsOfSeconds, limitSeconds };
}

function explainAttributes(route: Route, caller: Caller): readonly ExplainedAttribute[] {
  const none = { requiredProvenance: [], requiredContext: [] };
  const provenance = route.requiredProvenance.map((required): ExplainedAttribute => {
    const denial = checkAttributes({ ...route, ...none, requiredProvenance: [required] }, caller);
    return { ...required, kind: 'provenance', actual: caller.provenance.get(required.name), denial };
  });
  const context = route.requiredContext.map((required): ExplainedAttribute => {
    const denial = checkAttributes({ ...route, ...none, requiredContext: [required] }, caller);
    return { ...required, kind: 'context', actual: caller.context.get(required.name), denial };
  });
  return [...provenance, ...context];
}

function explainTranscript(
  facts: RequestFacts,
  snapshot: Snapshot | undefined,
  { credentials, route: matched }: Walk,
): readonly ComparedLine[] {
  if (snapshot === undefined || matched.kind !== 'passed' || credentials.kind !== 'passed') return [];
  const { route, authority } = matched.value;
  const check = { facts, snapshot, route, authority, credentials: credentials.value };
  return compareTranscripts(credentials.value.proof.transcript, rebuildTranscript(check), facts.headers);
}

/** Denials that another clock, or another moment, could have spared. */
const ABOUT_CLOCKS: ReadonlySet<string | undefined> = new Set([
  'clock',
  'expired',
  'stale',
  'key_not_yet_valid',
  'key_expired',
  'passport_not_yet_valid',
  'passport_expired',
  'proof_not_yet_valid',
  'proof_expired',
]);

function decideWhenMade(
  facts: RequestFacts,
  snapshot: Snapshot | undefined,
  inputs: ExplainInputs,
  { decision, credentials }: Pick<Explanation, 'decision' | 'credentials'>,
): Explanation['whenMade'] {
  if (!isDenial(decision) || !ABOUT_CLOCKS.has(decision.detail) || credentials === undefined)
    return undefined;
  const nowSeconds = credentials.proof.transcript.issuedAtSeconds;
  return { nowSeconds, decision: decide(facts, snapshot, withCache({ ...inputs, nowSeconds }), {}) };
}
