/** Envoy configuration that Istio's EnvoyFilter and Envoy Gateway's EnvoyPatchPolicy put into generated one. */
import { decisionRemovals, isDecision } from './decision-removals.ts';
import type { Gateway, Resource, Settings } from './gateway.ts';
import { isBeforeCheck, type PatchTarget, targetOf } from './json-patch.ts';
import { patchedListeners } from './patched-listeners.ts';
import { isCheck, isManager, kindOfType, readHttpFilter, typed } from './read-filters.ts';
import { removalsOf } from './removals.ts';
import { everyMapping, type View } from './view.ts';

export type Patched = Pick<
  Gateway,
  | 'listeners'
  | 'checks'
  | 'managers'
  | 'routeParts'
  | 'clusters'
  | 'insertedFilters'
  | 'upstreamFilters'
  | 'removals'
  | 'decisionRemovals'
>;

/** One change, as both kinds say it. */
interface Patch {
  /** For whole objects that are put in; settings that are merged into others are not whole. */
  readonly isWhole: boolean;
  readonly value: View;
  /** The value below the members that its path names. */
  readonly placed: View;
  readonly isBehindCheck: boolean;
  /** Its filters are behind all others. */
  readonly isOfCluster: boolean;
}

export function readPatches(resources: readonly Resource[]): Patched {
  const patches = resources.flatMap(patchesOf);
  const typedViews = patches.flatMap((patch) =>
    everyMapping([patch.placed]).flatMap((view) => {
      const message = typed(view);
      return message === undefined ? [] : [{ message, patch }];
    }),
  );
  const settingsOf = (is: typeof isCheck): readonly Settings[] =>
    typedViews
      .filter(({ message }) => is(message))
      .map(({ message, patch }) => ({ view: message.settings, isWhole: patch.isWhole }));
  const untyped = patches.filter(({ value, isWhole }) => !isWhole && typed(value) === undefined);
  const pieces = untyped
    .flatMap(({ placed }) => everyMapping([placed]))
    .filter((view) => typed(view) === undefined);
  const loose = pieces.map((view) => ({ view, isWhole: false }));
  const insertedFilters = patches.flatMap(insertedFilter);
  const decisions = new Set(
    insertedFilters.filter(({ filter }) => isDecision(filter)).map(({ filter }) => filter.name),
  );
  return {
    listeners: resources.flatMap(patchedListeners),
    checks: [...settingsOf(isCheck), ...loose],
    managers: [...settingsOf(isManager), ...loose],
    routeParts: everyMapping(patches.map(({ placed }) => placed)),
    clusters: [
      ...typedViews
        .filter(({ message }) => /\.Cluster$/.test(message.type))
        .map(({ message }) => message.settings),
      ...patches.filter(isClusterSettings).map(({ placed }) => placed),
    ],
    insertedFilters,
    upstreamFilters: everyMapping(patches.map(({ placed }) => placed)).flatMap(upstreamFiltersIn),
    removals: resources.flatMap(removalsOf),
    decisionRemovals: resources.flatMap((resource) => decisionRemovals(resource, decisions)),
  };
}

/** Those of a cluster that are merged into another, or have no type, for what they are says the patch. Named ones that are merged are there already. */
function isClusterSettings({ isOfCluster, isWhole, placed }: Patch): boolean {
  return isOfCluster && typed(placed) === undefined && (isWhole || placed.get('name') === undefined);
}

/** Of a router, or of a cluster's options for HTTP, by whatever names these have. */
function upstreamFiltersIn(view: View): readonly View[] {
  const options = (view.get('typed_extension_protocol_options')?.members() ?? []).map((one) => one.view);
  const own = /\.HttpProtocolOptions$/.test(typed(view)?.type ?? '') ? [view] : [];
  return [
    ...view.list('upstream_http_filters'),
    ...[...options, ...own].flatMap((one) => (typed(one)?.settings ?? one).list('http_filters')),
  ];
}

type Inserted = Gateway['insertedFilters'][number];

function insertedFilter({ isBehindCheck, value }: Patch): readonly Inserted[] {
  const isHttpFilter = (one: View) => {
    const type = typed(one.get('typed_config'))?.type ?? '';
    return /\bhttp\b/.test(type) && kindOfType(type) !== type;
  };
  if (isHttpFilter(value)) return [{ filter: readHttpFilter(value, new Map()), isBehindCheck }];
  const filters = value.items().map((one) => readHttpFilter(one, new Map()));
  const check = filters.findIndex(({ kind }) => kind === CHECK);
  return filters.flatMap((filter, at) =>
    isHttpFilter(filter.entry) ? [{ filter, isBehindCheck: at > check }] : [],
  );
}

function patchesOf({ kind, spec }: Resource): readonly Patch[] {
  if (kind === 'EnvoyFilter') return spec.list('config_patches').flatMap(istioPatch);
  if (kind === 'EnvoyPatchPolicy') return spec.list('json_patches').flatMap(jsonPatch);
  return [];
}

const CHECK = 'ext_authz';

function istioPatch(entry: View): readonly Patch[] {
  const value = entry.at('patch', 'value');
  const operation = entry.at('patch', 'operation');
  if (value === undefined || operation?.text === 'REMOVE') return [];
  const neighbour = entry.at('match', 'listener', 'filter_chain', 'filter', 'sub_filter', 'name')?.text ?? '';
  const isBehindCheck = !isInFront(operation?.text ?? '', neighbour) && operation?.text !== 'MERGE';
  const isOfCluster = entry.get('apply_to')?.text === 'CLUSTER';
  const isWhole = !(operation?.isOneOf('MERGE') ?? false);
  return [{ value, placed: value, isWhole, isBehindCheck, isOfCluster }];
}

/** What Istio puts in front of the check, and the check. */
const FRONT = ['istio.metadata_exchange', 'envoy.filters.http.rbac'];

/** Without a neighbour, INSERT_BEFORE is before all. */
function isInFront(operation: string, neighbour: string): boolean {
  const isBefore = neighbour === '' || FRONT.includes(neighbour) || neighbour.includes(CHECK);
  return (
    operation === 'INSERT_FIRST' ||
    (operation === 'INSERT_BEFORE' && isBefore) ||
    (['INSERT_AFTER', 'REPLACE'].includes(operation) && neighbour === FRONT[0])
  );
}

/** The value, as it would stand below the last `typed_config` of its path. */
function jsonPatch(entry: View): readonly Patch[] {
  const operation = entry.get('operation');
  const value = operation?.get('value');
  if (operation === undefined || value === undefined) return [];
  const target = targetOf(operation, 'path');
  const names = membersOf(target);
  const isWhole = typed(value) !== undefined || typed(value.get('typed_config')) !== undefined;
  const isOfCluster = /\.Cluster$/.test(entry.get('type')?.text ?? '');
  const isBehindCheck = isOfCluster || !isBeforeCheck(target.filter ?? '');
  return [{ value, placed: value.below(names), isWhole, isBehindCheck, isOfCluster }];
}

/** Names below the last `typed_config`, or below what its expression selects. */
function membersOf({ members }: PatchTarget): readonly string[] {
  const selected = members.findLastIndex((member) => member.startsWith('?'));
  return members.slice(Math.max(members.lastIndexOf('typed_config'), selected) + 1);
}
