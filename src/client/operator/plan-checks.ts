/** Checks before a plan is applied: members that cannot change, and effects on requests. */
import { isJsonObject, type JsonObject } from '../../protocol/strict-json.ts';
import { OperatorError } from './operator-error.ts';
import { isSame, newestRevision } from './plan.ts';
import {
  brokerName,
  type CurrentSite,
  type SiteBroker,
  type SiteFile,
  type SitePolicy,
  type SiteSource,
} from './site-file.ts';

/**
 * Rejects a site file that changes immutable members of an existing object. Ignoring the change would mislead an operator
 * who restricts who can enroll.
 * @throws OperatorError `member_fixed`, `source_scope_mismatch`, `broker_keys_differ`, before any change
 */
export function refuseFixedChanges(file: SiteFile, current: CurrentSite): void {
  const { site } = file;
  requireSame('/site/trust_domain', site.trust_domain, current.site?.trust_domain, 'declare another site');
  requireSame('/site/issuer_url', site.issuer_url, current.site?.issuer_url, 'declare another site');
  for (const [index, broker] of (file.brokers ?? []).entries()) {
    refuseOtherKeys(`/brokers/${index}/keys`, broker, site.site_id, current);
  }
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

/** Keys are pinned by `broker-keys refresh` alone: a changed file must not make anybody trusted, nor seem to end trust. */
function refuseOtherKeys(place: string, broker: SiteBroker, siteId: string, { brokers }: CurrentSite): void {
  const held = brokers.get(brokerName(broker));
  if (broker.keys === undefined || held === undefined) return;
  const pinned = pinnedKeys(held);
  const [added, gone] = [missingFrom(pinned, broker.keys), missingFrom(broker.keys, pinned)];
  if (added.length === 0 && gone.length === 0) return;
  const differences = [
    ...(added.length === 0 ? [] : [`not pinned: ${added.join(', ')}`]),
    ...(gone.length === 0 ? [] : [`pinned, but not in the file: ${gone.join(', ')}`]),
  ];
  const refresh = `proofgate ctl broker-keys refresh --site ${siteId} --issuer ${broker.issuer} --trust-domain ${broker.trust_domain}`;
  const advice = `apply never changes pinned keys: use ${refresh}, and correct or remove the member`;
  throw new OperatorError('refused', 'broker_keys_differ', `${place}: ${differences.join('; ')}; ${advice}`);
}

function pinnedKeys({ definition }: JsonObject): readonly unknown[] {
  return isJsonObject(definition) && Array.isArray(definition.keys) ? definition.keys : [];
}

/** The `kid`s of keys that a list lacks, or has otherwise. */
function missingFrom(list: readonly unknown[], keys: readonly unknown[]): readonly string[] {
  return keys
    .filter((key) => !list.some((other) => isSame(key, other)))
    .map((key) => (isJsonObject(key) ? String(key.kid) : '?'));
}

function requireSame(place: string, declared: unknown, held: unknown, advice: string): void {
  if (held === undefined || declared === held) return;
  throw fixed(place, `it is ${JSON.stringify(held)}`, advice);
}

function fixed(place: string, why: string, advice: string): OperatorError {
  return new OperatorError('usage', 'member_fixed', `${place} cannot change (${why}): ${advice}`);
}

interface PlanWarning {
  readonly code: 'skew_raised' | 'broker_without_keys';
  readonly text: string;
  /** `skew_raised`: how long verifiers with a single Redis server deny every request. */
  readonly deniedSeconds?: number;
}

/** Warns about the effect of a plan on requests. */
export function planWarnings(file: SiteFile, current: CurrentSite): readonly PlanWarning[] {
  return [
    ...skewWarnings(file, current),
    ...(file.brokers ?? []).flatMap((each) => keyWarning(each, file, current)),
  ];
}

function keyWarning(
  broker: SiteBroker,
  { site }: SiteFile,
  { brokers }: CurrentSite,
): readonly PlanWarning[] {
  const held = brokers.get(brokerName(broker));
  const keys = held === undefined ? (broker.keys ?? []) : pinnedKeys(held);
  if (keys.length > 0) return [];
  const { issuer, trust_domain: trustDomain } = broker;
  const text =
    `no key of broker ${issuer} for ${trustDomain} is pinned, so verifiers reject its passports:` +
    ` proofgate ctl broker-keys refresh --site ${site.site_id} --issuer ${issuer} --trust-domain ${trustDomain}`;
  return [{ code: 'broker_without_keys', text }];
}

function skewWarnings({ site }: SiteFile, current: CurrentSite): readonly PlanWarning[] {
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
