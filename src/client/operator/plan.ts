/**
 * Plans the steps from Control's current configuration to a site file. Pure: `apply.ts` applies the steps, `--dry-run` shows
 * them. Every step changes something, so a second run has none.
 */
import { isJsonObject, type JsonObject } from '../../protocol/strict-json.ts';
import {
  brokerName,
  type CurrentSite,
  type Records,
  type SiteBroker,
  type SiteClient,
  type SiteFile,
  type SitePolicy,
  type SiteRoute,
  type SiteSource,
} from './site-file.ts';

type StepKind =
  | 'environment'
  | 'fleet'
  | 'site'
  | 'broker'
  | 'client'
  | 'grant'
  | 'route'
  | 'route_sources'
  | 'source'
  | 'enrollment_policy'
  | 'target';

export interface PlanStep {
  readonly verb: 'create' | 'change' | 'remove' | 'activate';
  readonly kind: StepKind;
  /** Display name. */
  readonly name: string;
  /** The changes, one line each. */
  readonly changes: readonly string[];
}

export interface PlanOptions {
  /** Whether to delete brokers, clients, routes and enrollment policies that the file omits. Omitted grants are always deleted. */
  readonly prune: boolean;
}

/** In the order in which they must be applied. */
export function planSite(file: SiteFile, current: CurrentSite, { prune }: PlanOptions): readonly PlanStep[] {
  return [
    ...planHierarchy(file, current),
    // Deletions first: a new route may have the path of a deleted one.
    ...(prune ? planRemovals(file, current) : []),
    ...(file.brokers ?? []).flatMap((broker) => planBroker(broker, current)),
    ...(file.clients ?? []).flatMap((client) => planClient(client, current)),
    ...(file.routes ?? []).flatMap((route) => planRoute(route, current)),
    ...(file.sources ?? []).flatMap((source) => planSource(source, current)),
    ...(file.enrollment_policies ?? []).flatMap((policy) => planPolicy(policy, file, current)),
    // Last: a source becomes active when every target has acknowledged it, and a new target may not run yet.
    ...(file.targets ?? [])
      .filter((name) => !current.targets.has(name))
      .map((name) => step('create', 'target', name)),
  ];
}

function step(
  verb: PlanStep['verb'],
  kind: StepKind,
  name: string,
  changes: readonly string[] = [],
): PlanStep {
  return { verb, kind, name, changes };
}

/** Steps that create missing objects and change those that differ. */
function difference(
  kind: StepKind,
  name: string,
  declared: JsonObject,
  current: JsonObject | undefined,
  fields: readonly string[],
  mode: 'declared' | 'exact',
): readonly PlanStep[] {
  if (current === undefined) return [step('create', kind, name)];
  const changes = differences(declared, current, fields, mode).map(describeDifference);
  return changes.length === 0 ? [] : [step('change', kind, name, changes)];
}

/** Members of an existing site that can change. */
export const SITE_FIELDS = [
  'display_name',
  'origins',
  'skew_seconds',
  'single_verifier',
  'bundle_lifetime_seconds',
  'source_capacity',
] as const;

function planHierarchy({ environment, fleet, site }: SiteFile, current: CurrentSite): readonly PlanStep[] {
  return [
    ...(current.environmentId === undefined ? [step('create', 'environment', environment)] : []),
    ...(current.fleetId === undefined ? [step('create', 'fleet', fleet)] : []),
    ...difference('site', site.site_id, site, current.site, SITE_FIELDS, 'declared'),
  ];
}

/**
 * Compared completely, except keys: a restriction that was removed from the file must be removed. `plan-checks.ts` rejects
 * other keys.
 */
function planBroker(broker: SiteBroker, { brokers }: CurrentSite): readonly PlanStep[] {
  const name = brokerName(broker);
  const held = brokers.get(name);
  const definition = isJsonObject(held?.definition) ? held.definition : {};
  const current = held && { ...definition, url: held.url };
  const { issuer: _, ...declared } = broker;
  const members = [...Object.keys(declared), ...Object.keys(current ?? {})];
  const fields = [...new Set(members)].filter((member) => member !== 'keys');
  return difference('broker', name, declared, current, fields, 'exact');
}

export const CLIENT_FIELDS = ['subject', 'context'] as const;

function planClient(client: SiteClient, current: CurrentSite): readonly PlanStep[] {
  const id = client.client_id;
  const declared = { ...client, context: client.context ?? {} };
  const held = current.grants.get(id) ?? new Map<string, string>();
  const wanted = new Map((client.grants ?? []).map(({ resource, access }) => [resource, access]));
  return [
    ...difference('client', id, declared, current.clients.get(id), CLIENT_FIELDS, 'exact'),
    ...[...wanted]
      .filter(([resource, access]) => held.get(resource) !== access)
      .map(([resource, access]) =>
        step(held.has(resource) ? 'change' : 'create', 'grant', `${id} ${resource}`, [
          `access: ${held.get(resource) ?? '(none)'} -> ${access}`,
        ]),
      ),
    ...[...held.keys()]
      .filter((resource) => !wanted.has(resource))
      .map((resource) => step('remove', 'grant', `${id} ${resource}`)),
  ];
}

export const ROUTE_FIELDS = [
  'method',
  'path_template',
  'audience',
  'freshness_class',
  'max_staleness_seconds',
  'resource',
  'access',
  'origins',
  'signed_headers',
  'body',
  'upgrade',
  'required_provenance',
  'required_context',
  'passport_header',
  'forward_authorization',
] as const;

