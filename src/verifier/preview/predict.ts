/**
 * Predicts the decision on a recorded request at another site: the checks of `decision/steps.ts` in their order, each from
 * what the event says, from what the site says, or from the check's recorded result where the site changes nothing that it
 * reads. What follows from none of these is unknown, never guessed.
 */

import type { RequiredAttribute, Route } from '../../bundle/compile/snapshot.ts';
import { type Denial, deny } from '../../protocol/reasons.ts';
import { blockedDenial } from '../decision/steps/blocked.ts';
import { absentOrEqual, identityAllowed, keyDenial } from '../decision/steps/proof.ts';
import { compareRules } from '../decision/steps/source.ts';
import { type CheckName, checkAttributes, STEPS } from '../decision/steps.ts';
import type { PreviewedKey, PreviewedSite } from './previewed-site.ts';
import type { RecordedCaller, RecordedDenial, RecordedFacts } from './recorded-facts.ts';

export type Prediction =
  | { readonly kind: 'allowed' }
  | PredictedDenial
  | {
      readonly kind: 'unknown';
      readonly why: Unknown;
      /** Whether the check that denied the request passes now. */
      readonly isFreed: boolean;
    };

export interface PredictedDenial {
  readonly kind: 'denied';
  readonly reason: Denial['reason'];
  readonly detail: string | undefined;
  /** False for a path that matches no route any more: the origin is not in the event. */
  readonly isDetailKnown: boolean;
}

/** Why an event does not say what happens to its request. Stable codes. */
export type Unknown =
  /** The path is not in the event, and decides which route the request matches. */
  | 'path_unknown'
  /** The denial hid the results of later steps. */
  | 'later_steps_hidden'
  /** What the passport says of an attribute is not in the event. */
  | 'attribute_unknown'
  /** The route's signed headers, body rule, passport header or accepted proofs change. */
  | 'request_unknown'
  /** How old the verifier's bundle was, or will be. */
  | 'freshness_unknown'
  /** Clock skew or passport lifetime change, and times are not in the event. */
  | 'times_unknown'
  /** The passport's optional claims or holder are not in the event. */
  | 'passport_unknown'
  /** The replay store, or a shortage at the verifier, decided. */
  | 'not_by_site'
  /** The recorded decision is none of the site as it is. */
  | 'contradicts_site';

/** A check's result at the site that recorded it. */
type Recorded =
  | { readonly kind: 'passed' }
  | { readonly kind: 'failed'; readonly denial: RecordedDenial }
  /** An earlier check failed. */
  | { readonly kind: 'hidden' };

interface Context {
  readonly facts: RecordedFacts;
  readonly caller: RecordedCaller;
  /** The site that the event is of. */
  readonly before: Side;
  readonly after: Side;
}

interface Side {
  readonly site: PreviewedSite;
  readonly route: Route;
  readonly key: PreviewedKey | undefined;
}

type Result = 'pass' | Denial | Unknown;
type Judge = (context: Context, recorded: Recorded) => Result;

/** @param before the site that the event's verifier had, apart from derived keys */
export function predict(facts: RecordedFacts, before: PreviewedSite, after: PreviewedSite): Prediction {
  const { denial, routeId } = facts;
  if (denial !== undefined && denial.check === undefined) return unknown('not_by_site');
  if (routeId === undefined)
    return denial === undefined ? unknown('contradicts_site') : withoutRoute(denial, before, after);
  const was = before.routes.get(routeId);
  if (was === undefined || was.method !== facts.method) return unknown('contradicts_site');
  // Their keys and claims are not in the event.
  if (isOfToken(facts, before) || isOfToken(facts, after)) return unknown('passport_unknown');
  const place =
    before === after
      ? ({ kind: 'route', route: was } as const)
      : after.places.verdict(routeId, before.places);
  if (place.kind === 'unknown') return unknown('path_unknown');
  if (place.kind === 'none')
    return { kind: 'denied', reason: 'bundle_route_missing', detail: undefined, isDetailKnown: false };
  return predictOnRoute(facts, before, after, { was, is: place.route });
}

