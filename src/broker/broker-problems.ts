/**
 * Every error that the broker returns, by stable code. Verifying a proof throws {@link BrokerProblem}.
 * Source: docs/operate/broker.md "Problems".
 */
import {
  COMMON_PROBLEMS,
  HttpProblem,
  type HttpProblemOptions,
  type ProblemRow,
} from '../process/http-service/http-problem.ts';
import type { SpiffeProblemCode } from '../spiffe/spiffe-problem.ts';

/** Invalid SVIDs; the detail gives the reason. The codes are those of `src/spiffe/`. */
const SVID_PROBLEMS: { readonly [C in SpiffeProblemCode]: ProblemRow } = {
  svid_malformed: [400, 'The SVID is malformed'],
  svid_not_leaf: [401, 'The certificate is not an SVID of a workload'],
  svid_key_usage: [401, "The SVID's key or its usage is not allowed for an SVID"],
  svid_names: [401, 'The SVID has not exactly one URI'],
  svid_id: [401, "The SVID's SPIFFE ID is not canonical"],
  svid_reserved_id: [403, 'The SPIFFE ID belongs to SPIRE itself'],
  trust_domain_unknown: [403, 'The broker has no bundle for the trust domain'],
  svid_untrusted: [401, 'No authority of its own trust domain signed the SVID'],
  svid_constraints: [401, "The SVID violates a signer's constraints"],
  svid_expired: [401, 'The SVID has expired'],
  svid_not_yet_valid: [401, 'The SVID is not valid yet'],
  jwt_svid_header: [401, "The JWT-SVID's header is not acceptable"],
  jwt_svid_key_unknown: [401, "The JWT-SVID's key is not in its trust domain's bundle"],
  jwt_svid_signature: [401, "The JWT-SVID's signature is invalid"],
  jwt_svid_audience: [401, 'The JWT-SVID has another audience'],
  jwt_svid_claims: [401, "The JWT-SVID's claims are not acceptable"],
};

export const BROKER_PROBLEMS = {
  ...COMMON_PROBLEMS,
  ...SVID_PROBLEMS,
  // The proof
  challenge_invalid: [401, 'The broker did not make this challenge; request one'],
  challenge_expired: [401, 'The challenge has expired; request a new one'],
  client_certificate_missing: [401, 'The connection has no client certificate; present an X.509-SVID'],
  tls_session_resumed: [401, 'A resumed TLS session proves no key; open a new connection'],
  svid_signature_invalid: [401, "The SVID key's signature is invalid"],
  holder_signature_invalid: [401, "The holder key's signature is invalid"],
  registered_signature_invalid: [401, "The registered key's signature is invalid"],
  holder_key_invalid: [400, 'The public key is not a usable Ed25519 or P-256 key'],
  holder_key_unsupported: [400, 'The SVID key is neither P-256 nor Ed25519; use the signed form'],
  key_not_registered: [403, 'The key is not registered at the broker'],
  jwt_svid_not_accepted: [403, 'This broker accepts no JWT-SVIDs'],
  // The caller
  caller_denied: [403, "The caller is on the broker's deny list"],
  trust_domain_not_served: [403, 'The broker has no signing key for the trust domain'],
  credential_ending: [401, 'The credential ends within a second; renew it'],
  holder_key_limit: [429, 'Too many holder keys for one identity; wait as Retry-After says'],
  proofs_not_served: [404, 'This broker signs no requests'],
  connection_not_direct: [
    403,
    "Proofs need TLS to the broker itself with a client certificate of the caller's key, or its Unix socket",
  ],
  request_not_signable: [400, 'No transcript can bind this request'],
  // The broker
  signing_unavailable: [503, 'The signing key does not answer; try again'],
  audit_unavailable: [503, 'The audit trail cannot be written; try again'],
} as const satisfies { readonly [code: string]: ProblemRow };

export type BrokerProblemCode = keyof typeof BROKER_PROBLEMS;

/** The message is for people and never holds a secret. */
export class BrokerProblem extends HttpProblem<BrokerProblemCode> {
  override readonly name = 'BrokerProblem';

  constructor(code: BrokerProblemCode, detail?: string, options: HttpProblemOptions = {}) {
    super(code, BROKER_PROBLEMS[code], detail, options);
  }
}

export function isBrokerProblemCode(code: string): code is BrokerProblemCode {
  return Object.hasOwn(BROKER_PROBLEMS, code);
}
