/**
 * Istio's way of asking: an rbac filter that refuses nothing writes the name of the rule that matches into metadata, and ext_authz asks
 * when it finds one of an AuthorizationPolicy CUSTOM there. Source: Istio, pilot/pkg/security/authz/builder/builder.go.
 */
import type { HttpFilter, Override } from './gateway.ts';
import { mayBe } from './read-filters.ts';
import type { View } from './view.ts';

const WRITTEN = 'shadow_effective_policy_id';

/** Whether the condition of the check holds for every request, whatever it is, because of a filter in front of it. */
export function isMetAlways(
  check: HttpFilter,
  before: readonly HttpFilter[],
  overrides: readonly Override[],
): boolean {
  const condition = check.settings?.get('filter_enabled_metadata');
  const prefix = condition?.at('value', 'string_match', 'prefix')?.text ?? '';
  const [key, ...deeper] = condition?.list('path') ?? [];
  if (condition === undefined || prefix === '' || deeper.length > 0 || mayBe(condition.get('invert'))) {
    return false;
  }
  return before.some((filter) => {
    const isWriter =
      filter.kind === 'rbac' &&
      filter.name === condition.get('filter')?.text &&
      filter.condition === undefined &&
      !overrides.some(({ name }) => name === filter.name) &&
      !mayBe(filter.entry.get('disabled'));
    const stat = filter.settings?.get('shadow_rules_stat_prefix')?.text ?? '';
    return isWriter && key?.get('key')?.text === `${stat}${WRITTEN}` && matchesAll(filter, prefix);
  });
}

/** Each policy's name has the prefix, and one of them matches every request. */
function matchesAll({ settings }: HttpFilter, prefix: string): boolean {
  const policies = settings?.at('shadow_rules', 'policies')?.members() ?? [];
  return (
    policies.every(({ name }) => name.startsWith(prefix)) &&
    policies.some(({ view }) =>
      ['permissions', 'principals'].every((member) => view.list(member).some(isAny)),
    )
  );
}

/** A Permission or Principal that nothing fails. */
function isAny(one: View): boolean {
  const all = one.at('and_rules', 'rules') ?? one.at('and_ids', 'ids');
  if (all !== undefined) return all.items().length > 0 && all.items().every(isAny);
  const some = one.at('or_rules', 'rules') ?? one.at('or_ids', 'ids');
  if (some !== undefined) return some.items().some(isAny);
  return one.get('any')?.flag === true;
}
