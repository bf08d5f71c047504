/**
 * Envoy Gateway's SecurityPolicies that stand in the way of one with `extAuth`. Of two for the same target one counts, the older one; the one
 * for a part counts there alone. A route's may be merged with its parent's, no other. Source: Envoy Gateway 1.9, SecurityPolicy `mergeType`.
 */
import type { Gateway, Resource } from './gateway.ts';
import {
  checkedTargets,
  gatewayOf,
  isFor,
  isListenerSet,
  isSameNamespace,
  type Target,
  targetsOf,
} from './route-coverage.ts';
import { ofKind } from './settings.ts';

export function overridingPolicies(gateway: Gateway): readonly Resource[] {
  const guarded = checkedTargets(gateway);
  return ofKind(gateway, 'SecurityPolicy')
    .filter(({ spec }) => spec.get('ext_auth') === undefined)
    .filter((policy) => {
      const isMerged = policy.spec.get('merge_type') !== undefined;
      return targetsOf(policy).some((target) =>
        guarded.some(
          (guard) => isWithin(target, guard, gateway) || (!isParent(target) && isParent(guard) && !isMerged),
        ),
      );
    });
}

function isParent({ kind }: Target): boolean {
  return kind === 'Gateway' || isListenerSet(kind);
}

/** The same, or a part of it. */
function isWithin(target: Target, guard: Target, gateway: Gateway): boolean {
  const isPart = guard.section === undefined || guard.section === target.section;
  if (target.kind === guard.kind) return isPart && isSame(target, guard, gateway);
  if (!isListenerSet(target.kind) || guard.kind !== 'Gateway' || guard.section !== undefined) return false;
  const [known] = ofKind(gateway, target.kind).filter((one) => isFor(target, one));
  const parent = known === undefined ? undefined : gatewayOf(known);
  return parent === undefined || isSame({ ...guard, ...parent }, guard, gateway);
}

/** Selectors are held against what the file has; names of what it does not have may be among what they select. */
function isSame(one: Target, other: Target, gateway: Gateway): boolean {
  if (!isSameNamespace(one.namespace, other.namespace)) return false;
  if (one.name !== undefined && other.name !== undefined) return one.name === other.name;
  const known = ofKind(gateway, one.kind);
  if (known.some((object) => isFor(one, object) && isFor(other, object))) return true;
  const name = one.name ?? other.name;
  const isNamed = (object: Resource) =>
    object.name === name && isSameNamespace(object.namespace, one.namespace);
  return name !== undefined && !known.some(isNamed);
}
