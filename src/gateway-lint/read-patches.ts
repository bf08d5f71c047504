/** Envoy configuration that Istio's EnvoyFilter and Envoy Gateway's EnvoyPatchPolicy put into generated one. */
import type { Gateway, HttpFilter, Resource, Settings } from './gateway.ts';
import { isCheck, isManager, kindOfType, readHttpFilter, typed } from './read-filters.ts';
import { everyMapping, type View } from './view.ts';

export type Patched = Pick<
  Gateway,
  'checks' | 'managers' | 'routeParts' | 'clusters' | 'insertedFilters' | 'removals'
>;

/** One change, as both kinds say it. */
interface Patch {
  /** For whole objects that are put in; settings that are merged into others are not whole. */
  readonly isWhole: boolean;
  readonly value: View;
  readonly isBehindCheck: boolean;
}

export function readPatches(resources: readonly Resource[]): Patched {
  const patches = resources.flatMap(patchesOf);
  const typedViews = patches.flatMap((patch) =>
    everyMapping([patch.value]).flatMap((view) => {
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
    .flatMap(({ value }) => everyMapping([value]))
    .filter((view) => typed(view) === undefined);
  const loose = pieces.map((view) => ({ view, isWhole: false }));
  return {
    checks: [...settingsOf(isCheck), ...loose],
    managers: [...settingsOf(isManager), ...loose],
    routeParts: everyMapping(patches.map(({ value }) => value)),
    clusters: typedViews
      .filter(({ message }) => /\.Cluster$/.test(message.type))
      .map(({ message }) => message.settings),
    insertedFilters: patches.flatMap(insertedFilter),
    removals: resources.flatMap(removalsOf),
  };
}

function insertedFilter({
  isBehindCheck,
  value,
}: Patch): readonly { filter: HttpFilter; isBehindCheck: boolean }[] {
  const message = typed(value.get('typed_config'));
  if (message === undefined || !/\bhttp\b/.test(message.type) || kindOfType(message.type) === message.type)
    return [];
  return [{ filter: readHttpFilter(value, new Map()), isBehindCheck }];
}

function patchesOf({ kind, spec }: Resource): readonly Patch[] {
  if (kind === 'EnvoyFilter') return spec.list('config_patches').flatMap(istioPatch);
  if (kind === 'EnvoyPatchPolicy') return spec.list('json_patches').flatMap(jsonPatch);
  return [];
}

const ROUTER = 'envoy.filters.http.router';
const CHECK = 'ext_authz';

function istioPatch(entry: View): readonly Patch[] {
  const value = entry.at('patch', 'value');
  const operation = entry.at('patch', 'operation');
  if (value === undefined || operation?.text === 'REMOVE') return [];
  const neighbour = entry.at('match', 'listener', 'filter_chain', 'filter', 'sub_filter', 'name')?.text ?? '';
  const isBehindCheck =
    (operation?.isOneOf('INSERT_BEFORE') === true && neighbour === ROUTER) ||
    (operation?.isOneOf('INSERT_AFTER') === true && neighbour.includes(CHECK));
  return [{ value, isWhole: !(operation?.isOneOf('MERGE') ?? false), isBehindCheck }];
}

/** The value, as it would stand below the last `typed_config` of its path. */
function jsonPatch(entry: View): readonly Patch[] {
  const operation = entry.get('operation');
  const value = operation?.get('value');
  if (operation === undefined || value === undefined) return [];
  const [, selected = ''] = /\.(\w+)$/.exec(operation.get('json_path')?.text ?? '') ?? [];
  const path = [selected, ...(operation.get('path')?.text ?? '').split('/')].filter((name) => name !== '');
  const names = path.slice(path.lastIndexOf('typed_config') + 1).map(unescapePointer);
  const isWhole = typed(value) !== undefined || typed(value.get('typed_config')) !== undefined;
  return [{ value: isWhole ? value : value.below(names), isWhole, isBehindCheck: false }];
}

/** RFC 6901 section 4. */
function unescapePointer(name: string): string {
  return name.replaceAll('~1', '/').replaceAll('~0', '~');
}

function removalsOf({ kind, spec }: Resource): readonly View[] {
  if (kind === 'EnvoyFilter') {
    return spec.list('config_patches').flatMap((entry) => {
      const operation = entry.at('patch', 'operation');
      const filter =
        entry.at('match', 'listener', 'filter_chain', 'filter', 'sub_filter', 'name')?.text ?? '';
      return operation?.text === 'REMOVE' && filter.includes(CHECK) ? [operation] : [];
    });
  }
  if (kind !== 'EnvoyPatchPolicy') return [];
  return spec.list('json_patches').flatMap((entry) => {
    const operation = entry.get('operation');
    const op = operation?.get('op');
    const target = operation?.get('json_path')?.text ?? '';
    const isFilter = /(?:^|\/)(?:http_filters|typed_config)?(?:\/\d+)?$/.test(
      operation?.get('path')?.text ?? '',
    );
    return op?.text === 'remove' && isFilter && target.includes(CHECK) ? [op] : [];
  });
}
