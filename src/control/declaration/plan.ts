/**
 * Plans the steps from Control's current configuration to a declaration. Each step changes something, so a second plan
 * has no steps. A step runs the operation that an operator would call for it.
 */

import type { JsonObject } from '../../protocol/strict-json.ts';
import { unmatchedView } from '../configuration/sites.ts';
import type {
  DeclarationStep,
  DeclaredBroker,
  DeclaredClient,
  DeclaredOAuthIssuer,
  DeclaredPolicy,
  DeclaredRoute,
  DeclaredSource,
  MemberKind,
  SiteDeclaration,
} from '../contract/declaration-contract.ts';
import type { SiteChange } from '../contract/hierarchy-contract.ts';
import type { BrokerReplacement, RouteDefinition } from '../contract/routes-contract.ts';
import { holdsSlot } from '../domain/source-states.ts';
import { requireRow } from '../resource/change.ts';
import type { RowOf } from '../store/repositories/records.ts';
import { brokerName, type CurrentSite, definitionOf } from './current-site.ts';
import type { RunCall } from './declaration-run.ts';
import { COORDINATES, coordinateChanges, describe, differences, isEqual, pick } from './differences.ts';

/** Plain data, because a step is planned in one thread and runs in another. */
export interface PlannedStep extends DeclarationStep {
  readonly call: RunCall;
}

/** Kinds of members that a declaration can remove with `prune`. */
type PrunedKind = 'enrollment_policy' | 'route' | 'client' | 'broker' | 'oauth_issuer' | 'source';

/** The permission that the operations of each kind require. */
const PERMISSIONS: { readonly [K in MemberKind]: DeclarationStep['permission'] } = {
  environment: 'administer',
  fleet: 'administer',
  site: 'administer',
  broker: 'administer',
  oauth_issuer: 'administer',
  client: 'operate',
  grant: 'operate',
  route: 'operate',
  route_sources: 'operate',
  source: 'operate',
  enrollment_policy: 'operate',
  target: 'administer',
};

/** In the order in which they are applied. @param pruned members to remove */
export function planSite(
  declaration: SiteDeclaration,
  current: CurrentSite,
  pruned: readonly UnnamedMember[],
): readonly PlannedStep[] {
  const { brokers = [], clients = [], routes = [], sources = [] } = declaration;
  const { enrollment_policies: policies = [], oauth_issuers: servers = [], targets = [] } = declaration;
  const declaredSources = new Map(sources.map((source) => [source.name, source]));
  return [
    ...planHierarchy(declaration, current),
    // Removals first: a new route may have the path of a removed one.
    ...planRemovals(pruned, current),
    ...brokers.flatMap((broker) => planBroker(broker, current)),
    ...servers.flatMap((server) => planOAuthIssuer(server, current)),
    ...clients.flatMap((client) => planClient(client, current)),
    ...routes.flatMap((route) => planRoute(route, current)),
    ...sources.flatMap((source) => planSource(source, current)),
    ...policies.flatMap((policy) => planPolicy(policy, current, declaredSources.get(policy.source))),
    ...targets
      .filter((name) => !current.targets.has(name))
      .map((name) => step('create', 'target', name, [], ['createTarget', name])),
  ];
}

export interface UnnamedMember {
  readonly kind: PrunedKind | 'target';
  readonly name: string;
}

/** Members that the declaration could name but does not. */
export function unnamedMembers(declaration: SiteDeclaration, current: CurrentSite): readonly UnnamedMember[] {
  const names = declaredNames(declaration);
  const rest = (kind: keyof typeof names, records: ReadonlyMap<string, unknown>) =>
    [...records.keys()].filter((name) => !names[kind].has(name)).map((name) => ({ kind, name }));
  return [
    ...rest('enrollment_policy', current.policies),
    ...rest('route', current.routes),
    ...rest('client', current.clients),
    ...rest('broker', current.brokers),
    ...rest('oauth_issuer', current.oauthIssuers),
    ...rest('source', current.sources),
    ...rest('target', current.targets),
  ];
}

