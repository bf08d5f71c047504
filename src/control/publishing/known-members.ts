/**
 * Optional bundle members that targets know. A target rejects a bundle with a member that it does not know, so Control
 * withholds such a member until every verifier of every attached target names it in its requests.
 * Source: docs/design/bundle.md "Distribution".
 */
import { MAX_WAIT_SECONDS, OPTIONAL_MEMBERS } from '../../bundle/format/bundle-limits.ts';
import type { RowOf } from '../store/repositories/records.ts';
import type { Transaction } from '../store/transaction.ts';

export type OptionalMember = (typeof OPTIONAL_MEMBERS)[number];

/** Time of the last request that did not name the member. */
const LACKED_AT = {
  blocked: 'blockedLackedAtMs',
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

/** Columns that a request changes. @param lacked members that it did not name */
export function columnsOfRequest(lacked: readonly OptionalMember[], nowMs: number) {
  return {
    lastSeenAtMs: nowMs,
    ...(lacked.includes('blocked') && { blockedLackedAtMs: nowMs }),
    ...(lacked.includes('passport_header') && { passportHeaderLackedAtMs: nowMs }),
  };
}

/** Attached targets that sent no request yet, or recently one that did not name the member. */
export async function targetsWithout(
  tx: Transaction,
  siteId: string,
  member: OptionalMember,
): Promise<readonly RowOf<'target'>[]> {
  const attached = await tx.targets.attached(siteId);
  return attached.filter((row) => {
    const lackedAtMs = row[LACKED_AT[member]];
    return row.lastSeenAtMs === null || (lackedAtMs !== null && row.lastSeenAtMs - lackedAtMs < ALL_SEEN_MS);
  });
}
