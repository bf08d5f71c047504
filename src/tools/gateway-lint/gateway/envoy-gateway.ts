/**
 * Envoy Gateway: the Gateways and routes to which its policies apply, and the filters before the check. A selector, or
 * a part of a Gateway, counts as its minimum, so that unchecked parts are found.
 * Source: Envoy Gateway 1.9, `targetRefs`, SecurityPolicy `mergeType`, internal/xds/translator/httpfilters.go.
 */
import type { Gateway, Resource } from './gateway.ts';
import { extAuths, HTTP_ROUTES, isSameNamespace, ofKind, specsOf } from './gateway-queries.ts';
import type { View } from './view.ts';

interface Target {
  readonly kind: string;
  /** Undefined for a selector. */
  readonly name: string | undefined;
  readonly namespace: string | undefined;
  /** A listener of a Gateway, or a rule of a route. */
  readonly section: string | undefined;
  readonly view: View;
}

function targetsOf({ namespace, spec }: Resource): readonly Target[] {
  const references = [spec.get('target_ref') ?? [], spec.list('target_refs'), spec.list('target_selectors')];
  return references
    .flat()
    .map((view) => ({ ...nameIn(view, namespace), kind: view.get('kind')?.text ?? '' }));
}

function nameIn(view: View, namespace: string | undefined) {
  return {
    name: view.get('name')?.text,
    namespace: view.get('namespace')?.text ?? namespace,
    section: view.get('section_name')?.text,
    view,
  };
}

/** A Gateway or route, named by an object of its own or by a reference. */
type Named = Pick<Target, 'kind' | 'name' | 'namespace'>;

function isFor(target: Named, { kind, name, namespace }: Named): boolean {
  return target.kind === kind && target.name === name && isSameNamespace(target.namespace, namespace);
}

/** Targets of the SecurityPolicies with `extAuth`. */
function checkedTargets(gateway: Gateway): readonly Target[] {
  return ofKind(gateway, 'SecurityPolicy')
    .filter(({ spec }) => spec.get('ext_auth') !== undefined)
    .flatMap(targetsOf);
}

/** Forwarding routes without such a policy, in a file that has some. */
export function uncoveredRoutes(gateway: Gateway): readonly View[] {
  const targets = checkedTargets(gateway);
  if (targets.length === 0) return [];
  return ofKind(gateway, ...HTTP_ROUTES)
    .filter((route) => forwardingRules(route).length > 0 && !forwardingRules(route).some(hasExternalAuth))
    .filter((route) => !targets.some((target) => target.section === undefined && isFor(target, route)))
    .filter(
      (route) => !parentsOf(route).every((parent) => targets.some((target) => isForParent(target, parent))),
    )
    .map(({ spec }) => spec);
}

function forwardingRules({ spec }: Resource): readonly View[] {
  return spec.list('rules').filter((rule) => rule.list('backend_refs').length > 0);
}

/** The rule `route-unchecked` checks these rules. */
function hasExternalAuth(rule: View): boolean {
  return rule.list('filters').some((filter) => filter.get('external_auth') !== undefined);
}

function parentsOf({ namespace, spec }: Resource): readonly Target[] {
  return spec
    .list('parent_refs')
    .map((view) => ({ ...nameIn(view, namespace), kind: view.get('kind')?.text ?? 'Gateway' }));
}

function isForParent(target: Target, parent: Target): boolean {
  return isFor(target, parent) && (target.section === undefined || target.section === parent.section);
}

/**
 * Policies without `extAuth` that may apply instead of one with it, because for one target the nearest and oldest
 * policy applies.
 */
export function overridingPolicies(gateway: Gateway): readonly View[] {
  const guards = checkedTargets(gateway);
  return ofKind(gateway, 'SecurityPolicy')
    .filter(({ spec }) => spec.get('ext_auth') === undefined)
    .filter((policy) => {
      const isMerged = policy.spec.get('merge_type') !== undefined;
      return targetsOf(policy).some((target) => guards.some((guard) => mayOverride(target, isMerged, guard)));
    })
    .map(({ spec }) => spec);
}

function mayOverride(target: Target, isMerged: boolean, guard: Target): boolean {
  if (target.name === undefined || guard.name === undefined || isFor(target, guard)) return true;
  const isRoute = ({ kind }: Target) => HTTP_ROUTES.some((one) => one === kind);
  return target.kind !== 'Gateway' && !isRoute(guard) && !(isMerged && isRoute(target));
}