function isOfToken({ caller }: RecordedFacts, { snapshot }: PreviewedSite): boolean {
  return caller !== undefined && snapshot.oauthIssuers.has(caller.issuer);
}

function withoutRoute(denial: RecordedDenial, before: PreviewedSite, after: PreviewedSite): Prediction {
  if (denial.check !== 'route')
    return unknown(denial.check === 'binding' ? 'not_by_site' : 'contradicts_site');
  const isSame =
    denial.detail === 'path_not_canonical' || before === after || after.places.equals(before.places);
  return isSame ? asDenied(denial) : unknown('path_unknown');
}

function predictOnRoute(
  facts: RecordedFacts,
  before: PreviewedSite,
  after: PreviewedSite,
  { was, is }: { readonly was: Route; readonly is: Route },
): Prediction {
  const { denial, isKeyed } = facts;
  const order = isKeyed ? KEYED_ORDER : ORDER;
  const failedAt = indexIn(order, checkThatDenied(facts));
  if (failedAt <= indexIn(order, 'route')) return unknown('contradicts_site');
  if (facts.caller === undefined && failedAt > indexIn(order, 'credentials'))
    // The event of a signature by an unknown key does not name the key.
    return unknown(isKeyed ? 'later_steps_hidden' : 'contradicts_site');
  const keyId = facts.caller?.keyId ?? '';
  const keyOf = (site: PreviewedSite) => {
    const key = site.key(keyId);
    return isKeyed && key?.kind !== 'derived_key' ? undefined : key;
  };
  const key = keyOf(after);
  const context = {
    facts,
    caller: (isKeyed ? callerOfKey(key, keyId) : facts.caller) ?? NO_CALLER,
    before: { site: before, route: was, key: keyOf(before) },
    after: { site: after, route: is, key },
  };
  for (const [index, check] of order.entries()) {
    const judge = JUDGES[check];
    if (judge === undefined) continue;
    const recorded: Recorded =
      denial === undefined || index < failedAt
        ? PASSED
        : index === failedAt
          ? { kind: 'failed', denial }
          : HIDDEN_RESULT;
    const result = judge(context, recorded);
    if (result === 'pass') continue;
    if (typeof result === 'object')
      return { kind: 'denied', reason: result.reason, detail: result.detail, isDetailKnown: true };
    return { kind: 'unknown', why: result, isFreed: index > failedAt };
  }
  return denial === undefined ? { kind: 'allowed' } : unknown('not_by_site');
}

const PASSED: Recorded = { kind: 'passed' };
const HIDDEN_RESULT: Recorded = { kind: 'hidden' };
/** For requests without readable credentials: no check looks at it. */
const NO_CALLER: RecordedCaller = {
  issuer: '',
  subject: '',
  trustDomain: '',
  keyId: '',
  keyBinding: 'software',
  isVerified: false,
};

const ORDER: readonly CheckName[] = STEPS.flatMap(({ checks }) => checks.map(({ name }) => name));
/** Without a passport; who is blocked comes after the signature. */
const KEYED_ORDER: readonly CheckName[] = [
  ...(['bundle', 'route', 'credentials', 'source', 'freshness', 'attributes', 'key'] as const),
  ...(['proof_signature', 'blocked', 'proof_times', 'binding'] as const),
];

/** Undefined and `replay` come after all others. */
function indexIn(order: readonly CheckName[], check: CheckName | 'replay' | undefined): number {
  const index = check === undefined || check === 'replay' ? -1 : order.indexOf(check);
  return index < 0 ? order.length : index;
}

/** Of a signature, the signature base comes first: it needs a target and headers that the signature can cover. */
function checkThatDenied({ denial, isSignature }: RecordedFacts): CheckName | 'replay' | undefined {
  const isOfBase = denial?.check === 'binding' && /^(?:target$|header\.)/.test(denial.detail ?? '');
  return isSignature && isOfBase ? 'proof_signature' : denial?.check;
}