function planRoute(route: SiteRoute, { routes, routeSources }: CurrentSite): readonly PlanStep[] {
  const id = route.route_id;
  const sources = routeSources.get(id)?.allowed_sources;
  return [
    ...difference('route', id, route, routes.get(id), ROUTE_FIELDS, 'exact'),
    ...(isSame(sources, route.allowed_sources)
      ? []
      : [step(sources === undefined ? 'create' : 'change', 'route_sources', id)]),
  ];
}

/** Members whose change needs a new revision of a source. */
export const SOURCE_REVISION_FIELDS = ['issuer', 'jwks_uri', 'audience'] as const;
export const SOURCE_FIELDS = ['on_suspend', 'on_retire'] as const;

function planSource(source: SiteSource, { sources }: CurrentSite): readonly PlanStep[] {
  const current = sources.get(source.name);
  if (current === undefined)
    return [step('create', 'source', source.name), step('activate', 'source', source.name)];
  const revision = newestRevision(current);
  const changes = [
    ...differences(source, current, SOURCE_FIELDS, 'declared'),
    ...differences(source, revision ?? {}, SOURCE_REVISION_FIELDS, 'declared'),
  ].map(describeDifference);
  // Wait for a revision that is being activated: later steps are bound to the active revision.
  const isSettled = revision?.state === 'active' || revision?.state === 'suspended';
  const needsRevision = changes.some((line) =>
    SOURCE_REVISION_FIELDS.some((field) => line.startsWith(`${field}:`)),
  );
  return [
    ...(changes.length === 0 ? [] : [step('change', 'source', source.name, changes)]),
    ...(isSettled && !needsRevision ? [] : [step('activate', 'source', source.name)]),
  ];
}

/** The newest revision that is not retired. */
export function newestRevision(source: JsonObject): JsonObject | undefined {
  const revisions = Array.isArray(source.revisions) ? (source.revisions as readonly JsonObject[]) : [];
  return revisions
    .filter(({ state }) => state !== 'retired')
    .reduce<JsonObject | undefined>(
      (newest, each) =>
        newest === undefined || Number(each.revision) > Number(newest.revision) ? each : newest,
      undefined,
    );
}

/** Members of an existing policy that can change. */
export const POLICY_FIELDS = ['approval', 'max_key_lifetime_seconds', 'max_keys_per_token'] as const;

function planPolicy(policy: SitePolicy, file: SiteFile, current: CurrentSite): readonly PlanStep[] {
  const held = current.policies.get(policy.name);
  const steps = difference('enrollment_policy', policy.name, policy, held, POLICY_FIELDS, 'declared');
  if (held === undefined || steps.length > 0) return steps;
  const source = current.sources.get(policy.source);
  const revision = source && newestRevision(source);
  const willMove = file.sources?.some(
    (each) =>
      each.name === policy.source && planSource(each, current).some(({ verb }) => verb === 'activate'),
  );
  if (!willMove && revision?.revision === held.source_revision) return [];
  return [step('change', 'enrollment_policy', policy.name, ['source_revision: to the active one'])];
}

function planRemovals(file: SiteFile, current: CurrentSite): readonly PlanStep[] {
  const gone = (kind: StepKind, records: Records, kept: readonly string[]) =>
    [...records.keys()].filter((name) => !kept.includes(name)).map((name) => step('remove', kind, name));
  return [
    ...gone(
      'enrollment_policy',
      current.policies,
      (file.enrollment_policies ?? []).map(({ name }) => name),
    ),
    ...gone(
      'route',
      current.routes,
      (file.routes ?? []).map(({ route_id }) => route_id),
    ),
    ...gone(
      'client',
      current.clients,
      (file.clients ?? []).map(({ client_id }) => client_id),
    ),
    ...gone('broker', current.brokers, (file.brokers ?? []).map(brokerName)),
  ];
}

/** Compares a declaration with Control's configuration, field by field. */

interface FieldDifference {
  readonly field: string;
  /** Undefined when absent. */
  readonly from: unknown;
  readonly to: unknown;
}

/**
 * The fields that differ from Control's configuration.
 * @param fields the fields to compare. With `exact`, a field that the declaration omits differs when Control has a value:
 *   a restriction that was removed from the file must be removed
 */
function differences(
  declared: JsonObject,
  current: JsonObject,
  fields: readonly string[],
  mode: 'declared' | 'exact',
): readonly FieldDifference[] {
  return fields
    .filter((field) => mode === 'exact' || declared[field] !== undefined)
    .map((field) => ({ field, from: current[field], to: declared[field] }))
    .filter(({ from, to }) => !isSame(from, to));
}

/** Whether two JSON values are equal. The order of members does not matter; null counts as absent. */
export function isSame(one: unknown, other: unknown): boolean {
  return canonicalText(one) === canonicalText(other);
}

function canonicalText(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalText).join(',')}]`;
  if (!isJsonObject(value)) return JSON.stringify(value ?? null);
  const members = Object.entries(value)
    .filter(([, member]) => member !== undefined && member !== null)
    .map(([name, member]) => `${JSON.stringify(name)}:${canonicalText(member)}`);
  return `{${members.sort().join(',')}}`;
}

/** Formats a difference as one line: `skew_seconds: 5 -> 10`. */
function describeDifference({ field, from, to }: FieldDifference): string {
  return `${field}: ${show(from)} -> ${show(to)}`;
}

function show(value: unknown): string {
  return value === undefined || value === null ? '(none)' : JSON.stringify(value);
}
