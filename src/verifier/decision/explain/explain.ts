/**
 * Explains why a request is allowed or denied: the verdict of every step and check, and what each of them compared. It
 * consumes nothing, so it does not explain replay.
 * Source: specification "Request evaluation order (adapter)".
 */
import type { RequiredAttribute, Route, Snapshot, SourceRule } from '../../../bundle/compile/snapshot.ts';
import { type AcceptedCredentials, proofTermsOf } from '../../../protocol/accepted-credentials.ts';
import type { DpopCredentials, RequestHeaders } from '../../../protocol/credentials.ts';
import type { CoveredValues } from '../../../protocol/http-signature.ts';
import { type Denial, isDenial } from '../../../protocol/reasons.ts';
import { FIXED_LINES, type RebuiltTranscript, type Transcript } from '../../../protocol/transcript.ts';
import { decide, type Verified, verifiedOf } from '../decide.ts';
import type { Caller } from '../facts/caller.ts';
import { type DecisionInputs, type Evaluation, newEvaluation } from '../facts/evaluation.ts';
import { createPassportCache } from '../facts/passport-cache.ts';
import type { RequestFacts } from '../facts/request-facts.ts';
import { createTokenCache } from '../facts/token-cache.ts';
import { rebuildTranscript } from '../steps/binding.ts';
import { dpopParts } from '../steps/dpop-binding.ts';
import { mostAgeSeconds } from '../steps/freshness.ts';
import { valuesOfSignature } from '../steps/signature-binding.ts';
import { type ComparedCaller, compareRules } from '../steps/source.ts';
import { type Check, type CheckName, checkAttributes, STEPS, type Step } from '../steps.ts';

type ExplainInputs = Omit<DecisionInputs, 'passports' | 'tokens' | 'dpopNonces'>;

export interface Explanation {
  readonly nowSeconds: number;
  readonly snapshot: Snapshot | undefined;
  /** The verifier's decision; `verified` means allowed, if the `jti` is unused. */
  readonly decision: Verified | Denial;
  /** Verdicts of steps 1 to 7. */
  readonly steps: readonly StepVerdict[];
  readonly route: Route | undefined;
  readonly credentials: AcceptedCredentials | undefined;
  readonly caller: Caller | undefined;
  /** Each source rule of the route, compared on its own. */
  readonly rules: readonly ExplainedRule[];
  readonly freshness: ExplainedFreshness | undefined;
  readonly attributes: readonly ExplainedAttribute[];
  /** Of a transcript, or of what a DPoP proof states; empty without a route, or without a readable proof. */
  readonly transcript: readonly ComparedLine[];
  /** Of an HTTP message signature: the covered components, as the request has them. Undefined without a route, or for a transcript. */
  readonly signatureBase: CoveredValues | undefined;
  /** For a denial that depends on the clock: the decision at the time at which the proof says it was made. */
  readonly whenMade: { readonly nowSeconds: number; readonly decision: Verified | Denial } | undefined;
}

export interface ExplainedRule {
  readonly rule: SourceRule;
  readonly denial: Denial | undefined;
}

export interface ExplainedFreshness {
  /** Negative when the newest freshness statement is later than the explained time. */
  readonly ageSeconds: number;
  /** Undefined for an unknown freshness class. */
  readonly limitSeconds: number | undefined;
}

interface ExplainedAttribute extends RequiredAttribute {
  readonly kind: 'provenance' | 'context';
  readonly actual: string | undefined;
  readonly denial: Denial | undefined;
}

/** The request's value for a line. */
type RebuiltValue =
  | { readonly kind: 'value'; readonly value: string }
  /**
   * `body_unavailable`: the exact body is unknown. `header_missing`, `header_repeated`: the header does not occur
   * exactly once.
   */
  | { readonly kind: 'unknown'; readonly why: 'body_unavailable' | 'header_missing' | 'header_repeated' };

