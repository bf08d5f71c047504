/** Patches that take the check away: that remove it, put something else in its place, switch it off, or call it otherwise than routes do. */
import type { Resource } from './gateway.ts';
import { isSelector, mayBeCheck, type PatchTarget, targetOf } from './json-patch.ts';
import { isCheck, mayBe, typed } from './read-filters.ts';
import { switchRemovals } from './route-switches.ts';
import { everyMapping, snakeCase, type View } from './view.ts';

export function removalsOf({ kind, spec }: Resource): readonly View[] {
  if (kind === 'EnvoyFilter') {
    return spec
      .list('config_patches')
      .flatMap((entry) => [...istioRemoval(entry), ...writerOverrides(entry)]);
  }
  if (kind !== 'EnvoyPatchPolicy') return [];
  return spec.list('json_patches').flatMap((entry) => [...jsonRemoval(entry), ...switchRemovals(entry)]);
}

const CHECK = 'ext_authz';
/** Istio's check asks about what these have written down. */
const WRITERS = ['envoy.filters.http.rbac', 'envoy.filters.network.rbac'];

function istioRemoval(entry: View): readonly View[] {
  const patch = entry.get('patch');
  const operation = patch?.get('operation');
  const value = patch?.get('value');
  const filter = entry.at('match', 'listener', 'filter_chain', 'filter');
  const isNetwork = entry.get('apply_to')?.text === 'NETWORK_FILTER';
  const selected = (isNetwork ? filter : filter?.get('sub_filter'))?.get('name')?.text ?? '';
  const isWriter = WRITERS.includes(selected) || (selected === '' && isRbac(value));
  if (operation?.text === 'REMOVE') return selected.includes(CHECK) || isWriter ? [operation] : [];
  if (operation?.text === 'REPLACE' && (isWriter || (selected.includes(CHECK) && !holdsCheck(value)))) {
    return [operation];
  }
  if (operation?.text === 'MERGE' && isWriter && changesWriter(value)) return [operation];
  const names = [selected, value?.get('name')?.text ?? ''];
  const disabled = value?.get('disabled');
  const isOff = disabled !== undefined && mayBe(disabled);
  return isOff && (isWriter || names.some((name) => name.includes(CHECK))) ? [disabled] : [];
}

function isRbac(value: View | undefined): boolean {
  return /\.rbac\.v\w+\.RBAC$/.test(typed(value?.get('typed_config'))?.type ?? '');
}

/** Settings that write nothing down. */
const STATISTICS = ['@type', 'rules_stat_prefix', 'track_per_rule_stats'];

function changesWriter(value: View | undefined): boolean {
  const config = value?.get('typed_config');
  const members = (typed(config)?.settings ?? config)?.members() ?? [];
  return members.some(({ name }) => !STATISTICS.includes(snakeCase(name)));
}

/** For single routes and virtual hosts: what stands there instead writes nothing down. */
function writerOverrides(entry: View): readonly View[] {
  const value = entry.at('patch', 'value');
  return everyMapping(value === undefined ? [] : [value]).flatMap((owner) =>
    (owner.get('typed_per_filter_config')?.members() ?? [])
      .filter(({ name }) => WRITERS.includes(name))
      .map(({ view }) => view),
  );
}

function holdsCheck(value: View | undefined): boolean {
  return everyMapping(value === undefined ? [] : [value]).some((view) => {
    const message = typed(view);
    return message !== undefined && isCheck(message);
  });
}

function jsonRemoval(entry: View): readonly View[] {
  const operation = entry.get('operation');
  const op = operation?.get('op');
  const value = operation?.get('value');
  if (operation === undefined || op === undefined) return [];
  const target = targetOf(operation, 'path');
  if (op.text === 'remove') return isFilterItself(target) ? [op] : [];
  if (op.text === 'move') {
    return isFilterItself(target) || isFilterItself(targetOf(operation, 'from')) ? [op] : [];
  }
  if (op.text === 'copy') return isReplaced('add', target) ? [op] : [];
  if (isReplaced(op.text ?? '', target)) {
    const isOther = target.members.length === 0 || target.isList || typed(value) !== undefined;
    return isOther && !holdsCheck(value) ? [op] : [];
  }
  return switchedOff(op, value, target);
}

function ofCheck({ filter }: PatchTarget): boolean {
  return filter !== undefined && mayBeCheck(filter);
}

/** The filter, its settings, or a list in which it is. */
function isFilterItself(target: PatchTarget): boolean {
  const [member, ...more] = target.members.map(snakeCase);
  return (
    target.isList ||
    (ofCheck(target) && more.length === 0 && (member === undefined || member === 'typed_config'))
  );
}

/** What was there is gone: `add` puts elements in, and overwrites members. */
function isReplaced(op: string, target: PatchTarget): boolean {
  const isMember = target.members.length > 0 && !isSelector(target.members.at(-1) ?? '');
  return isFilterItself(target) && (op === 'replace' || (op === 'add' && isMember));
}

function switchedOff(op: View, value: View | undefined, target: PatchTarget): readonly View[] {
  const [member, ...more] = target.members.map(snakeCase);
  const isAny = target.filter === undefined && member === 'disabled';
  if ((!ofCheck(target) && !isAny) || more.length > 0 || value === undefined) return [];
  if (member === 'disabled') return mayBe(value) ? [value] : [];
  return member === 'name' ? [op] : [];
}
