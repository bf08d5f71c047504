/**
 * Chooses among the X.509-SVIDs of a workload. The Workload API guarantees no order, so the first one cannot be the
 * default.
 */
import { BrokerError } from './broker-error.ts';
import type { CallerSvid } from './caller-prover.ts';

export interface SvidOffer extends CallerSvid {
  /** The operator's hint for this SVID, such as `internal`. */
  readonly hint?: string | undefined;
}

export interface SvidChoice {
  readonly spiffeId: string | undefined;
  readonly hint: string | undefined;
}

/**
 * Several SVIDs of one SPIFFE ID and hint are one identity; any of them can be used.
 * @throws BrokerError `svid_ambiguous`, `svid_not_found`
 */
export function chooseSvid<S extends SvidOffer>(svids: readonly S[], { hint, spiffeId }: SvidChoice): S {
  const fits = svids.filter(
    (svid) =>
      (spiffeId === undefined || svid.spiffeId === spiffeId) && (hint === undefined || svid.hint === hint),
  );
  const [first] = fits;
  if (first === undefined) {
    const text = `the workload has no X.509-SVID of this SPIFFE ID or hint; it has ${listed(svids)}`;
    throw new BrokerError('usage', 'svid_not_found', text);
  }
  if (fits.every((svid) => svid.spiffeId === first.spiffeId)) return first;
  const text = `the workload has several X.509-SVIDs, choose with --svid-id or --svid-hint: ${listed(fits)}`;
  throw new BrokerError('usage', 'svid_ambiguous', text);
}

function listed(svids: readonly SvidOffer[]): string {
  const names = svids.map(({ hint, spiffeId }) => (hint ? `${spiffeId} (hint ${hint})` : spiffeId));
  return names.join(', ') || 'none';
}
