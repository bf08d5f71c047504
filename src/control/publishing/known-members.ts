/**
 * Optional bundle members that targets know. A target rejects a bundle with a member that it does not know, so Control
 * withholds such a member until every verifier of every attached target names it in its requests.
 * Source: docs/design/bundle.md "Distribution".
 */
import { MAX_WAIT_SECONDS, OPTIONAL_MEMBERS } from '../../bundle/format/bundle-limits.ts';
import {
  type EnforcedObservations,
  enforcedText,
  parseEnforced,
} from '../../bundle/format/enforced-observations.ts';
import type { InstanceReport } from '../../bundle/format/instance-report.ts';
import type { TargetView } from '../contract/targets-contract.ts';
import type { RowOf } from '../store/repositories/records.ts';
import type { Transaction } from '../store/transaction.ts';

export type OptionalMember = (typeof OPTIONAL_MEMBERS)[number];

/** Time of the last request that did not name the member. */
const LACKED_AT = {
  accepted_proofs: 'acceptedProofsLackedAtMs',
  blocked: 'blockedLackedAtMs',
  enforcement: 'enforcementLackedAtMs',
  passport_header: 'passportHeaderLackedAtMs',
} as const satisfies { readonly [M in OptionalMember]: keyof RowOf<'target'> };

/**
 * Verifiers of several versions may share a target. In this time each of them sends a request: a poll waits for 30 s, and a
 * failed one is repeated within 30 s.
 */
const ALL_SEEN_MS = MAX_WAIT_SECONDS * 2 * 1000;

/** @param header of a target's request; a verifier before 0.4 sends none */
export function lackedMembersOf(header: string | undefined): readonly OptionalMember[] {
  const named = new Set((header ?? '').split(',').map((name) => name.trim()));
  return OPTIONAL_MEMBERS.filter((member) => !named.has(member));
}

/** What a request says of the verifier that sent it. */
export interface Reported {
  /** Optional bundle members that it did not name. */
  readonly lackedMembers: readonly OptionalMember[];
  /** What the verifier enforces although the bundle says observe. Undefined: nothing, or it did not say. */
  readonly enforced?: EnforcedObservations | undefined;
  /** Undefined for a verifier that does not say. */
  readonly instance?: InstanceReport | undefined;
  /** The instance's signature of the acknowledgement; undefined in other requests. */
  readonly signature?: string | undefined;
}

/** Columns that a request changes. */
export function columnsOfRequest({ enforced, lackedMembers: lacked }: Reported, nowMs: number) {
  return {
    lastSeenAtMs: nowMs,
    enforcedObservations: enforced === undefined ? null : enforcedText(enforced),
    ...(lacked.includes('accepted_proofs') && { acceptedProofsLackedAtMs: nowMs }),
    ...(lacked.includes('blocked') && { blockedLackedAtMs: nowMs }),
    ...(lacked.includes('enforcement') && { enforcementLackedAtMs: nowMs }),
    ...(lacked.includes('passport_header') && { passportHeaderLackedAtMs: nowMs }),
  };
}

/** Attached targets that sent no request yet, or recently one that did not name the member. */
export async function targetsWithout(
  tx: Transaction,
  siteId: string,
  member: OptionalMember,
): Promise<readonly RowOf<'target'>[]> {
  return (await tx.targets.attached(siteId)).filter((row) => isWithout(row, member));
}

/** Whether the target sent no request yet, or {@link lacks} the member. */
export function isWithout(row: RowOf<'target'>, member: OptionalMember): boolean {
  return row.lastSeenAtMs === null || lacks(row, member);
}

/** Whether the target recently sent a request that did not name the member. */
export function lacks(row: RowOf<'target'>, member: OptionalMember): boolean {
  const { [LACKED_AT[member]]: lackedAtMs, lastSeenAtMs } = row;
  return lastSeenAtMs !== null && lackedAtMs !== null && lastSeenAtMs - lackedAtMs < ALL_SEEN_MS;
}

/** What the verifier last said that it enforces although the bundle says observe. */
export function enforcedView({
  enforcedObservations,
  state,
}: RowOf<'target'>): Pick<TargetView, 'enforced_observations'> {
  const isShown = enforcedObservations !== null && state === 'attached';
  const enforced = isShown ? parseEnforced(enforcedObservations) : undefined;
  return enforced === undefined
    ? {}
    : { enforced_observations: { ...enforced, routes: [...enforced.routes] } };
}
