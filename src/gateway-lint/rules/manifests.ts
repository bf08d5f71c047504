/** What objects of Kubernetes say of where the check applies; and what holds for any file. */
import { unenforcedPolicies } from '../ambient.ts';
import type { Gateway, Resource, Rule } from '../gateway.ts';
import { isSelected } from '../label-selector.ts';
import { overridingPolicies } from '../policy-precedence.ts';
import { checkedTargets, isSameNamespace, type Target, uncoveredRoutes } from '../route-coverage.ts';
import {
  BYTE_ROUTES,
  customPolicies,
  extAuths,
  externalAuths,
  HTTP_ROUTES,
  istioProviders,
  ofKind,
  providersOf,
} from '../settings.ts';
import { everyMapping, type View } from '../view.ts';

const policyEmpty: Rule = {
  id: 'policy-empty',
  severity: 'error',
  effect: 'matches no request, so nobody is asked about any',
  fix: 'rules: [{}]',
  find: (gateway) =>
    customPolicies(gateway)
      .filter(({ spec }) => spec.list('rules').length === 0)
      .map(({ spec }) => spec.get('rules') ?? spec.get('action') ?? spec),
};

const CONDITIONS = ['from', 'to', 'when'];

const policyPartial: Rule = {
  id: 'policy-partial',
  severity: 'error',
  effect: 'asks about the requests that match alone; all others are forwarded unchecked',
  fix: 'rules: [{}]; where requests are meant to go unchecked, allow it by a comment',
  find: (gateway) =>
    customPolicies(gateway)
      .map(({ spec }) => spec.list('rules'))
      .filter((rules) => rules.every((rule) => conditionsOf(rule).length > 0))
      .flatMap((rules) => rules.flatMap(conditionsOf)),
};

function conditionsOf(rule: View): readonly View[] {
  return CONDITIONS.flatMap((name) => rule.get(name) ?? []);
}

const DRY_RUN = 'istio.io/dry-run';

const policyDryRun: Rule = {
  id: 'policy-dry-run',
  severity: 'error',
  effect: 'reports what the check would say, and forwards the request all the same',
  fix: `no annotation ${DRY_RUN}`,
  find: (gateway) =>
    customPolicies(gateway).flatMap(({ view }) => {
      const dryRun = view.at('metadata', 'annotations')?.named(DRY_RUN);
      return dryRun === undefined || dryRun.flag === false ? [] : [dryRun];
    }),
};

const ambientUnchecked: Rule = {
  id: 'ambient-unchecked',
  severity: 'error',
  effect: 'asks nobody about what reaches workloads in ambient mode: ztunnel forwards it unchecked',
  fix: 'targetRefs: the waypoint of the namespace, past which nobody reaches the workloads; or proxies as sidecars',
  find: (gateway) => unenforcedPolicies(gateway).map(({ spec }) => spec.get('action') ?? spec),
};

const providerUnknown: Rule = {
  id: 'provider-unknown',
  severity: 'error',
  effect: 'names a provider that the mesh configuration of this file does not have',
  fix: 'the name of one of meshConfig.extensionProviders',
  find(gateway) {
    const names = new Set(
      gateway.meshes.flatMap((mesh) => mesh.list('extension_providers')).map((one) => one.get('name')?.text),
    );
    if (gateway.meshes.length === 0) return [];
    return customPolicies(gateway)
      .flatMap(({ spec }) => spec.at('provider', 'name') ?? [])
      .filter(({ text }) => !names.has(text));
  },
};

const policyOverridden: Rule = {
  id: 'policy-overridden',
  severity: 'error',
  effect: 'takes the place of a SecurityPolicy with the check for this target, and has none itself',
  fix: 'extAuth in this policy too; or mergeType: StrategicMerge, for a route below its Gateway',
  find: (gateway) => overridingPolicies(gateway).map(({ spec }) => spec),
};

const targetUnknown: Rule = {
  id: 'target-unknown',
  severity: 'error',
  effect:
    'puts the check on a Gateway or listener that this file does not have, so what it has may go without',
  fix: 'the name of one of its Gateways, in the namespace of the policy; sectionName: one of its listeners',
  find(gateway) {
    const known = knownGateways(gateway);
    if (known.length === 0) return [];
    const targets = checkedTargets(gateway).filter(({ kind }) => kind === 'Gateway');
    return [
      ...targets
        .filter((target) => !isAmong(known, target))
        .map(({ name, view }) => (name === undefined ? view : (view.get('name') ?? view))),
      ...targets.flatMap((target) => unknownSection(ofKind(gateway, 'Gateway'), target)),
    ];
  },
};

