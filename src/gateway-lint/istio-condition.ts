/**
 * Istio's way of asking: an rbac filter that refuses nothing writes the name of the rule that matches into metadata, and ext_authz asks
 * when it finds one of an AuthorizationPolicy CUSTOM there. For connections that are no HTTP there is the same once more.
 * Source: Istio 1.31, pilot/pkg/security/authz/builder/builder.go.
 */
import type { HttpFilter, Override } from './gateway.ts';
import { mayBe, typed } from './read-filters.ts';
import type { View } from './view.ts';

const WRITTEN = 'shadow_effective_policy_id';

/** A filter in front of the check that runs in any case. */
interface Writer {
  readonly name: string;
  readonly settings: View | undefined;
}

/** Whether the condition of the check holds for every request, whatever it is, because of a filter in front of it. */
export function isAskedAlways(
  check: HttpFilter,
  before: readonly HttpFilter[],
  overrides: readonly Override[],
): boolean {
  const writers = before.filter(
    ({ condition, entry, kind, name }) =>
      kind === 'rbac' &&
      condition === undefined &&
      !overrides.some((override) => override.name === name) &&
      !mayBe(entry.get('disabled')),
  );
  return isMetAlways(check.settings?.get('filter_enabled_metadata'), writers);
}

/** Whether the verifier is asked about every connection, which it then refuses: what is no HTTP has no proof. */
export function isConnectionRefused(before: readonly View[]): boolean {
  const messages = before.flatMap((filter) => {
    const message = typed(filter.get('typed_config'));
    return message === undefined ? [] : [{ ...message, name: filter.get('name')?.text ?? '' }];
  });
  return messages.some(({ settings, type }, at) => {
    const isCheck = /\.filters\.network\.ext_authz\.v\w+\.ExtAuthz$/.test(type);
    const condition = settings.get('filter_enabled_metadata');
    const writers = messages
      .slice(0, at)
      .filter((one) => /\.filters\.network\.rbac\.v\w+\.RBAC$/.test(one.type));
    const isMet = condition === undefined || isMetAlways(condition, writers);
    return isCheck && isMet && !mayBe(settings.get('failure_mode_allow'));
  });
}

function isMetAlways(condition: View | undefined, writers: readonly Writer[]): boolean {
  const prefix = condition?.at('value', 'string_match', 'prefix')?.text ?? '';
  const [key, ...deeper] = condition?.list('path') ?? [];
  if (condition === undefined || prefix === '' || deeper.length > 0 || mayBe(condition.get('invert'))) {
    return false;
  }
  return writers.some(({ name, settings }) => {
    const stat = settings?.get('shadow_rules_stat_prefix')?.text ?? '';
    const isWritten = key?.get('key')?.text === `${stat}${WRITTEN}`;
    return isWritten && name === condition.get('filter')?.text && matchesAll(settings, prefix);
  });
}

/** Each policy's name has the prefix, and one of them matches everything. */
function matchesAll(settings: View | undefined, prefix: string): boolean {
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