export interface ComparedLine {
  readonly name: string;
  /** Undefined for a line that the caller did not sign. */
  readonly signed: string | undefined;
  readonly rebuilt: RebuiltValue;
  readonly isEqual: boolean;
}

export function explainRequest(
  facts: RequestFacts,
  snapshot: Snapshot | undefined,
  inputs: ExplainInputs,
): Explanation {
  const evaluation = newEvaluation(facts, snapshot, withCache(inputs), {});
  const steps = explainSteps(evaluation);
  const decision = steps.find(({ verdict }) => verdict === 'failed')?.denial ?? verifiedOf(evaluation);
  const { caller, credentials, route } = evaluation.evidence;
  const isRouted = route !== undefined && caller !== undefined;
  return {
    nowSeconds: inputs.nowSeconds,
    snapshot,
    decision,
    steps,
    route,
    credentials,
    caller,
    rules: isRouted ? explainRules(route, caller) : [],
    freshness: route && snapshot && explainFreshness(route, snapshot, inputs),
    attributes: isRouted ? explainAttributes(route, caller) : [],
    transcript: explainTranscript(evaluation),
    signatureBase: explainSignature(evaluation),
    whenMade: decideWhenMade(facts, snapshot, inputs, { decision, credentials }),
  };
}

/** An explanation uses its own cache, so that it verifies every signature itself. */
function withCache(inputs: ExplainInputs): DecisionInputs {
  return { ...inputs, passports: createPassportCache(), tokens: createTokenCache(), dpopNonces: ANY_NONCE };
}

/** The keys of nonces are the verifier's alone. */
const ANY_NONCE = { accepts: () => true };

export function explainRules(route: Route, caller: ComparedCaller): readonly ExplainedRule[] {
  return route.sources.map((rule) => {
    const answer = compareRules({ ...route, sources: [rule] }, caller);
    return { rule, denial: isDenial(answer) ? answer : undefined };
  });
}

export function explainFreshness(
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

function explainTranscript(evaluation: Evaluation): readonly ComparedLine[] {
  const { credentials, route } = evaluation.evidence;
  if (route === undefined) return [];
  if (credentials?.format === 'dpop') return explainDpop(evaluation, credentials);
  if (credentials?.format !== 'transcript-v1') return [];
  const { headers } = evaluation.facts;
  const rebuilt = rebuildTranscript(evaluation, credentials);
  return compareTranscripts(credentials.proof.transcript, rebuilt, headers);
}

function explainDpop(evaluation: Evaluation, credentials: DpopCredentials): readonly ComparedLine[] {
  return dpopParts(evaluation, credentials).map(({ actual, name, signed }) => ({
    name,
    signed,
    rebuilt: { kind: 'value', value: actual },
    isEqual: signed === actual,
  }));
}

function explainSignature(evaluation: Evaluation): CoveredValues | undefined {
  const { credentials, route } = evaluation.evidence;
  if (credentials?.format !== 'http-message-signatures' || route === undefined) return undefined;
  return valuesOfSignature(evaluation, credentials.signature);
}

/**
 * Compares the signed transcript with the one rebuilt from the request, in the transcript's order. `steps/binding.ts` decides.
 * Headers that the route requires and the caller did not sign are sorted among the others.
 */
function compareTranscripts(
  signed: Transcript,
  rebuilt: RebuiltTranscript,
  headers: RequestHeaders,
): readonly ComparedLine[] {
  const again = new Map(transcriptLines(rebuilt));
  const lines = new Map(transcriptLines(signed));
  const names = [...FIXED_LINES.map(([name]) => name), ...headerLineNames(lines, again)];
  return names.map((name) => {
    const value = again.get(name);
    const known: RebuiltValue =
      value === undefined ? { kind: 'unknown', why: whyUnknown(name, headers) } : { kind: 'value', value };
    return {
      name,
      signed: lines.get(name),
      rebuilt: known,
      isEqual: value !== undefined && lines.get(name) === value,
    };
  });
}

/** Prefix of a signed header's name. */
export const HEADER_LINE = 'header.';

function headerLineNames(...sides: readonly ReadonlyMap<string, unknown>[]): readonly string[] {
  const names = new Set(sides.flatMap((lines) => [...lines.keys()]));
  return [...names].filter((name) => name.startsWith(HEADER_LINE)).sort();
}

function whyUnknown(line: string, headers: RequestHeaders) {
  if (!line.startsWith(HEADER_LINE)) return 'body_unavailable';
  const found = headers.lookup(line.slice(HEADER_LINE.length));
  return found.kind === 'absent' ? 'header_missing' : 'header_repeated';
}

type LineValue = readonly [name: string, value: string | undefined];

/** Every line after the version, in order. */
export function transcriptLines(transcript: Transcript | RebuiltTranscript): readonly LineValue[] {
  return [
    ...FIXED_LINES.map(([name, read]): LineValue => [name, read(transcript)]),
    ...transcript.headers.map(({ name, value }): LineValue => [`${HEADER_LINE}${name}`, value]),
  ];
}

/** Details of denials that depend on the clock. */
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
  const nowSeconds = proofTermsOf(credentials).issuedAtSeconds;
  return { nowSeconds, decision: decide(facts, snapshot, withCache({ ...inputs, nowSeconds }), {}) };
}