function declaredNames(declaration: SiteDeclaration) {
  const { brokers, clients, routes, sources, enrollment_policies: policies, targets } = declaration;
  return {
    oauth_issuer: new Set(declaration.oauth_issuers?.map(({ issuer }) => issuer)),
    broker: new Set(brokers?.map((each) => brokerName(each.issuer, each.trust_domain))),
    client: new Set(clients?.map(({ client_id: id }) => id)),
    route: new Set(routes?.map(({ route_id: id }) => id)),
    source: new Set(sources?.map(({ name }) => name)),
    enrollment_policy: new Set(policies?.map(({ name }) => name)),
    target: new Set(targets),
  };
}

/** Targets are never removed: detaching one cuts off a verifier that may be running. */
function planRemovals(pruned: readonly UnnamedMember[], current: CurrentSite): readonly PlannedStep[] {
  return pruned.flatMap(({ kind, name }) =>
    kind === 'target' ? [] : [step('remove', kind, name, [], removal(kind, name, current))],
  );
}

function removal(kind: PrunedKind, name: string, current: CurrentSite): RunCall {
  switch (kind) {
    case 'enrollment_policy':
      return ['removePolicy', requireRow(current.policies.get(name))];
    case 'route':
      return ['removeRoute', requireRow(current.routes.get(name))];
    case 'client':
      return ['removeClient', requireRow(current.clients.get(name))];
    case 'broker':
      return ['removeBroker', requireRow(current.brokers.get(name))];
    case 'oauth_issuer':
      return ['removeOAuthIssuer', requireRow(current.oauthIssuers.get(name))];
    case 'source':
      return ['removeSource', requireRow(current.sources.get(name))];
  }
}

function step(
  verb: DeclarationStep['verb'],
  kind: MemberKind,
  name: string,
  changes: readonly string[],
  call: RunCall,
): PlannedStep {
  return { verb, kind, name, changes: [...changes], permission: PERMISSIONS[kind], call };
}

type DeclaredSite = SiteDeclaration['site'];

/** Members of an existing site that can change. */
const SITE_FIELDS = [
  'display_name',
  'origins',
  'skew_seconds',
  'single_verifier',
  'bundle_lifetime_seconds',
  'source_capacity',
  'replay_stores',
] as const;

function planHierarchy(declaration: SiteDeclaration, current: CurrentSite): readonly PlannedStep[] {
  const { environment, fleet, site } = declaration;
  const above = [
    ...(current.environmentId === undefined
      ? [step('create', 'environment', environment, [], ['createEnvironment', environment])]
      : []),
    ...(current.fleetId === undefined ? [step('create', 'fleet', fleet, [], ['createFleet', fleet])] : []),
  ];
  if (current.site === undefined) {
    return [...above, step('create', 'site', site.site_id, [], ['createSite', site])];
  }
  const { version } = current.site;
  const changes = [
    ...differences(site, siteMembers(current.site), SITE_FIELDS, 'declared'),
    ...unmatchedChanges(site, current.site),
  ];
  if (changes.length === 0) return above;
  const call: RunCall = ['changeSite', version, siteChange(site, current.site)];
  return [...above, step('change', 'site', site.site_id, changes.map(describe), call)];
}

/** Compared completely: an observation that the declaration leaves out ends. */
function unmatchedChanges({ unmatched = 'deny', unmatched_until }: DeclaredSite, row: RowOf<'site'>) {
  return differences(
    { unmatched, unmatched_until },
    unmatchedView(row),
    ['unmatched', 'unmatched_until'],
    'exact',
  );
}

function siteChange(site: DeclaredSite, row: RowOf<'site'>): SiteChange {
  const { unmatched = 'deny', unmatched_until: until } = site;
  const isChanged = unmatchedChanges(site, row).length > 0;
  return {
    ...pick(site, SITE_FIELDS),
    ...(isChanged && { unmatched, ...(until !== undefined && { unmatched_until: until }) }),
  };
}

