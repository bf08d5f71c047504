/** Envoy Gateway's check is off until a route switches it on: patches that take this away, or put in routes that do not. */
import { isSelector, type PatchTarget, targetOf } from './json-patch.ts';
import { everyMapping, snakeCase, type View } from './view.ts';

const PER_FILTER = 'typed_per_filter_config';
const CHECK = 'ext_authz';

/** @param entry of EnvoyPatchPolicy's `jsonPatches` */
export function switchRemovals(entry: View): readonly View[] {
  const operation = entry.get('operation');
  const op = operation?.get('op');
  if (operation === undefined || op === undefined) return [];
  const target = targetOf(operation, 'path');
  const value = operation.get('value');
  switch (op.text) {
    case 'remove':
      return isSwitch(target) ? [op] : [];
    case 'move':
      return isSwitch(target) || isSwitch(targetOf(operation, 'from')) ? [op] : [];
    case 'copy':
      return isSwitch(target) && !isSwitch(targetOf(operation, 'from')) ? [op] : [];
    case 'add':
    case 'replace':
      if (isSwitch(target)) return isSwitchingOn(value, target) ? [] : [op];
      return value === undefined || !isOfRoutes(entry) ? [] : unswitchedRoutes(value);
    default:
      return [];
  }
}

/** The entry of the check, or all entries. */
function isSwitch({ filter, members }: PatchTarget): boolean {
  const at = members.findLastIndex((member) => snakeCase(member) === PER_FILTER);
  const [name, ...more] = members.slice(at + 1);
  if (filter !== undefined || more.length > 0) return false;
  if (name === undefined) return at !== -1;
  return name.includes(CHECK) || (at !== -1 && (name === '*' || isSelector(name)));
}

/** Whether what is put there is the check's; that it is not `disabled` is for another rule. */
function isSwitchingOn(value: View | undefined, { members }: PatchTarget): boolean {
  if (value === undefined) return false;
  if (snakeCase(members.at(-1) ?? '') === PER_FILTER) return hasEntry(value);
  return everyMapping([value]).some((view) => /\.ExtAuthzPerRoute$/.test(view.named('@type')?.text ?? ''));
}

function hasEntry(entries: View | undefined): boolean {
  return entries?.members().some(({ name }) => name.includes(CHECK)) ?? false;
}

function isOfRoutes(entry: View): boolean {
  return /\.RouteConfiguration$/.test(entry.get('type')?.text ?? '.RouteConfiguration');
}

/** Routes that forward, in a route, a virtual host, a route configuration, or a list of these. */
function unswitchedRoutes(value: View): readonly View[] {
  if (!value.isMapping) return value.items().flatMap(unswitchedRoutes);
  if (hasEntry(value.get(PER_FILTER))) return [];
  const within = [...value.list('virtual_hosts'), ...value.list('routes')].flatMap(unswitchedRoutes);
  const isRoute = value.get('match') !== undefined && value.get('route') !== undefined;
  return isRoute ? [value] : within;
}