/** Targets of the check that may not be a Gateway or listener of the file. */
export function unknownTargets(gateway: Gateway): readonly View[] {
  const gateways = ofKind(gateway, 'Gateway');
  const known = [...gateways, ...ofKind(gateway, ...HTTP_ROUTES).flatMap(parentsOf)];
  if (known.length === 0) return [];
  return checkedTargets(gateway)
    .filter(({ kind }) => kind === 'Gateway')
    .flatMap((target) => {
      const { section, view } = target;
      if (!known.some((one) => isFor(target, one))) return [view.get('name') ?? view];
      const own = gateways.filter((one) => isFor(target, one)).flatMap(({ spec }) => spec.list('listeners'));
      const isUnknown = own.length > 0 && own.every((one) => one.get('name')?.text !== section);
      return section !== undefined && isUnknown ? [view.get('section_name') ?? view] : [];
    });
}

/** ClientTrafficPolicies, and in a file with `extAuth` each Gateway without one: it has Envoy Gateway's own settings. */
export function clientPolicies(gateway: Gateway): readonly View[] {
  const policies = ofKind(gateway, 'ClientTrafficPolicy');
  const targets = policies.flatMap(targetsOf).filter(({ section }) => section === undefined);
  const others = extAuths(gateway).length === 0 ? [] : ofKind(gateway, 'Gateway');
  const open = others.filter((one) => !targets.some((target) => isFor(target, one)));
  return [...policies, ...open].map(({ spec }) => spec);
}

/**
 * Filters after the check that may change a request, in Envoy Gateway's order. By default the check runs early.
 * `filterOrder` of EnvoyProxy can move the check after other filters, as `envoy/` does, or a filter before the check.
 * Any other order is reported.
 */
const BEHIND_CHECK: readonly string[] = [
  'api_key_auth',
  'basic_auth',
  'oauth2',
  'jwt_authn',
  'stateful_session',
  'lua',
  'ext_proc',
  'wasm',
  'dynamic_modules',
];

/** Members of policies that insert these filters into the chain. */
const POLICY_FILTERS: { readonly [kind: string]: { readonly [member: string]: string } } = {
  EnvoyExtensionPolicy: {
    dynamic_module: 'dynamic_modules',
    ext_proc: 'ext_proc',
    lua: 'lua',
    wasm: 'wasm',
  },
  SecurityPolicy: {
    api_key_auth: 'api_key_auth',
    basic_auth: 'basic_auth',
    jwt: 'jwt_authn',
    oidc: 'oauth2',
  },
};

/**
 * Members of policies whose filters no entry of `filterOrder` moves before the check. An entry has no effect if its
 * neighbour is absent, so each filter needs its own.
 */
export function policyFiltersBehindCheck(gateway: Gateway): readonly View[] {
  const orders = specsOf(gateway, 'EnvoyProxy').map((spec) => spec.list('filter_order').map(filterInFront));
  const isInFront = (filter: string) => orders.length > 0 && orders.every((order) => order.includes(filter));
  return Object.entries(POLICY_FILTERS).flatMap(([kind, members]) =>
    kind === 'SecurityPolicy' && extAuths(gateway).length === 0
      ? []
      : specsOf(gateway, kind).flatMap((spec) =>
          Object.entries(members).flatMap(([member, filter]) =>
            isInFront(filter) ? [] : (spec.get(member) ?? []),
          ),
        ),
  );
}

/** Entries that may move a filter after the check. Entries that move the check must each move it further back. */
export function unknownOrders(gateway: Gateway, isHarmless: (kind: string) => boolean): readonly View[] {
  return specsOf(gateway, 'EnvoyProxy').flatMap((spec) => {
    let position = -1;
    return spec.list('filter_order').filter((entry) => {
      const kind = kindIn(entry.get('name'));
      const filter = filterInFront(entry);
      if (kind !== CHECK) return filter === undefined && !isHarmless(kind);
      const before = position;
      position = Math.max(before, BEHIND_CHECK.indexOf(filter ?? ''));
      return position === before;
    });
  });
}

const CHECK = 'ext_authz';

/** The filter that an entry moves before the check, if any. */
function filterInFront(entry: View): string | undefined {
  const [name, before, after] = ['name', 'before', 'after'].map((member) => kindIn(entry.get(member)));
  if (before === CHECK) return name;
  return name === CHECK && before === '' ? after : undefined;
}

function kindIn(name: View | undefined): string {
  return name?.text?.replace(/^envoy\.filters\.http\./, '') ?? '';
}
