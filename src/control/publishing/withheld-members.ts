/**
 * Publishes observations and accepted proofs while every attached target knows their members. A verifier that does not know one
 * would reject the bundle, and its site would close. So when one appears, the next bundle leaves the member out: everything is
 * enforced, and no request is accepted that was not before.
 * Source: docs/operate/observe.md "With Control", docs/operate/control.md "Accepted proofs".
 */
import { MAX_OBSERVATION_SECONDS } from '../../bundle/format/bundle-limits.ts';
import { keepObservations } from '../../bundle/format/observation-members.ts';
import { keepOAuthIssuers, keepProofFormats } from '../../bundle/format/proof-members.ts';
import type { ProofFormat } from '../../protocol/proof-format.ts';
import { parseTime } from '../../protocol/rfc3339.ts';
import type { JsonObject } from '../../protocol/strict-json.ts';
import { publishChange, requireRow } from '../resource/change.ts';
import type { ControlStore } from '../store/port.ts';
import type { RowOf } from '../store/repositories/records.ts';
import type { MemberPublished } from '../store/repositories/tables.ts';
import type { Transaction } from '../store/transaction.ts';
import { columnsOfRequest, lacks, type OptionalMember } from './known-members.ts';
import type { ReportingTarget } from './target-tokens.ts';

/** Members that bundles leave out, with the site's column for what the newest whole bundle does. */
const COLUMNS = {
  accepted_proofs: 'acceptedProofs',
  enforcement: 'observations',
} as const satisfies { readonly [M in OptionalMember]?: keyof RowOf<'site'> };

export type WithheldMember = keyof typeof COLUMNS;

const MEMBERS = Object.keys(COLUMNS) as readonly WithheldMember[];

/** The member that a verifier must know for a route that accepts the format. */
export const MEMBER_OF_FORMAT: Readonly<Record<ProofFormat, WithheldMember>> = {
  'transcript-v1': 'accepted_proofs',
  'http-message-signatures': 'accepted_proofs',
  dpop: 'accepted_proofs',
};

/** What the newest whole bundle does with each member. */
export type MembersPublished = Pick<RowOf<'site'>, (typeof COLUMNS)[WithheldMember]>;

/**
 * Whether a bundle that is issued now may hold the observation. One that has ended is left out, so that a site does not depend on
 * what its verifiers know any longer than it observes. Verifiers reject one that is longer than 30 days, which is possible when
 * this clock was set back.
 */
export function isObservedAt(untilSeconds: number, nowSeconds: number): boolean {
  return nowSeconds < untilSeconds && untilSeconds - nowSeconds <= MAX_OBSERVATION_SECONDS;
}

interface InBundle {
  readonly withheld: ReadonlySet<WithheldMember>;
  readonly nowSeconds: number;
}

/** The content as a bundle that is issued now contains it. */
export function inBundle<C extends JsonObject>(
  content: C,
  { withheld, nowSeconds }: InBundle,
): { readonly content: C; readonly members: MembersPublished } {
  const members: Record<keyof MembersPublished, MemberPublished> = {
    acceptedProofs: 'none',
    observations: 'none',
  };
  /** Call it for each use of a member. */
  const isPublished = (member: WithheldMember) => {
    members[COLUMNS[member]] = withheld.has(member) ? 'withheld' : 'published';
    return !withheld.has(member);
  };
  const observed = keepObservations(
    content,
    (until) => isObservedAt(parseTime(until) ?? 0, nowSeconds) && isPublished('enforcement'),
  );
  const kept = keepProofFormats(observed, (format) => isPublished(MEMBER_OF_FORMAT[format]));
  return { content: keepOAuthIssuers(kept, () => isPublished('accepted_proofs')), members };
}

/**
 * Attached targets because of which bundles do not hold the member. One that has sent no request does not count: its first request
 * waits for a bundle that it can accept.
 */
export async function targetsWithholding(
  tx: Transaction,
  siteId: string,
  member: WithheldMember,
): Promise<readonly RowOf<'target'>[]> {
  return (await tx.targets.attached(siteId)).filter((row) => lacks(row, member));
}

/** @param targets the attached ones of a site */
export function membersWithheldFor(targets: Iterable<RowOf<'target'>>): ReadonlySet<WithheldMember> {
  const rows = [...targets];
  return new Set(MEMBERS.filter((member) => rows.some((row) => lacks(row, member))));
}

export async function withheldMembers(tx: Transaction, siteId: string): Promise<ReadonlySet<WithheldMember>> {
  return membersWithheldFor(await tx.targets.attached(siteId));
}

/** Whether a bundle that is issued now withholds a member that the newest one has, or the reverse. */
export async function changesWithholding(
  tx: Transaction,
  { id, ...site }: Pick<RowOf<'site'>, 'id' | keyof MembersPublished>,
): Promise<boolean> {
  if (MEMBERS.every((member) => site[COLUMNS[member]] === 'none')) return false;
  const withheld = await withheldMembers(tx, id);
  return MEMBERS.some((member) => {
    const { [COLUMNS[member]]: published } = site;
    return published !== 'none' && withheld.has(member) !== (published === 'withheld');
  });
}

/** Members of the newest bundle because of which the target would reject it. */
export function unknownMembers(
  published: MembersPublished,
  { lackedMembers }: Pick<ReportingTarget, 'lackedMembers'>,
): readonly WithheldMember[] {
  return MEMBERS.filter(
    (member) => published[COLUMNS[member]] === 'published' && lackedMembers.includes(member),
  );
}

/** Requests a bundle without the members, for a target that does not know them. Takes no lock when that is done already. */
export async function withholdMembers(
  store: ControlStore,
  target: ReportingTarget,
  members: readonly WithheldMember[],
  nowMs: number,
): Promise<void> {
  const { siteId, targetId } = target;
  const isRequested = async (tx: Transaction) => {
    const row = await tx.targets.find(targetId);
    const isNoted = row !== undefined && members.every((member) => lacks(row, member));
    return isNoted && (await tx.publication.hasPolicyChange(siteId));
  };
  if (await store.read(isRequested)) return;
  await store.writeUnaudited({ kind: 'site', siteId }, async (tx) => {
    await tx.propagation.noteTargets([targetId], columnsOfRequest(target, nowMs));
    const isStillPublished = unknownMembers(requireRow(await tx.sites.find(siteId)), target).length > 0;
    if (isStillPublished) await publishChange(tx, siteId, { kind: 'policy' }, nowMs);
  });
}

/**
 * Publishes withheld members when no target withholds them any more. Call it when the attached targets or their known members may
 * have changed. Takes no lock when there is nothing to publish.
 */
export async function settleWithheld(store: ControlStore, siteId: string, nowMs: number): Promise<void> {
  const isDue = async (tx: Transaction) => {
    const site = await tx.sites.find(siteId);
    const held = MEMBERS.filter((member) => site?.[COLUMNS[member]] === 'withheld');
    if (held.length === 0 || (await tx.publication.hasPolicyChange(siteId))) return false;
    const withheld = await withheldMembers(tx, siteId);
    return held.some((member) => !withheld.has(member));
  };
  if (!(await store.read(isDue))) return;
  await store.writeUnaudited({ kind: 'site', siteId }, async (tx) => {
    if (await isDue(tx)) await publishChange(tx, siteId, { kind: 'policy' }, nowMs);
  });
}
