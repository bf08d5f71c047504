/**
 * Which routes of Gateway API the SecurityPolicies with `extAuth` leave out. Source: Envoy Gateway 1.9, SecurityPolicy `targetRefs`,
 * `targetSelectors`.
 */
import type { Gateway, Resource } from './gateway.ts';
import { isSelected } from './label-selector.ts';
import { httpRoutes, ofKind } from './settings.ts';
import type { View } from './view.ts';

export interface Target {
  readonly kind: string;
  /** Undefined for a selector. */
  readonly name: string | undefined;
  /** Of the policy, and so of what it is for. */
  readonly namespace: string | undefined;
  readonly section: string | undefined;
  readonly view: View;
}

/** Where they come from a Gateway or listener, or have rules, that no policy is for. None where nothing in the file has `extAuth`. */
export function uncoveredRoutes(gateway: Gateway): readonly View[] {
  const targets = checkedTargets(gateway);
  if (targets.length === 0) return [];
  return httpRoutes(gateway)
    .filter((route) => forwardingRules(route).length > 0 && !hasOwnCheck(route))
    .filter((route) => !isCoveredItself(route, targets))
    .flatMap((route) =>
      parentsOf(route).every((parent) => isCoveredParent(parent, targets, gateway)) ? [] : [route.spec],
    );
}

/** Of the policies with `extAuth`. */
export function checkedTargets(gateway: Gateway): readonly Target[] {
  return ofKind(gateway, 'SecurityPolicy')
    .filter(({ spec }) => spec.get('ext_auth') !== undefined)
    .flatMap(targetsOf);
}

export function targetsOf({ namespace, spec }: Resource): readonly Target[] {
  const references = [spec.get('target_ref') ?? [], ...spec.list('target_refs')].flat();
  return [...references, ...spec.list('target_selectors')].map((view) => ({
    kind: view.get('kind')?.text ?? '',
    name: view.get('name')?.text,
    namespace,
    section: view.get('section_name')?.text,
    view,
  }));
}

/** One is undefined where whoever applies the file says it. */
export function isSameNamespace(one: string | undefined, other: string | undefined): boolean {
  return one === undefined || other === undefined || one === other;
}

function forwardingRules({ spec }: Resource): readonly View[] {
  return spec.list('rules').filter((rule) => rule.list('backend_refs').length > 0);
}

/** By the filter `ExternalAuth`: `route-unchecked` looks at its rules. */
function hasOwnCheck(route: Resource): boolean {
  return forwardingRules(route).some((rule) =>
    rule.list('filters').some((filter) => filter.get('external_auth') !== undefined),
  );
}

/** With all of its rules. */
function isCoveredItself(route: Resource, targets: readonly Target[]): boolean {
  const own = targets.filter((target) => isFor(target, route));
  const isNamed = (rule: View) => own.some(({ section }) => section === rule.get('name')?.text);
  return own.some(({ section }) => section === undefined) || forwardingRules(route).every(isNamed);
}

export function isFor(target: Target, { kind, name, namespace, view }: Resource): boolean {
  if (target.kind !== kind || !isSameNamespace(target.namespace, namespace)) return false;
  return target.name === undefined ? isSelected(view, target.view) : target.name === name;
}

interface Parent {
  readonly kind: string;
  readonly name: string | undefined;
  readonly namespace: string | undefined;
  readonly section: string | undefined;
}

export function parentsOf({ namespace, spec }: Resource): readonly Parent[] {
  return spec.list('parent_refs').map((parent) => ({
    kind: parent.get('kind')?.text ?? 'Gateway',
    name: parent.get('name')?.text,
    namespace: parent.get('namespace')?.text ?? namespace,
    section: parent.get('section_name')?.text,
  }));
}

/** By policies for it, for its listener of that name, or for each of its listeners. */
export function isCoveredParent(parent: Parent, targets: readonly Target[], gateway: Gateway): boolean {
  const [known] = ofKind(gateway, parent.kind).filter(
    ({ name, namespace }) => name === parent.name && isSameNamespace(namespace, parent.namespace),
  );
  if (isListenerSet(parent.kind) && isCoveredByGateway(known, targets, gateway)) return true;
  const own = targets.filter((target) => {
    if (target.kind !== parent.kind || !isSameNamespace(target.namespace, parent.namespace)) return false;
    if (target.name !== undefined) return target.name === parent.name;
    return known === undefined || isSelected(known.view, target.view);
  });
  const isCovered = (listener: string | undefined) => own.some(({ section }) => section === listener);
  if (isCovered(undefined)) return true;
  if (parent.section !== undefined) return isCovered(parent.section);
  const listeners = known?.spec.list('listeners') ?? [];
  return listeners.length > 0 && listeners.every((listener) => isCovered(listener.get('name')?.text));
}

export const LISTENER_SETS: readonly string[] = ['ListenerSet', 'XListenerSet'];

export function isListenerSet(kind: string): boolean {
  return LISTENER_SETS.includes(kind);
}

/** Of a ListenerSet that the file does not have it is not said to which Gateway it belongs. */
function isCoveredByGateway(
  known: Resource | undefined,
  targets: readonly Target[],
  gateway: Gateway,
): boolean {
  const whole = targets.filter(({ kind, section }) => kind === 'Gateway' && section === undefined);
  if (known === undefined) return whole.length > 0;
  const { name, namespace } = gatewayOf(known);
  return isCoveredParent({ kind: 'Gateway', name, namespace, section: undefined }, whole, gateway);
}

/** Which a ListenerSet adds its listeners to. */
export function gatewayOf({ namespace, spec }: Resource): Pick<Parent, 'name' | 'namespace'> {
  const parent = spec.get('parent_ref');
  return {
    name: parent?.get('name')?.text,
    namespace: parent?.get('namespace')?.text ?? namespace,
  };
}
