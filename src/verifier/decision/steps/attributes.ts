/** Step 4: provenance and context satisfy the route. */
import type { RequiredAttribute, Route } from '../../../bundle/compile/snapshot.ts';
import type { Attributes } from '../../../protocol/passport.ts';
import { type Denial, deny } from '../../../protocol/reasons.ts';
import type { Caller } from '../caller.ts';

export function checkAttributes(route: Route, caller: Caller): Denial | undefined {
  return (
    checkEach(route.requiredProvenance, caller.provenance, 'missing_provenance', 'provenance_mismatch') ??
    checkEach(route.requiredContext, caller.context, 'missing_context', 'context_mismatch')
  );
}

/** Reports missing attributes before mismatches; within each, the first name in byte order. */
function checkEach(
  required: readonly RequiredAttribute[],
  actual: Attributes,
  missing: 'missing_provenance' | 'missing_context',
  mismatch: 'provenance_mismatch' | 'context_mismatch',
): Denial | undefined {
  if (required.length === 0) return undefined;
  const absent = required.find(({ name }) => !actual.has(name));
  if (absent !== undefined) return deny(missing, absent.name);
  const wrong = required.find(({ name, allowed }) => !allowed.has(actual.get(name) ?? ''));
  return wrong === undefined ? undefined : deny(mismatch, wrong.name);
}
