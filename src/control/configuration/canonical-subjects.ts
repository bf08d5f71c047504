/**
 * Rejects subjects that are not in canonical form when they are written. Control still publishes older ones that it
 * stored before; verifiers load them, and they match no caller (docs/bundle.md "Rules that a load enforces").
 */

import type { AllowedSources, BrokerDefinition } from '../../api-contract/routes-contract.ts';
import { isCanonicalSubject, isCanonicalSubjectPrefix, SPIFFE_ID_RULE } from '../../protocol/spiffe-id.ts';
import { ApiProblem } from '../domain/api-problem.ts';

/** @throws ApiProblem `definition_invalid` */
export function rejectOddSources(sources: AllowedSources): void {
  rejectAt(
    sources.flatMap(({ subject_exact: exact = '', subject_prefix: prefix = '' }, index) => [
      ...(isCanonicalSubject(exact) ? [] : [`/body/allowed_sources/${index}/subject_exact`]),
      ...(isCanonicalSubjectPrefix(prefix) ? [] : [`/body/allowed_sources/${index}/subject_prefix`]),
    ]),
  );
}

/** @throws ApiProblem `definition_invalid` */
export function rejectOddPrefixes({ subject_prefixes: prefixes }: BrokerDefinition): void {
  rejectAt(
    prefixes.flatMap((prefix, index) =>
      isCanonicalSubjectPrefix(prefix) ? [] : [`/body/definition/subject_prefixes/${index}`],
    ),
  );
}

function rejectAt(pointers: readonly string[]): void {
  if (pointers.length === 0) return;
  const faults = pointers.map((pointer) => ({ pointer, reason: `not ${SPIFFE_ID_RULE}` }));
  throw new ApiProblem('definition_invalid', undefined, { faults });
}
