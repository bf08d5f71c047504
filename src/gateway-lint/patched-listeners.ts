/**
 * Listeners, filter chains and network filters that Istio's EnvoyFilter and Envoy Gateway's EnvoyPatchPolicy put in as wholes. The check
 * of the generated ones is not in them.
 */
import type { Listener, Resource } from './gateway.ts';
import { readListenerAlone } from './read-envoy.ts';
import { isManager, PROXY, typed } from './read-filters.ts';
import type { View } from './view.ts';

export function patchedListeners({ kind, spec }: Resource): readonly Listener[] {
  return valuesOf(kind, spec).flatMap(listenersIn).map(readListenerAlone);
}

function valuesOf(kind: string, spec: View): readonly View[] {
  if (kind === 'EnvoyFilter') return spec.list('config_patches').flatMap(istioValue);
  if (kind !== 'EnvoyPatchPolicy') return [];
  return spec.list('json_patches').flatMap((entry) => entry.at('operation', 'value') ?? []);
}

/** What is put into listeners for what workloads send is out of callers' reach; a listener that is new there may be within it. */
function istioValue(entry: View): readonly View[] {
  const applyTo = entry.get('apply_to')?.text ?? '';
  const operation = entry.at('patch', 'operation')?.text ?? '';
  const value = entry.at('patch', 'value');
  const isForWorkloads = entry.at('match', 'context')?.text === 'SIDECAR_OUTBOUND' && applyTo !== 'LISTENER';
  // Merging adds to lists, such as a listener's chains; of a filter it changes single settings.
  const isMerged = operation === 'MERGE' && !['LISTENER', 'FILTER_CHAIN'].includes(applyTo);
  return value === undefined || operation === 'REMOVE' || isForWorkloads || isMerged ? [] : [value];
}

/** By its form, for a JSON Pointer does not say what is where it points; lists of these too. */
function listenersIn(value: View): readonly View[] {
  if (!value.isMapping) return value.items().flatMap(listenersIn);
  if (CHAIN_LISTS.some((name) => value.get(name) !== undefined)) return [value];
  if (value.get('filters') !== undefined) return [value.below(CHAIN)];
  if (isForwarding(value.get('typed_config'))) return [value.below(FILTER)];
  return isForwarding(value) ? [value.below([...FILTER, 'typed_config'])] : [];
}

const CHAIN_LISTS = ['filter_chains', 'default_filter_chain', 'listener_filters'];
const CHAIN = ['filter_chains', '0'];
const FILTER = [...CHAIN, 'filters', '0'];

function isForwarding(config: View | undefined): boolean {
  const message = config === undefined ? undefined : typed(config);
  return message !== undefined && (isManager(message) || PROXY.test(message.type));
}
