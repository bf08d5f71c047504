/**
 * Finds, in memory, faults that would make the steps of a declaration fail: faults of declared members and of the site
 * as a whole. Faults that depend on other sites, keys, states of sources or `passport_header` are found when the steps run.
 */

import { rejectFaultySubject } from '../configuration/clients.ts';
import { rejectFaultyUrls } from '../configuration/oauth-issuers.ts';
import { observationOfRoute, observationOfSite, rejectFaultyEnd } from '../configuration/observations.ts';
import { membersOfRoute, rejectTargetsWithout } from '../configuration/old-targets.ts';
import type { SiteDeclaration } from '../contract/declaration-contract.ts';
import { ApiProblem } from '../domain/api-problem.ts';
import { isPossibleSubject } from '../enrollment/policies.ts';
import { createPolicyCheck } from '../publishing/site-check.ts';
import { requireRow, withName } from '../resource/change.ts';
import { declaredScope, declaredScopeMismatch, stillSuspended } from '../sources/source-lifecycle.ts';
import type { CurrentSite } from './current-site.ts';
import { policyAfter } from './declared-contents.ts';
import type { PlannedStep } from './plan.ts';

const checkPolicy = createPolicyCheck();

/** Kinds whose steps change what the site's members must satisfy together. */
const CHECKED_TOGETHER: ReadonlySet<string> = new Set([
  'site',
  'broker',
  'oauth_issuer',
  'route',
  'route_sources',
]);

/** @throws ApiProblem as the first step that would fail */
export async function rejectForeseenFaults(
  declaration: SiteDeclaration,
  current: CurrentSite,
  steps: readonly PlannedStep[],
  nowSeconds: number,
): Promise<void> {
  const issuers = new Map(declaration.sources?.map(({ name, issuer }) => [name, issuer]));
  for (const step of steps) {
    try {
      rejectFaultyStep(step, declaration.site, issuers, current);
      rejectFaultyObservation(step, nowSeconds);
      rejectTargetsWithout([...current.targets.values()], membersOfCall(step.call));
    } catch (error) {
      throw withName(`${step.verb} ${step.kind} ${step.name}`, error);
    }
  }
  if (steps.some(({ verb, kind }) => verb !== 'remove' && CHECKED_TOGETHER.has(kind))) {
    await checkPolicy(policyAfter(declaration, current, steps));
  }
}

function rejectFaultyStep(
  { call }: PlannedStep,
  { issuer_url: issuerUrl, trust_domain: trustDomain }: SiteDeclaration['site'],
  issuers: ReadonlyMap<string, string>,
  { sources }: CurrentSite,
): void {
  switch (call[0]) {
    case 'createClient':
      rejectFaultySubject(call[1].subject, { trustDomain });
      return;
    case 'changeClient':
      if (call[1].subject !== call[1].row.subject) rejectFaultySubject(call[1].subject, { trustDomain });
      return;
    case 'createPolicy':
      if (!isPossibleSubject(call[1].verified_subject)) throw new ApiProblem('verified_subject_invalid');
      return;
    case 'putOAuthIssuer':
      rejectFaultyUrls(call[1], call[3], { issuerUrl });
      return;
    case 'activateSource': {
      const scope = declaredScope({ issuer: requireRow(issuers.get(call[1])) });
      const others = sources.get(call[1])?.revisions ?? [];
      if (others.some(({ state }) => state === 'suspended')) throw stillSuspended();
      if (scope !== call[2]) throw declaredScopeMismatch(scope);
      return;
    }
    default:
      return;
  }
}

function rejectFaultyObservation({ call }: PlannedStep, nowSeconds: number): void {
  const observation = observationOfCall(call);
  if (observation !== undefined) rejectFaultyEnd(observation, nowSeconds);
}

function observationOfCall(call: PlannedStep['call']) {
  switch (call[0]) {
    case 'createRoute':
      return observationOfRoute(call[2]);
    case 'replaceRoute':
      return observationOfRoute(call[1].definition);
    case 'createSite':
      return observationOfSite(call[1]);
    case 'changeSite':
      return observationOfSite(call[2]);
    default:
      return undefined;
  }
}

function membersOfCall(call: PlannedStep['call']) {
  switch (call[0]) {
    case 'createRoute':
      return membersOfRoute(call[2]);
    case 'replaceRoute':
      return membersOfRoute(call[1].definition);
    case 'putOAuthIssuer':
      return call[2] === undefined ? (['accepted_proofs'] as const) : [];
    default:
      return observationOfCall(call)?.isObserved === true ? (['enforcement'] as const) : [];
  }
}
