/** Rules about where Kubernetes objects apply the check, and rules for any file. */
import { overridingPolicies, uncoveredRoutes, unknownTargets } from '../gateway/envoy-gateway.ts';
import type { Gateway, Rule } from '../gateway/gateway.ts';
import { customPolicies, extAuths, externalAuths, istioProviders } from '../gateway/gateway-queries.ts';
import { everyMapping, type View } from '../gateway/view.ts';

/** Conditions of a rule of an AuthorizationPolicy. */
function conditionsOf(rule: View): readonly View[] {
  return ['from', 'to', 'when'].flatMap((name) => rule.get(name) ?? []);
}

const DRY_RUN = 'istio.io/dry-run';

/** Ignores listeners, which have their own rules. */
function asksSomewhere(gateway: Gateway): boolean {
  const asking = [istioProviders, customPolicies, extAuths, externalAuths].map((read) => read(gateway));
  return [gateway.listeners, gateway.checks, gateway.patches.unknown, ...asking].some(
    (all) => all.length > 0,
  );
}

export const MANIFEST_RULES: readonly Rule[] = [
  {
    id: 'policy-empty',
    severity: 'error',
    effect: 'matches no request, so Istio asks about none',
    fix: 'rules: [{}]',
    find: (gateway) =>
      customPolicies(gateway)
        .filter(({ spec }) => spec.list('rules').length === 0)
        .map(({ spec }) => spec.get('rules') ?? spec.get('action') ?? spec),
  },
  {
    id: 'policy-partial',
    severity: 'error',
    effect: 'asks only about the requests that match; all others are forwarded unchecked',
    fix: 'rules: [{}]; where requests are meant to go unchecked, allow it by a comment',
    find: (gateway) =>
      customPolicies(gateway)
        .map(({ spec }) => spec.list('rules'))
        .filter((rules) => rules.every((rule) => conditionsOf(rule).length > 0))
        .flatMap((rules) => rules.flatMap(conditionsOf)),
  },
  {
    id: 'policy-dry-run',
    severity: 'error',
    effect: 'reports what the check would say, and forwards the request all the same',
    fix: `no annotation ${DRY_RUN}`,
    find: (gateway) =>
      customPolicies(gateway)
        .flatMap(({ view }) => view.at('metadata', 'annotations')?.named(DRY_RUN) ?? [])
        .filter(({ flag }) => flag !== false),
  },
  {
    id: 'provider-unknown',
    severity: 'error',
    effect: 'names a provider that the mesh configuration of this file does not have',
    fix: 'the name of one of meshConfig.extensionProviders',
    find(gateway) {
      const known = gateway.meshes.flatMap((mesh) => mesh.list('extension_providers'));
      const names = new Set(known.map((one) => one.get('name')?.text));
      if (gateway.meshes.length === 0) return [];
      return customPolicies(gateway)
        .flatMap(({ spec }) => spec.at('provider', 'name') ?? [])
        .filter(({ text }) => !names.has(text));
    },
  },
  {
    id: 'policy-overridden',
    severity: 'error',
    effect: 'may replace a SecurityPolicy with the check for this target, and has no check itself',
    fix: 'extAuth in this policy too; or mergeType: StrategicMerge, for a route below its Gateway',
    find: overridingPolicies,
  },
  {
    id: 'target-unknown',
    severity: 'error',
    effect:
      'puts the check on no Gateway or listener of this file, as far as it names them (selectors do not)',
    fix: 'the name of one of its Gateways, in the namespace of the policy; sectionName: one of its listeners',
    find: unknownTargets,
  },
  {
    id: 'route-without-check',
    severity: 'error',
    effect:
      'may forward requests unchecked: no SecurityPolicy with extAuth names this route or all its parents',
    fix: 'extAuth in a SecurityPolicy whose targetRefs name its Gateway, or this route, without sectionName',
    find: uncoveredRoutes,
  },
  {
    id: 'patch-touches-check',
    severity: 'error',
    effect: 'this patch touches the check, its cluster or its order: lint the config_dump',
    fix: 'a patch of envoy/, or none; where the config_dump has no findings, allow it by a comment',
    find: ({ patches }) => patches.unknown,
  },
  {
    id: 'nothing-checked',
    severity: 'warning',
    effect: 'asks no verifier anywhere in this file',
    fix: 'lint the files of one gateway together: they are one input, with `---` between them',
    find: (gateway) => {
      const hasManifests = gateway.resources.length + gateway.meshes.length > 0;
      return hasManifests && !asksSomewhere(gateway) ? gateway.documents.slice(0, 1) : [];
    },
  },
  {
    id: 'setting-twice',
    severity: 'error',
    effect:
      'sets the same twice (snake case and camel case are one name): readers differ in which one counts',
    fix: 'one of them',
    find: ({ documents }) => everyMapping(documents).flatMap((view) => view.repeated()),
  },
];
