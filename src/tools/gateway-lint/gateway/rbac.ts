/**
 * Whether Envoy's rbac filter allows only requests with a decision of the verifier, or only requests without an
 * upgrade.
 */
import type { Chain, Override } from './gateway.ts';
import { DECISION_HEADER } from './header-names.ts';
import { mayBe } from './read-filters.ts';
import type { View } from './view.ts';

export type Condition = (one: View) => boolean;

/** Whether Envoy ignores these rules, because the message has a matcher as well. */
export function isSetAside(rbac: View, rules: 'rules' | 'shadow_rules'): boolean {
  return rbac.get(rules === 'rules' ? 'matcher' : 'shadow_matcher') !== undefined;
}

export function requiresDecision(rbac: View | undefined): boolean {
  return requires(rbac, isDecided);
}

/**
 * Whether a filter of the chain denies upgrades on every route. For HTTP/2 as well, Envoy shows filters the header of
 * HTTP/1.1.
 * @param isExempt conditions of requests that may ask for one
 */
export function refusesUpgrades(
  { filters }: Chain,
  overrides: readonly Override[],
  isExempt: Condition,
): boolean {
  return filters.some(
    ({ condition, entry, kind, name, settings }) =>
      kind === 'rbac' &&
      !overrides.some((override) => override.name === name) &&
      condition === undefined &&
      !mayBe(entry.get('disabled')) &&
      requires(settings, (one) => isNoUpgrade(one) || isExempt(one)),
  );
}

/** Each policy can allow a request on its own, so each must have the condition. */
function requires(rbac: View | undefined, isWanted: Condition): boolean {
  if (rbac === undefined || isSetAside(rbac, 'rules')) return false;
  const rules = rbac.get('rules');
  const policies = rules?.get('policies')?.members() ?? [];
  const isAllow = rules?.get('action')?.isOneOf('ALLOW', 0) ?? true;
  return (
    isAllow &&
    policies.length > 0 &&
    policies.every(({ view }) =>
      ['permissions', 'principals'].some((name) => eachWants(view.list(name), isWanted)),
    )
  );
}

/** One of these suffices, so each must have the condition. */
function eachWants(conditions: readonly View[], isWanted: Condition): boolean {
  return (
    conditions.length > 0 &&
    conditions.every((condition) => {
      const joined = condition.at('and_rules', 'rules') ?? condition.at('and_ids', 'ids');
      return joined === undefined
        ? isWanted(condition)
        : joined.items().some((one) => eachWants([one], isWanted));
    })
  );
}

function isDecided(condition: View): boolean {
  const header = condition.get('header');
  return isPresence(header, DECISION_HEADER) && !mayBe(header?.get('invert_match'));
}

function isNoUpgrade(condition: View): boolean {
  const header = condition.get('header');
  const not = condition.get('not_rule')?.get('header') ?? condition.get('not_id')?.get('header');
  if (not !== undefined) return isPresence(not, 'upgrade') && !mayBe(not.get('invert_match'));
  return isPresence(header, 'upgrade') && header?.get('invert_match')?.flag === true;
}

function isPresence(header: View | undefined, name: string): boolean {
  return (
    header?.get('name')?.text?.toLowerCase() === name &&
    header.get('present_match')?.flag === true &&
    !mayBe(header.get('treat_missing_header_as_empty'))
  );
}