/** A signature without a passport speaks for the key's client. */
function callerOfKey(key: PreviewedKey | undefined, keyId: string): RecordedCaller | undefined {
  if (key?.kind !== 'derived_key') return undefined;
  const { issuer, subject, trustDomain } = key.client;
  return { issuer, subject, trustDomain, keyId, keyBinding: 'software', isVerified: false };
}

function unknown(why: Unknown): Prediction {
  return { kind: 'unknown', why, isFreed: false };
}

function asDenied({ detail, reason }: RecordedDenial): Prediction {
  return { kind: 'denied', reason, detail, isDetailKnown: true };
}

/** For a check that reads nothing else than what `isSame` compares. */
function repeated(recorded: Recorded, isSame: boolean, otherwise: Unknown): Result {
  if (recorded.kind === 'hidden') return 'later_steps_hidden';
  if (!isSame) return otherwise;
  return recorded.kind === 'passed' ? 'pass' : denialOf(recorded.denial);
}

function denialOf({ detail, reason }: RecordedDenial): Denial {
  // The status does not matter here.
  return { kind: 'denied', reason, detail, status: 403 };
}

const JUDGES: { readonly [C in CheckName]: Judge | undefined } = {
  bundle: undefined,
  route: undefined,
  credentials: judgeCredentials,
  source: judgeSource,
  freshness: judgeFreshness,
  attributes: judgeAttributes,
  key: ({ after, facts }) =>
    keyDenial(after.key, facts.timeSeconds, after.site.snapshot.skewSeconds) ?? 'pass',
  passport_signature: (context, recorded) => judgeSignature(context, recorded, 'passport_signature'),
  claims: judgeClaims,
  blocked: judgeBlocked,
  passport_times: judgePassportTimes,
  audience: judgeAudience,
  proof_signature: (context, recorded) =>
    context.facts.isKeyed
      ? judgeSignature(context, recorded, 'proof_signature')
      : repeated(recorded, hasSameNonces(context), 'request_unknown'),
  proof_times: (context, recorded) => repeated(recorded, allowsTimes(context, recorded), 'times_unknown'),
  binding: judgeBinding,
};

function judgeCredentials({ after, before }: Context, recorded: Recorded): Result {
  const [was, is] = [before.route, after.route];
  const isSame =
    is.passportHeader === was.passportHeader &&
    isWithin(formatsOf(is), formatsOf(was)) &&
    isWithin(formatsOf(was), formatsOf(is));
  return repeated(recorded, isSame, 'request_unknown');
}

const TRANSCRIPTS_ALONE: ReadonlySet<string> = new Set(['transcript-v1']);

function formatsOf({ acceptedProofs }: Route): ReadonlySet<string> {
  return acceptedProofs ?? TRANSCRIPTS_ALONE;
}

/** A signature of an unknown key has no caller. */
function hasNoCaller({ after, facts }: Context): boolean {
  return facts.isKeyed && after.key === undefined;
}

function judgeSource(context: Context): Result {
  if (hasNoCaller(context)) return 'pass';
  const { after, caller } = context;
  const { key, route } = after;
  const { issuer, keyBinding, subject, trustDomain } = caller;
  const derivedKey = key?.kind === 'derived_key' ? key : undefined;
  const rule = compareRules(route, { issuer, trustDomain, subject, keyBinding, derivedKey });
  return 'index' in rule ? 'pass' : rule;
}

function judgeFreshness(context: Context, recorded: Recorded): Result {
  const { after, before } = context;
  const [was, is] = [before.route.freshness, after.route.freshness];
  if (is.kind === 'unknown') return deny('bundle_freshness_unknown');
  if (recorded.kind === 'failed') return 'freshness_unknown';
  const isSame = was.kind === is.kind && was.maxStalenessSeconds === is.maxStalenessSeconds;
  if (recorded.kind === 'passed' && !allowsTimes(context, recorded)) return 'times_unknown';
  return repeated(recorded, isSame, 'freshness_unknown');
}

