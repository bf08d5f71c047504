/**
 * Envoy Gateway's settings for what comes from callers. What no ClientTrafficPolicy is for has Envoy Gateway's own, which unescape slashes,
 * merge them and keep callers' headers. Source: Envoy Gateway 1.9, ClientTrafficPolicy.
 */
import type { Gateway, Resource, Settings } from './gateway.ts';
import {
  checkedTargets,
  gatewayOf,
  isCoveredParent,
  isFor,
  isSameNamespace,
  LISTENER_SETS,
  parentsOf,
  targetsOf,
} from './route-coverage.ts';
import { httpRoutes, ofKind, whole } from './settings.ts';

/** Of its policies, and in place of those that are missing what would have them. */
export function clientPolicies(gateway: Gateway): readonly Settings[] {
  const written = ofKind(gateway, 'ClientTrafficPolicy');
  return [...written, ...gatewaysWithoutPolicy(gateway)].map(({ spec }) => whole(spec));
}

/** Gateways of the file where the check is asked, and a listener of which is left to Envoy Gateway. */
function gatewaysWithoutPolicy(gateway: Gateway): readonly Resource[] {
  const policies = ofKind(gateway, 'ClientTrafficPolicy').flatMap(targetsOf);
  return ofKind(gateway, 'Gateway').filter((one) => {
    const { kind, name, namespace } = one;
    return checkedSections(one, gateway).some(
      (section) => !isCoveredParent({ kind, name, namespace, section }, policies, gateway),
    );
  });
}

/** Names of listeners that a SecurityPolicy with `extAuth` is for, undefined for all of them. */
function checkedSections(one: Resource, gateway: Gateway): readonly (string | undefined)[] {
  const targets = checkedTargets(gateway);
  const own = targets.filter((target) => isFor(target, one)).map(({ section }) => section);
  const routes = httpRoutes(gateway).filter((route) => targets.some((target) => isFor(target, route)));
  const sets = LISTENER_SETS.flatMap((kind) => ofKind(gateway, kind)).filter((set) =>
    targets.some((target) => isFor(target, set)),
  );
  const parents = routes.flatMap(parentsOf).filter(({ kind }) => kind === 'Gateway');
  const ofSets = sets.map((set) => ({ ...gatewayOf(set), section: undefined }));
  const named = [...parents, ...ofSets].filter(
    ({ name, namespace }) => name === one.name && isSameNamespace(namespace, one.namespace),
  );
  return [...own, ...named.map(({ section }) => section)];
}
