/**
 * Why an SVID is rejected: a closed set of stable codes. Texts never quote a token or a certificate.
 * Source: docs/operate/broker.md "Problems".
 */

export const SPIFFE_PROBLEM_CODES = [
  /** Not certificates in DER, too many, or too large; not a compact JWS. */
  'svid_malformed',
  /** A CA certificate, or one whose key may sign certificates. */
  'svid_not_leaf',
  /** Key usage or extended key usage is not a leaf's, or the key or algorithm is too weak. */
  'svid_key_usage',
  /** Not exactly one URI in the subject alternative name. */
  'svid_names',
  /** Not a canonical SPIFFE ID with a path. */
  'svid_id',
  /** `/spire` and below: identities of SPIRE itself, not of a workload. */
  'svid_reserved_id',
  /** No bundle for the trust domain. */
  'trust_domain_unknown',
  /** No authority of the SVID's own trust domain signed it. */
  'svid_untrusted',
  /** A signer's constraints forbid this certificate, or a critical extension is unknown. */
  'svid_constraints',
  'svid_expired',
  'svid_not_yet_valid',
  /** A header member or algorithm that a JWT-SVID must not have. */
  'jwt_svid_header',
  'jwt_svid_key_unknown',
  'jwt_svid_signature',
  /** Not exactly one audience, or another one. */
  'jwt_svid_audience',
  'jwt_svid_claims',
] as const;
export type SpiffeProblemCode = (typeof SPIFFE_PROBLEM_CODES)[number];

export interface SpiffeProblem {
  readonly kind: 'problem';
  readonly code: SpiffeProblemCode;
  /** One line: the finding, and the remedy where it is not obvious. */
  readonly text: string;
}

export function spiffeProblem(code: SpiffeProblemCode, text: string): SpiffeProblem {
  return { kind: 'problem', code, text };
}
