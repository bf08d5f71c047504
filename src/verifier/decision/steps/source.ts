/** Step 2: a source rule matches issuer, trust domain, subject and key binding; a derived key's client is granted. */
import type { Access, Route, SourceRule } from '../../../bundle/compile/snapshot.ts';
import { satisfiesKeyBinding } from '../../../protocol/identifiers.ts';
import { type Denial, deny, type Reason } from '../../../protocol/reasons.ts';
import type { Caller } from '../caller.ts';

/** What fails at each depth; when several rules fail, the furthest that any of them got is told. */
const FAULT_AT_DEPTH = [
  'source_issuer_mismatch',
  'source_trust_domain_mismatch',
  'source_subject_mismatch',
  'insufficient_key_binding',
] as const satisfies readonly Reason[];
type Depth = 0 | 1 | 2 | 3;

/** Below this many rules, comparing them costs less than looking an earlier answer up. */
const RULES_WORTH_REMEMBERING = 8;

/**
 * Answers given before. Routes, clients and claims never change, they are replaced: an answer holds for as long as all
 * three are there, and goes with whichever goes first.
 */
const remembered = new WeakMap<Route, WeakMap<Caller['identity'], SourceRule | Denial>>();

/** The rule that admits the caller, or the denial. */
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

function compareRules(route: Route, caller: Caller): SourceRule | Denial {
  let furthest: Depth = 0;
  for (const rule of route.sources) {
    const depth = faultDepth(rule, caller);
    if (depth === undefined) return checkGrant(route, caller) ?? rule;
    if (depth > furthest) furthest = depth;
  }
  return deny(FAULT_AT_DEPTH[furthest]);
}

function faultDepth(rule: SourceRule, caller: Caller): Depth | undefined {
  if (rule.issuer !== caller.issuer) return 0;
  if (rule.trustDomain !== caller.trustDomain) return 1;
  if (!subjectMatches(rule, caller.subject)) return 2;
  return satisfiesKeyBinding(caller.keyBinding, rule.requiredKeyBinding) ? undefined : 3;
}

function subjectMatches({ subject }: SourceRule, callerSubject: string): boolean {
  if (!subject.isCanonical) return false;
  return subject.kind === 'exact' ? subject.value === callerSubject : callerSubject.startsWith(subject.value);
}

function checkGrant(route: Route, caller: Caller): Denial | undefined {
  if (caller.derivedKey === undefined) return undefined;
  const granted = caller.derivedKey.client.grants.get(route.resource);
  return includesAccess(granted, route.access) ? undefined : deny('source_subject_mismatch', 'not_granted');
}

function includesAccess(granted: Access | undefined, needed: Access): boolean {
  return granted === 'write' || (granted === 'read' && needed === 'read');
}
