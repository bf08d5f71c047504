/**
 * Steps 1 to 5 of the specification, in order, each a list of checks. `decide.ts` runs them up to the first denial, `explain/`
 * runs them all. They consume nothing; step 6, replay, is in `verifier.ts`. This is the only place that defines the order, with one
 * exception: `steps/proof.ts` finds a blocked caller without a passport after it has verified the signature.
 * Source: specification "Request evaluation order (adapter)", docs/design/protocol.md "Decision: first fault wins".
 */
import type { KeyTable, RequiredAttribute, Route, Snapshot } from '../../bundle/compile/snapshot.ts';
import { type AcceptedCredentials, readAcceptedCredentials } from '../../protocol/accepted-credentials.ts';
import type { Attributes } from '../../protocol/passport.ts';
import { type Denial, deny, isDenial } from '../../protocol/reasons.ts';
import { AUTHORIZATION_HEADER } from '../../protocol/wire-names.ts';
import { type Caller, callerOfKeyId, callerOfToken, identifyCaller } from './facts/caller.ts';
import { type Evaluation, type Evidence, required } from './facts/evaluation.ts';
import { checkBinding } from './steps/binding.ts';
import { checkBlocked } from './steps/blocked.ts';
import { checkFreshness, isAgeSuspended } from './steps/freshness.ts';
import {
  checkAudience,
  checkClaims,
  checkKey,
  checkPassportSignature,
  checkPassportTimes,
  checkProofSignature,
  checkProofTimes,
} from './steps/proof.ts';
import { matchRoute } from './steps/route.ts';
import { matchSource } from './steps/source.ts';

export interface Step {
  readonly number: 1 | 2 | 3 | 4 | 5;
  readonly name: StepName;
  readonly checks: readonly Check[];
}

export interface Check {
  readonly name: CheckName;
  /** Earlier checks that must have passed, because this one uses their results. */
  readonly needs: readonly CheckName[];
  /** Whether to leave the check out, because the request lacks what it reads. A later check covers that. */
  readonly skips?: (evidence: Evidence) => boolean;
  /** Records its findings in the evaluation; returns undefined when the check passes. */
  readonly run: (evaluation: Evaluation) => Denial | undefined;
}

export type StepName = 'route' | 'source' | 'freshness' | 'attributes' | 'proof';

export type CheckName =
  | 'bundle'
  | 'route'
  | 'credentials'
  | 'source'
  | 'freshness'
  | 'attributes'
  | ProofCheckName
  | 'binding';

/** Checks of step 5 before the binding. Each needs the previous check, because unverified claims deserve no verdict. */
type ProofCheckName =
  | 'key'
  | 'passport_signature'
  | 'claims'
  | 'blocked'
  | 'passport_times'
  | 'audience'
  | 'proof_signature'
  | 'proof_times';

export const STEPS: readonly Step[] = [
  {
    number: 1,
    name: 'route',
    checks: [
      { name: 'bundle', needs: [], run: checkBundleIsLoaded },
      { name: 'route', needs: ['bundle'], run: findRoute },
      { name: 'credentials', needs: ['bundle'], run: findCredentials },
    ],
  },
  {
    number: 2,
    name: 'source',
    checks: [{ name: 'source', needs: ['route', 'credentials'], skips: hasNoCaller, run: findSourceRule }],
  },
  {
    number: 3,
    name: 'freshness',
    checks: [{ name: 'freshness', needs: ['route'], run: checkBundleIsFresh }],
  },
  {
    number: 4,
    name: 'attributes',
    checks: [
      {
        name: 'attributes',
        needs: ['route', 'credentials'],
        skips: hasNoCaller,
        run: checkCallerAttributes,
      },
    ],
  },
  {
    number: 5,
    name: 'proof',
    checks: [
      { name: 'key', needs: ['route', 'credentials'], run: checkKey },
      { name: 'passport_signature', needs: ['key'], skips: isKeyed, run: checkPassportSignature },
      { name: 'claims', needs: ['passport_signature'], skips: isKeyed, run: checkClaims },
      { name: 'blocked', needs: ['claims'], skips: isKeyed, run: checkBlocked },
      { name: 'passport_times', needs: ['blocked'], skips: isKeyed, run: checkPassportTimes },
      { name: 'audience', needs: ['passport_times'], skips: isKeyed, run: checkAudience },
      { name: 'proof_signature', needs: ['audience'], run: checkProofSignature },
      { name: 'proof_times', needs: ['proof_signature'], run: checkProofTimes },
      { name: 'binding', needs: ['route', 'credentials'], run: checkBinding },
    ],
  },
];

function checkBundleIsLoaded({ snapshot }: Evaluation): Denial | undefined {
  return snapshot === undefined ? deny('bundle_policy_missing') : undefined;
}

function findRoute(evaluation: Evaluation): Denial | undefined {
  const { evidence, facts, snapshot } = evaluation;
  const matched = matchRoute(facts, required(snapshot));
  if (isDenial(matched)) return matched;
  evidence.route = matched.route;
  evaluation.authority = matched.authority;
  return undefined;
}

