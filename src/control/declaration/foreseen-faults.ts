/**
 * Finds, in memory, what would make the steps of a declaration fail: the faults of what is declared, and what the site as a
 * whole would break. What depends on other sites, keys, states of sources or verifiers is checked when the steps run.
 */

import { BUNDLE_FORMAT } from '../../bundle/format/bundle-limits.ts';
import { isJsonObject, type JsonObject } from '../../protocol/strict-json.ts';
import { rejectFaultySubject } from '../configuration/clients.ts';
import type { SiteDeclaration } from '../contract/declaration-contract.ts';
import { ApiProblem } from '../domain/api-problem.ts';
import { isPossibleSubject } from '../enrollment/policies.ts';
import { createPolicyCheck } from '../publishing/site-check.ts';
import { routeContent } from '../publishing/stored-site-content.ts';
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
  prune: boolean,
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
    await checkPolicy(policyAfter(declaration, current, prune));
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

/** The site's bundle content after the steps, with one client and without what a declaration does not name. */
function policyAfter(declaration: SiteDeclaration, current: CurrentSite, prune: boolean): JsonObject {
  const { site } = declaration;
  const skewSeconds = site.skew_seconds ?? current.site?.skewSeconds;
  return {
    format: BUNDLE_FORMAT,
    auth_site: site.site_id,
    ...(skewSeconds === undefined ? {} : { skew_seconds: skewSeconds }),
    origins: site.origins,
    single_verifier: site.single_verifier ?? current.site?.singleVerifier === 1,
    trust_anchor_sources: [],
    issuers: brokersAfter(declaration, current, prune),
    clients: oneClient(declaration, current),
    ...routesAfter(declaration, current, prune),
  };
}

function brokersAfter({ brokers = [] }: SiteDeclaration, current: CurrentSite, prune: boolean) {
  const declared = brokers.map(({ url: _, keys = [], ...members }) => {
    const held = current.brokers.get(brokerName(members.issuer, members.trust_domain));
    return { ...members, keys: held === undefined ? keys : definitionOf(held.definition).keys };
  });
  const names = new Set(brokers.map((each) => brokerName(each.issuer, each.trust_domain)));
  const others = prune ? [] : [...current.brokers].filter(([name]) => !names.has(name));
  const all = [...declared, ...others.map(([, { definition }]) => definitionOf(definition))];
  return all.filter(({ keys }) => Array.isArray(keys) && keys.length > 0);
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

function routesAfter({ routes = [] }: SiteDeclaration, current: CurrentSite, prune: boolean) {
  const declared = routes.map(({ allowed_sources: sources, ...route }) => ({ route, sources }));
  const names = new Set(routes.map(({ route_id: id }) => id));
  const others = prune ? [] : [...current.routes.values()].filter(({ routeId }) => !names.has(routeId));
  const kept = others.flatMap((row) => {
    const held = current.routeSources.get(row.routeId);
    return held === undefined ? [] : [{ route: routeContent(row), sources: parsed(held.allowedSources) }];
  });
  const all = [...declared, ...kept];
  return {
    routes: all.map(({ route }) => route),
    route_sources: all.map(({ route, sources }) => ({
      route_id: isJsonObject(route) ? route.route_id : undefined,
      allowed_sources: sources,
    })),
  };
}

function parsed(text: string): unknown {
  return JSON.parse(text);
}