function siteMembers(row: RowOf<'site'>): JsonObject {
  return {
    display_name: row.displayName,
    origins: JSON.parse(row.origins),
    skew_seconds: row.skewSeconds,
    single_verifier: row.singleVerifier === 1,
    bundle_lifetime_seconds: row.bundleLifetimeSeconds,
    source_capacity: row.sourceCapacity,
    replay_stores: row.replayStores,
  };
}

/** Compared completely, except keys: a restriction that was removed must be removed. `plan-checks.ts` rejects other keys. */
function planBroker(broker: DeclaredBroker, { brokers }: CurrentSite): readonly PlannedStep[] {
  const { issuer, url, keys, ...members } = broker;
  const name = brokerName(issuer, broker.trust_domain);
  const held = brokers.get(name);
  const put = (version: number | undefined, pinned: unknown): RunCall => {
    const replacement = { definition: { ...members, keys: pinned }, ...(url === undefined ? {} : { url }) };
    return ['putBroker', issuer, broker.trust_domain, version, replacement as BrokerReplacement];
  };
  if (held === undefined) return [step('create', 'broker', name, [], put(undefined, keys ?? []))];
  const { issuer: _, keys: pinned, ...definition } = definitionOf(held.definition);
  const current = { ...definition, url: held.url };
  const declared = { ...members, url };
  const fields = [...new Set([...Object.keys(declared), ...Object.keys(current)])];
  const changes = differences(declared, current, fields, 'exact').map(describe);
  if (changes.length === 0) return [];
  return [step('change', 'broker', name, changes, put(held.version, pinned))];
}

/** Compared completely: a restriction that was removed must be removed. */
function planOAuthIssuer(
  { issuer, ...definition }: DeclaredOAuthIssuer,
  { oauthIssuers }: CurrentSite,
): readonly PlannedStep[] {
  const held = oauthIssuers.get(issuer);
  const put: RunCall = ['putOAuthIssuer', issuer, held?.version, definition];
  if (held === undefined) return [step('create', 'oauth_issuer', issuer, [], put)];
  const current = definitionOf(held.definition);
  const fields = [...new Set([...Object.keys(definition), ...Object.keys(current)])];
  const changes = differences({ ...definition }, current, fields, 'exact').map(describe);
  return changes.length === 0 ? [] : [step('change', 'oauth_issuer', issuer, changes, put)];
}

function planClient(client: DeclaredClient, current: CurrentSite): readonly PlannedStep[] {
  const { client_id: id, subject, context = {}, grants = [] } = client;
  const row = current.clients.get(id);
  const held = current.grants.get(id) ?? new Map<string, RowOf<'clientGrant'>>();
  const wanted = new Map(grants.map(({ resource, access }) => [resource, access]));
  return [
    ...planClientItself({ id, subject, context }, row),
    ...[...wanted].flatMap(([resource, access]) => {
      const before = held.get(resource);
      if (before?.access === access) return [];
      const change = `access: ${before?.access ?? '(none)'} -> ${access}`;
      const [verb, call]: readonly ['create' | 'change', RunCall] =
        before === undefined
          ? ['create', ['createGrant', id, resource, access]]
          : ['change', ['changeGrant', before, access]];
      return [step(verb, 'grant', `${id} ${resource}`, [change], call)];
    }),
    ...[...held.values()]
      .filter(({ resource }) => !wanted.has(resource))
      .map((grant) => step('remove', 'grant', `${id} ${grant.resource}`, [], ['removeGrant', grant])),
  ];
}

function planClientItself(
  {
    id,
    ...declared
  }: { readonly id: string; readonly subject: string; readonly context: { [name: string]: string } },
  row: RowOf<'client'> | undefined,
): readonly PlannedStep[] {
  if (row === undefined) {
    return [step('create', 'client', id, [], ['createClient', { client_id: id, ...declared }])];
  }
  const current = { subject: row.subject, context: definitionOf(row.context) };
  const changes = differences(declared, current, ['subject', 'context'], 'exact').map(describe);
  if (changes.length === 0) return [];
  return [step('change', 'client', id, changes, ['changeClient', { row, ...declared }])];
}

