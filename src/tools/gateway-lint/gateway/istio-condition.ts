/**
 * Istio's conditional checks: an rbac filter that denies nothing writes the name of the matching rule into metadata,
 * and ext_authz runs if it finds there the rule of an AuthorizationPolicy CUSTOM. Network filters do the same for
 * connections other than HTTP. Sources: Istio 1.31, pilot/pkg/security/authz/builder/builder.go; Envoy,
 * source/extensions/filters/http/rbac/rbac_filter.cc.
 */
import type { HttpFilter, Override } from './gateway.ts';
import { isSetAside } from './rbac.ts';
import { mayBe, typed } from './read-filters.ts';
import type { Member, View } from './view.ts';

/** Metadata namespaces that rbac filters write, whatever their names. */
const HTTP_NAMESPACE = 'envoy.filters.http.rbac';
const NETWORK_NAMESPACE = 'envoy.filters.network.rbac';
const WRITTEN = 'shadow_effective_policy_id';

/** Filters that write no metadata, and do not pause a request while another writes some. */
const QUIET = new Set([
  'alpn',
  'cors',
  'csrf',
  'grpc_stats',
  'header_mutation',
  'io.istio.http.peer_metadata.Config',
  'stats.PluginConfig',
]);

/** The properties of a filter before the check on which the condition depends. */
interface Step {
  /** Settings of an rbac filter. */
  readonly rbac: View | undefined;
  /** Whether no route overrides its settings. */
  readonly isSame: boolean;
  readonly runsAlways: boolean;
  readonly isQuiet: boolean;
}

/** Whether the condition of the check is true for every request, because of a filter before it. */
export function isAskedAlways(
  check: HttpFilter,
  before: readonly HttpFilter[],
  overrides: readonly Override[],
): boolean {
  const condition = check.settings?.get('filter_enabled_metadata');
  const steps = before.map(({ condition: around, entry, kind, name, settings }): Step => {
    const isSame = around === undefined && !overrides.some((override) => override.name === name);
    return {
      rbac: kind === 'rbac' ? settings : undefined,
      isSame,
      runsAlways: isSame && !mayBe(entry.get('disabled')),
      isQuiet: around === undefined && QUIET.has(kind) && typed(entry.get('typed_config')) !== undefined,
    };
  });
  return isMetAlways(condition, HTTP_NAMESPACE, steps);
}

/**
 * Whether the network filter ext_authz checks every connection with the verifier, which denies all of them, because
 * bytes other than HTTP have no proof. Envoy checks at the caller's first bytes, so bytes that a server sends first
 * pass (docs/operate/gateway-lint.md "What it cannot see").
 */
export function isConnectionRefused(before: readonly View[]): boolean {
  const messages = before.map((filter) => typed(filter.get('typed_config')));
  const steps = messages.map((message): Step => {
    const type = message?.type ?? '';
    const rbac = /\.filters\.network\.rbac\.v\w+\.RBAC$/.test(type) ? message?.settings : undefined;
    return { rbac, isSame: true, runsAlways: true, isQuiet: isIstioStatistics(type) };
  });
  return messages.some((message, at) => {
    if (!/\.filters\.network\.ext_authz\.v\w+\.ExtAuthz$/.test(message?.type ?? '')) return false;
    const condition = message?.settings.get('filter_enabled_metadata');
    const isMet = condition === undefined || isMetAlways(condition, NETWORK_NAMESPACE, steps.slice(0, at));
    return isMet && !mayBe(message?.settings.get('failure_mode_allow'));
  });
}

/** Types of network filters that change nothing. */
export function isIstioStatistics(type: string): boolean {
  return type === 'envoy.tcp.metadataexchange.config.MetadataExchange' || type === 'stats.PluginConfig';
}

/** Whether one filter writes the required value, and no later filter overwrites it. */
function isMetAlways(condition: View | undefined, namespace: string, steps: readonly Step[]): boolean {
  const prefix = condition?.at('value', 'string_match', 'prefix')?.text ?? '';
  const [path, ...deeper] = condition?.list('path') ?? [];
  const key = path?.get('key')?.text ?? '';
  if (prefix === '' || deeper.length > 0 || mayBe(condition?.get('invert'))) return false;
  if (condition?.get('filter')?.text !== namespace) return false;
  return steps.some(
    ({ rbac, runsAlways }, at) =>
      runsAlways &&
      rbac !== undefined &&
      writes(rbac, key) &&
      hasPrefix(rbac, prefix) &&
      policiesOf(rbac).some(({ view }) => isForAll(view)) &&
      steps.slice(at + 1).every((step) => leavesIt(step, key, prefix)),
  );
}

function leavesIt({ isQuiet, isSame, rbac }: Step, key: string, prefix: string): boolean {
  return isQuiet || (rbac !== undefined && isSame && (!writes(rbac, key) || hasPrefix(rbac, prefix)));
}

function writes(rbac: View, key: string): boolean {
  const written = `${rbac.get('shadow_rules_stat_prefix')?.text ?? ''}${WRITTEN}`;
  return SHADOWS.some((name) => rbac.get(name) !== undefined) && key === written;
}

const SHADOWS = ['shadow_rules', 'shadow_matcher'];

/** Whether everything that it writes has the prefix. */
function hasPrefix(rbac: View, prefix: string): boolean {
  return !isSetAside(rbac, 'shadow_rules') && policiesOf(rbac).every(({ name }) => name.startsWith(prefix));
}

function policiesOf(rbac: View): readonly Member[] {
  return rbac.at('shadow_rules', 'policies')?.members() ?? [];
}

const MATCHED = ['permissions', 'principals'];

/** A policy that matches every request: Envoy requires its permissions, its principals and all other members to match. */
function isForAll(policy: View): boolean {
  return (
    policy.members().every(({ name }) => MATCHED.includes(name)) &&
    MATCHED.every((member) => policy.list(member).some(isAny))
  );
}

/** A Permission or Principal that always matches. */
function isAny(one: View): boolean {
  if (one.members().length !== 1) return false;
  const all = one.at('and_rules', 'rules') ?? one.at('and_ids', 'ids');
  if (all !== undefined) return all.items().length > 0 && all.items().every(isAny);
  const some = one.at('or_rules', 'rules') ?? one.at('or_ids', 'ids');
  if (some !== undefined) return some.items().some(isAny);
  return one.get('any')?.flag === true;
}