function findCredentials({ evidence, facts, inputs, snapshot }: Evaluation): Denial | undefined {
  const { passports, tokens } = inputs;
  const { authSite, keys, oauthIssuers } = required(snapshot);
  // Without a route, from which `explain` continues, there is only the usual header.
  const passportHeader = evidence.route?.passportHeader ?? AUTHORIZATION_HEADER;
  const removesProofs = facts.removesProofs === true;
  const acceptedProofs = evidence.route?.acceptedProofs;
  const knownToken = oauthIssuers.size === 0 ? undefined : (sha256: string) => tokens?.get(sha256)?.token;
  const rules = { authSite, passportHeader, acceptedProofs, removesProofs, knownToken };
  const credentials = readAcceptedCredentials(
    facts.headers,
    rules,
    (sha256) => passports.get(sha256)?.passport,
  );
  if (isDenial(credentials)) return credentials;
  evidence.credentials = credentials;
  const caller = callerOf(credentials, keys, oauthIssuers);
  if (caller !== undefined) evidence.caller = caller;
  return undefined;
}

function callerOf(
  credentials: AcceptedCredentials,
  keys: KeyTable,
  oauthIssuers: Snapshot['oauthIssuers'],
): Caller | undefined {
  if (credentials.passport !== undefined) return identifyCaller(keys, credentials.passport);
  if (credentials.format === 'http-message-signatures')
    return callerOfKeyId(keys, credentials.signature.keyId);
  const { token } = credentials;
  return callerOfToken(token, oauthIssuers.get(token.issuer));
}

/** A signature of an unknown key and a token of an unknown issuer have no caller; step 5 denies them. */
function hasNoCaller({ caller }: Evidence): boolean {
  return caller === undefined;
}

/** Whether a key signs requests itself, without passport or token. */
function isKeyed({ credentials }: Evidence): boolean {
  const { format, passport } = required(credentials);
  return format === 'http-message-signatures' && passport === undefined;
}

function findSourceRule({ evidence }: Evaluation): Denial | undefined {
  const rule = matchSource(required(evidence.route), required(evidence.caller));
  if (isDenial(rule)) return rule;
  evidence.matchedRule = rule;
  return undefined;
}

function checkBundleIsFresh({ evidence, inputs, snapshot }: Evaluation): Denial | undefined {
  const { nowSeconds, realtimeStalenessSeconds } = inputs;
  const { freshness } = required(evidence.route);
  const loaded = required(snapshot);
  const denial = checkFreshness(freshness, loaded, nowSeconds, realtimeStalenessSeconds);
  if (!isAgeSuspended(denial, loaded, nowSeconds)) return denial;
  evidence.isBreakGlass = true;
  return undefined;
}

function checkCallerAttributes({ evidence }: Evaluation): Denial | undefined {
  return checkAttributes(required(evidence.route), required(evidence.caller));
}

/** Whether provenance and context satisfy the route. */
export function checkAttributes(
  route: Pick<Route, 'requiredProvenance' | 'requiredContext'>,
  caller: Pick<Caller, 'provenance' | 'context'>,
): Denial | undefined {
  return (
    checkEach(route.requiredProvenance, caller.provenance, 'missing_provenance', 'provenance_mismatch') ??
    checkEach(route.requiredContext, caller.context, 'missing_context', 'context_mismatch')
  );
}

type AttributeReason = 'missing_provenance' | 'provenance_mismatch' | 'missing_context' | 'context_mismatch';

/** Names of attributes of the route, by what is wrong with the caller's. At most 64 names: 32 of each kind. */
export type UnmetAttributes = { readonly [R in AttributeReason]?: readonly string[] };

/** All that {@link checkAttributes} finds, of which it reports the first. The names are the bundle's. */
export function unmetAttributes(
  route: Pick<Route, 'requiredProvenance' | 'requiredContext'>,
  { context, provenance }: Pick<Caller, 'provenance' | 'context'>,
): UnmetAttributes {
  return {
    ...unmetOf(route.requiredProvenance, provenance, 'missing_provenance', 'provenance_mismatch'),
    ...unmetOf(route.requiredContext, context, 'missing_context', 'context_mismatch'),
  };
}

function unmetOf(
  required: readonly RequiredAttribute[],
  actual: Attributes,
  missing: AttributeReason,
  mismatch: AttributeReason,
): UnmetAttributes {
  const absent = required.filter(({ name }) => !actual.has(name));
  const wrong = required.filter(
    ({ name, allowed }) => actual.has(name) && !isAllowed(allowed, actual.get(name) ?? ''),
  );
  return {
    ...(absent.length === 0 ? {} : { [missing]: absent.map(({ name }) => name) }),
    ...(wrong.length === 0 ? {} : { [mismatch]: wrong.map(({ name }) => name) }),
  };
}

/** Reports missing attributes before mismatches; within each, the first name in byte order. */
function checkEach(
  required: readonly RequiredAttribute[],
  actual: Attributes,
  missing: 'missing_provenance' | 'missing_context',
  mismatch: 'provenance_mismatch' | 'context_mismatch',
): Denial | undefined {
  if (required.length === 0) return undefined;
  const absent = required.find(({ name }) => !actual.has(name));
  if (absent !== undefined) return deny(missing, absent.name);
  const wrong = required.find(({ name, allowed }) => !isAllowed(allowed, actual.get(name) ?? ''));
  return wrong === undefined ? undefined : deny(mismatch, wrong.name);
}

/** Only the `scope` of an access token has several values, separated by spaces. */
function isAllowed(allowed: ReadonlySet<string>, actual: string): boolean {
  return allowed.has(actual) || actual.split(' ').some((value) => allowed.has(value));
}