/**
 * `would_pass`, `would_fail`: the check comes after the one that decided. `not_reached`: a check that this one needs
 * failed. `not_checked`: checking would consume the proof.
 */
export type Verdict = 'passed' | 'failed' | 'would_pass' | 'would_fail' | 'not_reached' | 'not_checked';

interface CheckVerdict {
  readonly check: CheckName;
  readonly verdict: Verdict;
  readonly denial: Denial | undefined;
}

export type StepNumber = Step['number'] | 6 | 7;

interface StepVerdict {
  readonly step: StepNumber;
  readonly verdict: Verdict;
  /** The first denial within the step. */
  readonly denial: Denial | undefined;
  /** Empty for steps 6 and 7, which are not explained. */
  readonly checks: readonly CheckVerdict[];
}

/** @param evaluation filled in as the checks pass */
function explainSteps(evaluation: Evaluation): readonly StepVerdict[] {
  const passed = new Set<CheckName>();
  let isDecided = false;

  function explainUnlessSkipped(check: Check): readonly CheckVerdict[] {
    if (!check.needs.every((needed) => passed.has(needed)) || check.skips?.(evaluation.evidence) !== true) {
      return [explainCheck(check)];
    }
    passed.add(check.name);
    return [];
  }

  function explainCheck({ name, needs, run }: Check): CheckVerdict {
    if (!needs.every((needed) => passed.has(needed))) {
      return { check: name, verdict: 'not_reached', denial: undefined };
    }
    const denial = run(evaluation);
    if (denial === undefined) {
      passed.add(name);
      return { check: name, verdict: isDecided ? 'would_pass' : 'passed', denial };
    }
    const verdict = isDecided ? 'would_fail' : 'failed';
    isDecided = true;
    return { check: name, verdict, denial };
  }

  const steps = STEPS.map(({ number, checks }) =>
    verdictOfStep(number, checks.flatMap(explainUnlessSkipped)),
  );
  return [
    ...steps,
    { step: 6, verdict: isDecided ? 'not_reached' : 'not_checked', denial: undefined, checks: [] },
    { step: 7, verdict: isDecided ? 'not_reached' : 'would_pass', denial: undefined, checks: [] },
  ];
}

/** The verdict of the first check that did not pass; otherwise all checks have the same verdict. */
function verdictOfStep(step: Step['number'], checks: readonly CheckVerdict[]): StepVerdict {
  const first = checks.find(({ verdict }) => verdict !== 'passed' && verdict !== 'would_pass') ?? checks[0];
  return { step, verdict: first?.verdict ?? 'not_reached', denial: first?.denial, checks };
}