/** Whether a check of times with the site's skew has the recorded result: a larger skew only lets more requests pass. */
function allowsTimes({ after, before }: Context, recorded: Recorded): boolean {
  const [was, is] = [before.site.snapshot.skewSeconds, after.site.snapshot.skewSeconds];
  return recorded.kind === 'passed' ? is >= was : is <= was;
}

function judgeAttributes(context: Context, recorded: Recorded): Result {
  if (hasNoCaller(context)) return 'pass';
  const { after, before } = context;
  const { key, route } = after;
  if (key?.kind === 'derived_key') {
    const attributes = { provenance: key.provenance, context: key.client.context };
    return checkAttributes(route, attributes) ?? 'pass';
  }
  if (recorded.kind === 'hidden') return 'later_steps_hidden';
  if (!isOfPassport(context)) {
    const requiresNone = route.requiredProvenance.length + route.requiredContext.length === 0;
    return requiresNone ? 'pass' : 'attribute_unknown';
  }
  const unmet = recorded.kind === 'failed' ? recorded.denial.unmet : {};
  if (unmet === undefined) {
    const isSame =
      isSameList(route.requiredProvenance, before.route.requiredProvenance) &&
      isSameList(route.requiredContext, before.route.requiredContext);
    return repeated(recorded, isSame, 'attribute_unknown');
  }
  return (
    judgeEach(route.requiredProvenance, before.route.requiredProvenance, {
      missing: ['missing_provenance', unmet.missing_provenance],
      mismatch: ['provenance_mismatch', unmet.provenance_mismatch],
    }) ??
    judgeEach(route.requiredContext, before.route.requiredContext, {
      missing: ['missing_context', unmet.missing_context],
      mismatch: ['context_mismatch', unmet.context_mismatch],
    }) ??
    'pass'
  );
}

/** Whether the recorded attributes were those of the passport. Those of a derived key that goes say nothing of its passports. */
function isOfPassport({ before, facts }: Context): boolean {
  return before.key === undefined ? facts.denial?.detail === 'key_unknown' : before.key.kind === 'issuer_key';
}

interface UnmetNames {
  readonly missing: readonly ['missing_provenance' | 'missing_context', readonly string[] | undefined];
  readonly mismatch: readonly ['provenance_mismatch' | 'context_mismatch', readonly string[] | undefined];
}

/** As `checkEach` of the decision, from what the event says of the attributes that its site required. */
function judgeEach(
  required: readonly RequiredAttribute[],
  before: readonly RequiredAttribute[],
  { mismatch, missing }: UnmetNames,
): Result | undefined {
  const isMissing = (name: string) => missing[1]?.includes(name) === true;
  for (const { name } of required) {
    if (!before.some((known) => known.name === name)) return 'attribute_unknown';
    if (isMissing(name)) return deny(missing[0], name);
  }
  for (const { allowed, name } of required) {
    const was = before.find((known) => known.name === name)?.allowed ?? new Set();
    const isWrong = mismatch[1]?.includes(name) === true;
    if (isWrong ? isWithin(allowed, was) : ![...was].some((value) => allowed.has(value)))
      return deny(mismatch[0], name);
    if (isWrong || !isWithin(was, allowed)) return 'attribute_unknown';
  }
  return undefined;
}

function isWithin(inner: ReadonlySet<string>, outer: ReadonlySet<string>): boolean {
  for (const value of inner) if (!outer.has(value)) return false;
  return true;
}

function isSameList(a: readonly RequiredAttribute[], b: readonly RequiredAttribute[]): boolean {
  return (
    a.length === b.length &&
    a.every(({ allowed, name }, index) => {
      const other = b[index];
      return other?.name === name && other.allowed.size === allowed.size && isWithin(allowed, other.allowed);
    })
  );
}

/** Of the passport, or of a proof without one. */
function judgeSignature(
  { after, before }: Context,
  recorded: Recorded,
  detail: 'passport_signature' | 'proof_signature',
): Result {
  const isSame = thumbprintOf(after.key) === thumbprintOf(before.key);
  // It was made with the other key.
  if (!isSame && recorded.kind === 'passed') return deny('invalid_request_proof', detail);
  return repeated(recorded, isSame, 'passport_unknown');
}

