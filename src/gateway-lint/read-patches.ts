/** Envoy configuration that Istio's EnvoyFilter and Envoy Gateway's EnvoyPatchPolicy put into generated one. */
import type { Gateway, HttpFilter, Resource, Settings } from './gateway.ts';
import { isCheck, isManager, kindOfType, mayBe, readHttpFilter, typed } from './read-filters.ts';
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
  /** The value below the members that its path names. */
  readonly placed: View;
  readonly isBehindCheck: boolean;
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
  return {
    checks: [...settingsOf(isCheck), ...loose],
    managers: [...settingsOf(isManager), ...loose],
    routeParts: everyMapping(patches.map(({ placed }) => placed)),
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
  return [{ value, placed: value, isWhole: !(operation?.isOneOf('MERGE') ?? false), isBehindCheck }];
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
  return [{ value, placed: value.below(names), isWhole, isBehindCheck: false }];
}

/** RFC 6901 section 4. */
function unescapePointer(name: string): string {
  return name.replaceAll('~1', '/').replaceAll('~0', '~');
}

function removalsOf({ kind, spec }: Resource): readonly View[] {
  if (kind === 'EnvoyFilter') return spec.list('config_patches').flatMap(istioRemoval);
  return kind === 'EnvoyPatchPolicy' ? spec.list('json_patches').flatMap(jsonRemoval) : [];
}

function istioRemoval(entry: View): readonly View[] {
  const patch = entry.get('patch');
  const operation = patch?.get('operation');
  const selected = entry.at('match', 'listener', 'filter_chain', 'filter', 'sub_filter', 'name')?.text ?? '';
  const name = patch?.at('value', 'name')?.text ?? selected;
  const disabled = patch?.at('value', 'disabled');
  if (operation?.text === 'REMOVE') return selected.includes(CHECK) ? [operation] : [];
  return name.includes(CHECK) && disabled !== undefined && mayBe(disabled) ? [disabled] : [];
}

/** One that removes the filter, all filters, or switches the filter off. */
function jsonRemoval(entry: View): readonly View[] {
  const operation = entry.get('operation');
  const op = operation?.get('op');
  const value = operation?.get('value');
  const path = operation?.get('path')?.text ?? '';
  const selected = operation?.get('json_path')?.text ?? '';
  if (op === undefined || !`${selected}${path}`.includes(CHECK)) return [];
  if (op.text === 'remove') return /^(?:\/?typed_config)?\/?$/.test(path) ? [op] : [];
  const isSwitch = /(?:^|[./])disabled$/.test(path === '' ? selected : path);
  return isSwitch && value !== undefined && mayBe(value) ? [value] : [];
}