/** A `sectionName` that is the name of none of its listeners. */
function unknownSection(gateways: readonly Resource[], target: Target): readonly View[] {
  const { name, namespace, section, view } = target;
  const own = gateways.filter((one) => one.name === name && isSameNamespace(one.namespace, namespace));
  const listeners = own.flatMap(({ spec }) => spec.list('listeners'));
  const isUnknown = own.length > 0 && listeners.every((one) => one.get('name')?.text !== section);
  return section !== undefined && isUnknown ? [view.get('section_name') ?? view] : [];
}

function isAmong(known: readonly Named[], { name, namespace, view }: Target): boolean {
  const near = known.filter((one) => isSameNamespace(one.namespace, namespace));
  if (name !== undefined) return near.some((one) => one.name === name);
  const labelled = near.flatMap((one) => one.view ?? []);
  return labelled.length === 0 || labelled.some((one) => isSelected(one, view));
}

interface Named {
  readonly name: string | undefined;
  /** Undefined where whoever applies the file says it. */
  readonly namespace: string | undefined;
  /** Undefined where the file does not have the Gateway itself. */
  readonly view?: View;
}

/** Gateways of the file, and those that its routes name. */
function knownGateways(gateway: Gateway): readonly Named[] {
  const routes = ROUTES.flatMap((kind) => ofKind(gateway, kind));
  const parents = routes.flatMap(({ namespace, spec }) =>
    spec
      .list('parent_refs')
      .filter((parent) => (parent.get('kind')?.text ?? 'Gateway') === 'Gateway')
      .map((parent) => ({
        name: parent.get('name')?.text,
        namespace: parent.get('namespace')?.text ?? namespace,
      })),
  );
  return [...ofKind(gateway, 'Gateway'), ...parents];
}

const ROUTES = [...HTTP_ROUTES, ...BYTE_ROUTES];

const routeWithoutCheck: Rule = {
  id: 'route-without-check',
  severity: 'error',
  effect: 'forwards what comes by this route without asking the verifier, whom others ask',
  fix: 'extAuth in a SecurityPolicy for its Gateway, all listeners of it, or for this route with all its rules',
  find: uncoveredRoutes,
};

const checkRemoved: Rule = {
  id: 'check-removed',
  severity: 'error',
  effect: 'takes the check out of what was generated, or goes beside it',
  fix: 'no patch that removes ext_authz; a route that is put in needs an entry of it (ExtAuthzPerRoute)',
  find: ({ removals }) => removals,
};

const nothingChecked: Rule = {
  id: 'nothing-checked',
  severity: 'warning',
  effect: 'asks no verifier anywhere in this file',
  fix: 'lint the files of one gateway together: they are one input, with `---` between them',
  find: (gateway) => {
    const hasManifests = gateway.resources.length + gateway.meshes.length > 0;
    return hasManifests && !asksSomewhere(gateway) ? gateway.documents.slice(0, 1) : [];
  },
};

/** Listeners have rules of their own. */
function asksSomewhere(gateway: Gateway): boolean {
  return [
    gateway.listeners,
    gateway.checks,
    istioProviders(gateway),
    providersOf(gateway.meshes, 'envoy_ext_authz_http'),
    customPolicies(gateway),
    extAuths(gateway),
    externalAuths(gateway),
    gateway.removals,
  ].some((all) => all.length > 0);
}

const settingTwice: Rule = {
  id: 'setting-twice',
  severity: 'error',
  effect: 'says the same twice (snake case and camel case are one name): which counts depends on who reads',
  fix: 'one of them',
  find: ({ documents }) => everyMapping(documents).flatMap((view) => view.repeated()),
};

export const MANIFEST_RULES: readonly Rule[] = [
  policyEmpty,
  policyPartial,
  policyDryRun,
  ambientUnchecked,
  providerUnknown,
  policyOverridden,
  targetUnknown,
  routeWithoutCheck,
  checkRemoved,
  nothingChecked,
  settingTwice,
];
