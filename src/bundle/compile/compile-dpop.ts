/**
 * Rules of routes that accept DPoP proofs.
 * Source: docs/design/bundle.md "Rules that a load enforces".
 */
import { NEVER_BOUND, type UnboundPart } from '../../protocol/proof-format.ts';
import type { Faults } from '../format/bundle-error.ts';
import type { RouteContent } from '../format/schema.ts';

export function acceptsDpop({ accepted_proofs }: Pick<RouteContent, 'accepted_proofs'>): boolean {
  return accepted_proofs?.includes('dpop') === true;
}

/** What requests with a DPoP proof may have unbound. */
export function compileUnbound(entry: RouteContent, path: string, faults: Faults): ReadonlySet<UnboundPart> {
  const unbound = new Set(entry.unbound);
  if (!acceptsDpop(entry)) {
    for (const member of ['unbound', 'dpop_nonce', 'oauth_revocation'] as const) {
      if (entry[member] !== undefined) faults.add('value_invalid', `${path}/${member}`, 'only with dpop');
    }
    return unbound;
  }
  // An author who writes them has read that such a proof is good for any route and site at its URL.
  const missing = NEVER_BOUND.filter((part) => !unbound.has(part));
  if (missing.length > 0) {
    const text = `dpop needs ${missing.join(' and ')} in unbound`;
    faults.add(entry.unbound === undefined ? 'missing_member' : 'value_invalid', `${path}/unbound`, text);
  }
  if ((entry.signed_headers ?? []).length > 0 && !unbound.has('headers')) {
    faults.add('value_invalid', `${path}/unbound`, 'dpop beside signed_headers needs headers in unbound');
  }
  if (entry.passport_header !== undefined) {
    faults.add('value_invalid', `${path}/passport_header`, 'not together with dpop');
  }
  return unbound;
}
