/**
 * Optional bundle members that targets know. A target rejects a bundle with a member that it does not know, so Control
 * withholds such a member until every attached target names it in its requests.
 * Source: docs/bundle.md "Distribution".
 */
import { OPTIONAL_MEMBERS } from '../../bundle/format/bundle-limits.ts';
import type { RowOf } from '../store/repositories/records.ts';
import type { Transaction } from '../store/transaction.ts';

export type OptionalMember = (typeof OPTIONAL_MEMBERS)[number];

/** @param header of a target's request; a verifier before 0.4 sends none @returns the column's value */
export function knownMembersOf(header: string | undefined): string {
  const named = new Set((header ?? '').split(',').map((name) => name.trim()));
  return OPTIONAL_MEMBERS.filter((member) => named.has(member)).join(',');
}

/** Attached targets that did not name the member in their last request, or sent none yet. */
export async function targetsWithout(
  tx: Transaction,
  siteId: string,
  member: OptionalMember,
): Promise<readonly RowOf<'target'>[]> {
  const attached = await tx.targets.attached(siteId);
  return attached.filter(({ knownMembers }) => knownMembers?.split(',').includes(member) !== true);
}