function planRoute(route: DeclaredRoute, { routes, routeSources }: CurrentSite): readonly PlannedStep[] {
  const { route_id: id, allowed_sources: sources, ...definition } = route;
  const held = routeSources.get(id);
  const isSame = held !== undefined && isEqual(JSON.parse(held.allowedSources), sources);
  const put: RunCall =
    held === undefined ? ['createRouteSources', id, sources] : ['changeRouteSources', { row: held, sources }];
  return [
    ...planRouteItself(id, definition, routes.get(id)),
    ...(isSame ? [] : [step(held === undefined ? 'create' : 'change', 'route_sources', id, [], put)]),
  ];
}

function planRouteItself(
  id: string,
  definition: RouteDefinition,
  row: RowOf<'route'> | undefined,
): readonly PlannedStep[] {
  if (row === undefined) {
    return [step('create', 'route', id, [], ['createRoute', id, definition])];
  }
  const current = definitionOf(row.definition);
  const fields = [...new Set([...Object.keys(definition), ...Object.keys(current)])];
  const changes = differences({ ...definition }, current, fields, 'exact').map(describe);
  if (changes.length === 0) return [];
  return [step('change', 'route', id, changes, ['replaceRoute', { row, definition }])];
}

const SOURCE_FIELDS = ['on_suspend', 'on_retire'] as const;

function planSource(source: DeclaredSource, { sources }: CurrentSite): readonly PlannedStep[] {
  const { name } = source;
  const current = sources.get(name);
  const activate = step('activate', 'source', name, [], ['activateSource', name, source.expected_scope]);
  if (current === undefined) {
    return [step('create', 'source', name, [], ['createSource', source]), activate];
  }
  const { row, compared } = current;
  const settings = { on_suspend: row.onSuspend, on_retire: row.onRetire };
  const settingChanges = differences(source, settings, SOURCE_FIELDS, 'declared');
  const moves = coordinateChanges(source, compared);
  const changes = [...settingChanges, ...moves].map(describe);
  const settled = settingChanges.length === 0 ? undefined : pick(source, SOURCE_FIELDS);
  const coordinates = moves.length === 0 ? undefined : pick(source, COORDINATES);
  const change: RunCall = ['changeSource', current, { settings: settled, coordinates }];
  return [
    ...(changes.length === 0 ? [] : [step('change', 'source', name, changes, change)]),
    // A revision that holds the slot is active, will be, or an operator has suspended it.
    ...(holdsSlot(compared.state) && moves.length === 0 ? [] : [activate]),
  ];
}

/** Whether the source gets another revision: a draft is edited instead. */
function getsRevision(source: DeclaredSource, row: RowOf<'sourceRevision'>): boolean {
  return holdsSlot(row.state) && coordinateChanges(source, row).length > 0;
}

/** Members of an existing policy that can change. */
const POLICY_FIELDS = ['approval', 'max_key_lifetime_seconds', 'max_keys_per_token'] as const;

function planPolicy(
  policy: DeclaredPolicy,
  current: CurrentSite,
  source: DeclaredSource | undefined,
): readonly PlannedStep[] {
  const { name } = policy;
  const held = current.policies.get(name);
  if (held === undefined) {
    const create: RunCall = ['createPolicy', policy, source?.issuer ?? ''];
    return [step('create', 'enrollment_policy', name, [], create)];
  }
  const members = {
    approval: held.approval,
    max_key_lifetime_seconds: held.maxKeyLifetimeSeconds,
    max_keys_per_token: held.maxKeysPerToken,
  };
  const compared = current.sources.get(policy.source)?.compared;
  const bound = held.nextSourceRevision ?? held.sourceRevision;
  const moves = compared !== undefined && source !== undefined && getsRevision(source, compared);
  const isBound = bound === compared?.revision && !moves;
  const changes = [
    ...differences(policy, members, POLICY_FIELDS, 'declared').map(describe),
    ...(isBound ? [] : ['source_revision: to the declared one, when it is active']),
  ];
  if (changes.length === 0) return [];
  const change: RunCall = ['changePolicy', held, policy.source, pick(policy, POLICY_FIELDS)];
  return [step('change', 'enrollment_policy', name, changes, change)];
}
