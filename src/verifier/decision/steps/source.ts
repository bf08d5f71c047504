/** Step 2: a source rule matches issuer, trust domain, subject and key binding; a derived key's client has a grant. */
import type { DerivedKey, Route, SourceRule } from '../../../bundle/compile/snapshot.ts';
import { grantCovers } from '../../../protocol/access.ts';
import { satisfiesKeyBinding } from '../../../protocol/identifiers.ts';
import { type Denial, deny, type Reason } from '../../../protocol/reasons.ts';
import type { Caller } from '../facts/caller.ts';

/** The denial for each depth. When several rules fail, the one that matched furthest determines the reason. */
const FAULT_AT_DEPTH = [
  'source_issuer_mismatch',
  'source_trust_domain_mismatch',
  'source_subject_mismatch',
  'insufficient_key_binding',
] as const satisfies readonly Reason[];
type Depth = 0 | 1 | 2 | 3;

/** With fewer rules, comparing them costs less than a cache lookup. */
const RULES_WORTH_REMEMBERING = 8;

/**
 * Cache of earlier results. Routes, clients and claims are immutable and get replaced, so a result never becomes
 * invalid and is garbage-collected with its route or identity.
 */
const remembered = new WeakMap<Route, WeakMap<Caller['identity'], SourceRule | Denial>>();

/** Returns the rule that admits the caller, or the denial. */
export function matchSource(route: Route, caller: Caller): SourceRule | Denial {
  if (route.sources.length < RULES_WORTH_REMEMBERING) return compareRules(route, caller);
  let ofRoute = remembered.get(route);
  if (ofRoute === undefined) {
    ofRoute = new WeakMap();
    remembered.set(route, ofRoute);
  }
  let answer = ofRoute.get(caller.identity);
  if (answer === undefined) {
    answer = compareRules(route, caller);
    ofRoute.set(caller.identity, answer);
  }
  return answer;
}

/** The facts of a caller that the rules compare. */
export type ComparedCaller = Pick<Caller, 'issuer' | 'trustDomain' | 'subject' | 'keyBinding'> & {
  readonly derivedKey: Pick<DerivedKey, 'client'> | undefined;
};

/** As {@link matchSource}, without a cache. */
export function compareRules(
  route: Pick<Route, 'sources' | 'resource' | 'access'>,
  caller: ComparedCaller,
): SourceRule | Denial {
  let furthest: Depth = 0;
  for (const rule of route.sources) {
    const depth = faultDepth(rule, caller);
    if (depth === undefined) return checkGrant(route, caller) ?? rule;
    if (depth > furthest) furthest = depth;
  }
  return deny(FAULT_AT_DEPTH[furthest]);
}

function faultDepth(rule: SourceRule, caller: ComparedCaller): Depth | undefined {
  if (rule.issuer !== caller.issuer) return 0;
  if (rule.trustDomain !== caller.trustDomain) return 1;
  if (!subjectMatches(rule, caller.subject)) return 2;
  return satisfiesKeyBinding(caller.keyBinding, rule.requiredKeyBinding) ? undefined : 3;
}

function subjectMatches({ subject }: SourceRule, callerSubject: string): boolean {
  if (!subject.isCanonical) return false;
  return subject.kind === 'exact' ? subject.value === callerSubject : callerSubject.startsWith(subject.value);
}

function checkGrant(route: Pick<Route, 'resource' | 'access'>, caller: ComparedCaller): Denial | undefined {
  if (caller.derivedKey === undefined) return undefined;
  const granted = caller.derivedKey.client.grants.get(route.resource);
  return grantCovers(granted, route.access) ? undefined : deny('source_subject_mismatch', 'not_granted');
}
