/**
 * Finds, in memory, faults that would make the steps of a declaration fail: faults of declared members and of the site
 * as a whole. Faults that depend on other sites, keys, states of sources or verifiers are found when the steps run.
 */

import { BUNDLE_FORMAT } from '../../bundle/format/bundle-limits.ts';
import type { JsonObject } from '../../protocol/strict-json.ts';
import { rejectFaultySubject } from '../configuration/clients.ts';
import type { SiteDeclaration } from '../contract/declaration-contract.ts';
import { ApiProblem } from '../domain/api-problem.ts';
import { isPossibleSubject } from '../enrollment/policies.ts';
import { createPolicyCheck } from '../publishing/site-check.ts';
import { hasKeys, publishedRoutes, routeContent } from '../publishing/stored-site-content.ts';
import { requireRow, withName } from '../resource/change.ts';
import { declaredScope, declaredScopeMismatch, stillSuspended } from '../sources/source-lifecycle.ts';
import { brokerName, type CurrentSite, definitionOf } from './current-site.ts';
import type { PlannedStep } from './plan.ts';

const checkPolicy = createPolicyCheck();

/** Kinds whose steps change what the site's members must satisfy together. */
const CHECKED_TOGETHER: ReadonlySet<string> = new Set(['site', 'broker', 'route', 'route_sources']);

/** @throws ApiProblem as the first step that would fail */
export async function rejectForeseenFaults(
  declaration: SiteDeclaration,
  current: CurrentSite,
  steps: readonly PlannedStep[],
): Promise<void> {
  const issuers = new Map(declaration.sources?.map(({ name, issuer }) => [name, issuer]));
  for (const step of steps) {
    try {
      rejectFaultyStep(step, declaration.site.trust_domain, issuers, current);
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
  trustDomain: string,
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

/** The site's bundle content after the steps, with one client and without sources. */
function policyAfter(
  declaration: SiteDeclaration,
  current: CurrentSite,
  steps: readonly PlannedStep[],
): JsonObject {
  const { site } = declaration;
  const skewSeconds = site.skew_seconds ?? current.site?.skewSeconds;
  const removed = new Set(
    steps.flatMap(({ verb, kind, name }) => (verb === 'remove' ? `${kind} ${name}` : [])),
  );
  const staysAs = (kind: 'broker' | 'route') => (name: string) => !removed.has(`${kind} ${name}`);
  return {
    format: BUNDLE_FORMAT,
    auth_site: site.site_id,
    ...(skewSeconds === undefined ? {} : { skew_seconds: skewSeconds }),
    origins: site.origins,
    single_verifier: site.single_verifier ?? current.site?.singleVerifier === 1,
    trust_anchor_sources: [],
    issuers: brokersAfter(declaration, current, staysAs('broker')),
    clients: oneClient(declaration, current),
    ...routesAfter(declaration, current, staysAs('route')),
  };
}

type Stays = (name: string) => boolean;

function brokersAfter({ brokers = [] }: SiteDeclaration, current: CurrentSite, stays: Stays) {
  const stored = [...current.brokers].filter(([name]) => stays(name));
  const after = new Map(stored.map(([name, { definition }]) => [name, definitionOf(definition)]));
  for (const { url: _, keys = [], ...members } of brokers) {
    const name = brokerName(members.issuer, members.trust_domain);
    after.set(name, { ...members, keys: after.has(name) ? after.get(name)?.keys : keys });
  }
  return [...after.values()].filter(hasKeys);
}

/** One represents all: each has the site's issuer and trust domain. */
function oneClient({ site, clients = [] }: SiteDeclaration, current: CurrentSite): readonly JsonObject[] {
  const [declared] = clients;
  const [held] = current.clients.values();
  const clientId = declared?.client_id ?? held?.clientId;
  if (clientId === undefined) return [];
  const subject = declared?.subject ?? held?.subject;
  const { issuer_url: issuer, trust_domain: trustDomain } = site;
  return [{ client_id: clientId, issuer, trust_domain: trustDomain, subject, context: {}, grants: [] }];
}

function routesAfter({ routes = [] }: SiteDeclaration, current: CurrentSite, stays: Stays) {
  const stored = [...current.routes.values()].filter(({ routeId }) => stays(routeId));
  const sources = new Map<string, unknown>();
  for (const { routeId, allowedSources } of current.routeSources.values()) {
    sources.set(routeId, JSON.parse(allowedSources));
  }
  const after = new Map<unknown, JsonObject>(stored.map((row) => [row.routeId, routeContent(row)]));
  for (const { allowed_sources: declared, ...route } of routes) {
    after.set(route.route_id, route);
    sources.set(route.route_id, declared);
  }
  return publishedRoutes([...after.values()], sources);
}