function thumbprintOf(key: PreviewedKey | undefined): string | undefined {
  return key?.kind === 'issuer_key' ? key.key.thumbprint : key?.thumbprint;
}

function judgeClaims({ after, before, caller }: Context, recorded: Recorded): Result {
  const { key } = after;
  if (recorded.kind === 'hidden' || key === undefined) return 'later_steps_hidden';
  if (!identityAllowed(caller, key)) return deny('invalid_request_proof', 'claims_not_allowed');
  if (recorded.kind === 'failed' && !(before.key && identityAllowed(caller, before.key)))
    return 'later_steps_hidden';
  return repeated(recorded, hasSameAttributes(before.key, key), 'passport_unknown');
}

/** A derived key's passport may state its attributes, which must then be the site's. */
function hasSameAttributes(before: PreviewedKey | undefined, after: PreviewedKey): boolean {
  if (after.kind === 'issuer_key') return true;
  if (before?.kind !== 'derived_key') return false;
  return (
    absentOrEqual(before.provenance, after.provenance) &&
    absentOrEqual(before.client.context, after.client.context)
  );
}

function judgeBlocked({ after, before, caller, facts }: Context, recorded: Recorded): Result {
  const { blocked } = after.site.snapshot;
  const holder = after.key?.kind === 'derived_key' ? after.key.thumbprint : '';
  const denial = blocked && blockedDenial(blocked, caller, holder);
  if (denial !== undefined) return denial;
  // The holder is the key itself.
  if (facts.isKeyed) return 'pass';
  const was = before.site.snapshot.blocked?.get(caller.issuer)?.holders ?? NO_HOLDERS;
  const is = blocked?.get(caller.issuer)?.holders ?? NO_HOLDERS;
  if (recorded.kind === 'failed') {
    if (recorded.denial.detail === 'subject_blocked') return 'later_steps_hidden';
    return repeated(recorded, isWithin(was, is), 'passport_unknown');
  }
  return repeated(recorded, isWithin(is, was), 'passport_unknown');
}

const NO_HOLDERS: ReadonlySet<string> = new Set();

function judgePassportTimes(context: Context, recorded: Recorded): Result {
  const [was, is] = [maxTtlOf(context.before.key), maxTtlOf(context.after.key)];
  if (recorded.kind === 'failed' && recorded.denial.detail === 'passport_ttl') {
    return repeated(recorded, is <= was, 'times_unknown');
  }
  return repeated(recorded, is >= was && allowsTimes(context, recorded), 'times_unknown');
}

/** Of a derived key the same for all. */
function maxTtlOf(key: PreviewedKey | undefined): number {
  return key?.kind === 'issuer_key' ? key.issuer.maxPassportTtlSeconds : 0;
}

function judgeAudience({ after, before }: Context, recorded: Recorded): Result {
  const isSame = after.route.audience === before.route.audience;
  if (!isSame && recorded.kind === 'passed') return deny('invalid_request_proof', 'audience');
  return repeated(recorded, isSame, 'passport_unknown');
}

/** Whether a DPoP proof needs a nonce. */
function hasSameNonces({ after, before }: Context): boolean {
  return after.route.needsDpopNonce === before.route.needsDpopNonce;
}

function judgeBinding({ after, before, facts }: Context, recorded: Recorded): Result {
  const [was, is] = [before.route, after.route];
  const adds = is.signedHeaders.some((name) => !was.signedHeaders.includes(name));
  const drops = is.signedHeaders.length < was.signedHeaders.length;
  // Transcripts alone have the audience.
  const isForSame = facts.isKeyed || is.audience === was.audience;
  const isUnboundSame = isWithin(is.unbound, was.unbound) && isWithin(was.unbound, is.unbound);
  const isSame =
    !adds && (recorded.kind === 'passed' || !drops) && is.body === was.body && isForSame && isUnboundSame;
  return repeated(recorded, isSame, 'request_unknown');
}
