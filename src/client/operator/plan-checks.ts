/** Checks before a plan is applied: members that cannot change, and effects on requests. */
import type { JsonObject } from '../../protocol/strict-json.ts';
import { OperatorError } from './operator-error.ts';
import { newestRevision } from './plan.ts';
import type { CurrentSite, SiteFile, SitePolicy, SiteSource } from './site-file.ts';

/**
 * Rejects a site file that changes immutable members of an existing object. Ignoring the change would mislead an operator
 * who restricts who can enroll.
 * @throws OperatorError `member_fixed`, `source_scope_mismatch`, before any change
 */
export function refuseFixedChanges(file: SiteFile, current: CurrentSite): void {
  const { site } = file;
  requireSame('/site/trust_domain', site.trust_domain, current.site?.trust_domain, 'declare another site');
  requireSame('/site/issuer_url', site.issuer_url, current.site?.issuer_url, 'declare another site');
  for (const source of file.sources ?? []) refuseAnotherScope(source, current.sources.get(source.name));
  for (const [index, policy] of (file.enrollment_policies ?? []).entries()) {
    const held = current.policies.get(policy.name);
    if (held !== undefined)
      refuseAnotherIdentity(`/enrollment_policies/${index}`, policy, held, file, current);
  }
}

function refuseAnotherIdentity(
  place: string,
  policy: SitePolicy,
  held: JsonObject,
  file: SiteFile,
  current: CurrentSite,
): void {
  const advice = 'declare a policy of another name';
  requireSame(`${place}/verified_subject`, policy.verified_subject, held.verified_subject, advice);
  requireSame(`${place}/client`, policy.client, held.client_id, advice);
  const sourceId = current.sources.get(policy.source)?.source_id;
  if (sourceId !== held.source_id) {
    throw fixed(`${place}/source`, `the policy belongs to source ${String(held.source_id)}`, advice);
  }
  const issuer = file.sources?.find(({ name }) => name === policy.source)?.issuer;
  requireSame(`${place}'s verified issuer`, issuer, held.verified_issuer, advice);
}

/** Whether a live source was activated for another cluster than the file declares. */
function refuseAnotherScope(source: SiteSource, held: JsonObject | undefined): void {
  const revision = held && newestRevision(held);
  const isLive = ['activating', 'publishing', 'active', 'suspended'].includes(String(revision?.state));
  const isTheSame = revision?.issuer === source.issuer;
  if (!isLive || !isTheSame || revision?.detected_scope === source.expected_scope) return;
  throw new OperatorError(
    'refused',
    'source_scope_mismatch',
    `source ${source.name} was validated as ${String(revision?.detected_scope)}, the file expects ${source.expected_scope}`,
  );
}

function requireSame(place: string, declared: unknown, held: unknown, advice: string): void {
  if (held === undefined || declared === held) return;
  throw fixed(place, `it is ${JSON.stringify(held)}`, advice);
}

function fixed(place: string, why: string, advice: string): OperatorError {
  return new OperatorError('usage', 'member_fixed', `${place} cannot change (${why}): ${advice}`);
}

interface PlanWarning {
  readonly code: 'skew_raised';
  readonly text: string;
  /** How long verifiers with a single Redis server deny every request. */
  readonly deniedSeconds: number;
}

/** Warns about the effect of a plan on requests. */
export function planWarnings({ site }: SiteFile, current: CurrentSite): readonly PlanWarning[] {
  const [from, to] = [current.site?.skew_seconds, site.skew_seconds];
  if (typeof from !== 'number' || to === undefined || to <= from) return [];
  const isSingle = (site.single_verifier ?? current.site?.single_verifier) === true;
  const deniedSeconds = fenceSeconds(to);
  const text =
    `raising skew_seconds from ${from} to ${to} makes verifiers deny every request for ${deniedSeconds} s after they load it` +
    ` (replay_store_unavailable, fenced); with Sentinels or a Cluster at least ${LEAST_MARGIN_SECONDS} s longer` +
    (isSingle ? `; with --replay memory for ${to + 1} s` : '');
  return [{ code: 'skew_raised', text, deniedSeconds }];
}

/** F of the table in docs/replay.md "Fences", where replicas may be promoted. */
const LEAST_MARGIN_SECONDS = 12;

/** Source: docs/replay.md "Fences", with F = 0. */
function fenceSeconds(skewSeconds: number): number {
  return 2 * skewSeconds + 1;
}
