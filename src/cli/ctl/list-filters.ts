/** The flags of `proofgate ctl get` that select the items of a list. Control selects; the command only passes them on. */
import { usageError } from '../../process/program/errors.ts';
import { optional, parseDurationMs, type SettingValues, text } from '../../process/settings/settings.ts';
import { isMoment } from '../../protocol/rfc3339.ts';

export const LIST_FILTERS = {
  state: optional(text('--state <state>', 'enrollments, keys: those in this state')),
  client: optional(text('--client <client>', 'keys, profiles: those of this client')),
  route: optional(text('--route <route>', 'profiles: those for this route')),
  policy: optional(text('--policy <policy>', 'enrollments: those with this policy')),
  fingerprint: optional(text('--fingerprint <fingerprint>', 'keys: those with this fingerprint')),
  kind: optional(text('--kind <kind>', 'audit: events of this kind, such as derived_key.revoke')),
  actor: optional(text('--actor <actor>', 'audit: events of this actor')),
  resource: optional(text('--resource <id>', 'audit: events of this resource')),
  since: optional(
    text('--since <time>', 'audit: all events since then, RFC 3339, or a duration ago such as 24h'),
  ),
  until: optional(text('--until <time>', 'audit: events before then, as --since')),
};

type FilterName = keyof typeof LIST_FILTERS | 'subject';
export type FilterValues = SettingValues<typeof LIST_FILTERS> & { readonly subject: string | undefined };

/** By kind: the query parameters of Control's API. */
const PARAMETERS: { readonly [kind: string]: { readonly [F in FilterName]?: string } } = {
  enrollments: { state: 'state', policy: 'policy_id' },
  keys: { state: 'status', client: 'client_id', subject: 'subject', fingerprint: 'fingerprint' },
  profiles: { client: 'client_id', route: 'route_id' },
  audit: {
    kind: 'kind',
    actor: 'actor',
    resource: 'resource_id',
    since: 'since',
    until: 'until',
  },
};
const FILTER_NAMES: readonly FilterName[] = [...(Object.keys(LIST_FILTERS) as FilterName[]), 'subject'];
const AUDIT_KIND = 'proofgate.control.';

/**
 * The query of a list.
 * @param policyId ID of the policy that `policy` names
 * @throws CliError `filter_unused`, `bad_time`
 */
export function filterQuery(
  kind: string,
  { policyId, ...values }: FilterValues & { readonly policyId?: string | undefined },
  nowMs: number,
): { readonly [parameter: string]: string } {
  const query: Record<string, string> = {};
  for (const name of FILTER_NAMES) {
    const value = values[name];
    if (value === undefined) continue;
    const parameter = PARAMETERS[kind]?.[name];
    if (parameter === undefined) throw usageError('filter_unused', `--${name} does not select ${kind}`);
    query[parameter] = parameterValue(name, value, policyId, nowMs);
  }
  return query;
}

function parameterValue(
  name: FilterName,
  value: string,
  policyId: string | undefined,
  nowMs: number,
): string {
  switch (name) {
    case 'policy':
      return policyId ?? value;
    case 'kind':
      return value.startsWith(AUDIT_KIND) ? value : `${AUDIT_KIND}${value}`;
    case 'since':
    case 'until':
      return momentOf(name, value, nowMs);
    default:
      return value;
  }
}

function momentOf(flag: string, value: string, nowMs: number): string {
  if (isMoment(value)) return value;
  const agoMs = parseDurationMs(value);
  if (agoMs === undefined || agoMs > nowMs) {
    throw usageError(
      'bad_time',
      `--${flag} must be a time such as 2026-11-21T04:00:00Z, or a duration such as 24h`,
    );
  }
  return new Date(nowMs - agoMs).toISOString();
}
