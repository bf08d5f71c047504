/**
 * SPIFFE IDs of workloads and trust domains.
 * Sources: SPIFFE-ID section 2; X509-SVID sections 3.1 and 5.2.
 */
import { isCanonicalSubject, SPIFFE_ID_RULE, TRUST_DOMAIN_PATTERN } from '../protocol/spiffe-id.ts';
import { type SpiffeProblem, spiffeProblem } from './spiffe-problem.ts';

export interface WorkloadId {
  readonly kind: 'workload_id';
  readonly spiffeId: string;
  readonly trustDomain: string;
}

const SCHEME = 'spiffe://';

/** Parses the ID of a workload: canonical, with a path, and not one of SPIRE's own. */
export function parseWorkloadId(text: string): WorkloadId | SpiffeProblem {
  const id = parseServerId(text);
  if (id.kind === 'problem') return id;
  const path = text.slice(SCHEME.length + id.trustDomain.length);
  // SPIRE reserves the path for its servers and agents, which hold SVIDs of the same authorities.
  return path === '/spire' || path.startsWith('/spire/')
    ? spiffeProblem('svid_reserved_id', 'SPIFFE IDs below /spire belong to SPIRE itself')
    : id;
}

/** Parses any canonical ID with a path; SPIRE's own serve bundle endpoints. */
export function parseServerId(text: string): WorkloadId | SpiffeProblem {
  if (!text.startsWith(SCHEME) || !isCanonicalSubject(text)) {
    return spiffeProblem('svid_id', `the SPIFFE ID must be ${SPIFFE_ID_RULE}`);
  }
  const trustDomain = text.slice(SCHEME.length, text.indexOf('/', SCHEME.length));
  return { kind: 'workload_id', spiffeId: text, trustDomain };
}

const TRUST_DOMAIN = new RegExp(TRUST_DOMAIN_PATTERN);

export function isTrustDomain(text: string): boolean {
  return TRUST_DOMAIN.test(text);
}

/** The trust domain of `spiffe://name`, the spelling of the Workload API's bundles; undefined for anything else. */
export function parseTrustDomainId(text: string): string | undefined {
  const name = text.startsWith(SCHEME) ? text.slice(SCHEME.length) : '';
  return isTrustDomain(name) ? name : undefined;
}
