/** Patches of the rbac filter that other patches put behind the check, so that nothing passes without a decision. */
import type { HttpFilter, Resource } from './gateway.ts';
import { targetOf } from './json-patch.ts';
import { requiresDecision } from './rbac.ts';
import { mayBe, typed } from './read-filters.ts';
import type { View } from './view.ts';

export function isDecision({ kind, settings }: HttpFilter): boolean {
  return kind === 'rbac' && requiresDecision(settings);
}

/** @param names of such filters */
export function decisionRemovals({ kind, spec }: Resource, names: ReadonlySet<string>): readonly View[] {
  if (kind === 'EnvoyFilter')
    return spec.list('config_patches').flatMap((entry) => istioRemoval(entry, names));
  if (kind !== 'EnvoyPatchPolicy') return [];
  return spec.list('json_patches').flatMap((entry) => jsonRemoval(entry, names));
}

function istioRemoval(entry: View, names: ReadonlySet<string>): readonly View[] {
  const operation = entry.at('patch', 'operation');
  const value = entry.at('patch', 'value');
  const filter = entry.at('match', 'listener', 'filter_chain', 'filter', 'sub_filter', 'name')?.text ?? '';
  if (operation === undefined || !names.has(filter)) return [];
  const settings = typed(value?.get('typed_config'))?.settings;
  const isChanged = (settings?.members() ?? []).some(({ name }) => name !== '@type');
  const isGone =
    operation.text === 'REMOVE' ||
    (operation.text === 'REPLACE' && !requiresDecision(settings)) ||
    (operation.text === 'MERGE' && (isChanged || mayBe(value?.get('disabled'))));
  return isGone ? [operation] : [];
}

/** By its name; patches by index may be for the check as well, and count as such. */
function jsonRemoval(entry: View, names: ReadonlySet<string>): readonly View[] {
  const operation = entry.get('operation');
  const op = operation?.get('op');
  if (operation === undefined || op?.text !== 'remove') return [];
  const [, , name = ''] =
    /@\.name\s*==\s*(['"])([^'"]*)\1/.exec(targetOf(operation, 'path').filter ?? '') ?? [];
  return names.has(name) ? [op] : [];
}
