/** What objects of Kubernetes say of where the check applies; and what holds for any file. */
import type { Gateway, Resource, Rule } from '../gateway.ts';
import { customPolicies, extAuths, externalAuths, istioProviders, ofKind, providersOf } from '../settings.ts';
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
  effect: "replaces the gateway's whole SecurityPolicy for this target, and has no check itself",
  fix: 'extAuth in this policy too, or mergeType: StrategicMerge',
  find(gateway) {
    const policies = ofKind(gateway, 'SecurityPolicy');
    const isGuarded = policies.some(
      (policy) => policy.spec.get('ext_auth') && targets(policy).includes('Gateway'),
    );
    if (!isGuarded) return [];
    return policies
      .filter(({ spec }) => spec.get('ext_auth') === undefined && spec.get('merge_type') === undefined)
      .filter((policy) => targets(policy).some((kind) => kind !== 'Gateway'))
      .map(({ spec }) => spec);
  },
};

function targets({ spec }: Resource): readonly string[] {
  const references = [spec.get('target_ref'), ...spec.list('target_refs'), ...spec.list('target_selectors')];
  return references.flatMap((reference) => reference?.get('kind')?.text ?? []);
}

const checkRemoved: Rule = {
  id: 'check-removed',
  severity: 'error',
  effect: 'takes the check out of the filters that were generated',
  fix: 'no patch that removes ext_authz',
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
  providerUnknown,
  policyOverridden,
  checkRemoved,
  nothingChecked,
  settingTwice,
];
