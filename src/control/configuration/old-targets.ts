/** Rejects settings that bundles would withhold at once, because a verifier of the site does not know them. */
import type { RouteDefinition } from '../contract/routes-contract.ts';
import { MAX_SHOWN_TARGETS } from '../contract/vocabulary.ts';
import { ApiProblem } from '../domain/api-problem.ts';
import { isWithout } from '../publishing/known-members.ts';
import { MEMBER_OF_FORMAT, type WithheldMember } from '../publishing/withheld-members.ts';
import type { RowOf } from '../store/repositories/records.ts';
import type { Transaction } from '../store/transaction.ts';

const SETTINGS: Readonly<Record<WithheldMember, string>> = {
  accepted_proofs: 'accepted_proofs',
  enforcement: 'observations',
};

/** The members that verifiers must know for the route. */
export function membersOfRoute({
  accepted_proofs: formats = [],
  enforcement,
}: RouteDefinition): readonly WithheldMember[] {
  return [
    ...(enforcement === 'observe' ? (['enforcement'] as const) : []),
    ...formats.map((format) => MEMBER_OF_FORMAT[format]),
  ];
}

/** @throws ApiProblem `target_too_old` when a verifier would reject a bundle with one of the members */
export async function rejectOldTargets(
  tx: Transaction,
  siteId: string,
  members: readonly WithheldMember[],
): Promise<void> {
  if (members.length > 0) rejectTargetsWithout(await tx.targets.attached(siteId), members);
}

/** @param targets the attached ones. @throws ApiProblem `target_too_old` */
export function rejectTargetsWithout(
  targets: readonly RowOf<'target'>[],
  members: readonly WithheldMember[],
): void {
  for (const member of new Set(members)) {
    const old = targets.filter((row) => isWithout(row, member));
    if (old.length > 0) throw tooOld(old, SETTINGS[member]);
  }
}

function tooOld(targets: readonly RowOf<'target'>[], setting: string): ApiProblem {
  const shown = targets.slice(0, MAX_SHOWN_TARGETS).map(({ name }) => name);
  const more = targets.length - shown.length;
  const names = `${shown.join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
  return new ApiProblem(
    'target_too_old',
    `verifiers have not reported that they know ${setting}: ${names}; upgrade and start them, or detach the targets`,
  );
}
