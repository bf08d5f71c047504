/** Challenges in the answer to a denied request: what a caller must send, in each format that the route accepts. */
import type { Route, Snapshot } from '../../bundle/compile/snapshot.ts';
import { acceptSignature, SITE_PROFILE } from '../../protocol/http-signature.ts';
import type { Denial } from '../../protocol/reasons.ts';
import { DPOP_SCHEME, PASSPORT_SCHEME } from '../../protocol/wire-names.ts';
import type { DeniedDecision } from './decide.ts';
import type { RequestFacts } from './facts/request-facts.ts';
import { neededComponents } from './steps/signature-binding.ts';

type Challenges = Pick<DeniedDecision, 'acceptSignature' | 'challenge' | 'dpopNonce'>;

export interface ChallengeInputs {
  readonly facts: RequestFacts;
  readonly route: Route | undefined;
  readonly snapshot: Snapshot | undefined;
  readonly newNonce: () => string | undefined;
}

const NONE: Challenges = {};

/** Empty where the usual answer says it all. */
export function challengesOf(
  denial: Denial,
  { facts, newNonce, route, snapshot }: ChallengeInputs,
): Challenges {
  const { acceptedProofs } = route ?? {};
  if (route === undefined || snapshot === undefined || acceptedProofs === undefined) return NONE;
  if (facts.removesProofs !== true) return NONE;
  const asksForSignature = acceptedProofs.has('http-message-signatures') && isWithoutProof(denial);
  return {
    ...(asksForSignature
      ? { acceptSignature: acceptSignature(SITE_PROFILE, snapshot.authSite, neededComponents(route, facts)) }
      : {}),
    ...(acceptedProofs.has('dpop') && denial.status === 401
      ? { challenge: dpopChallenge(denial, acceptedProofs.size > 1) }
      : {}),
    ...(denial.detail === 'dpop_nonce' ? { dpopNonce: newNonce() } : {}),
  };
}

/** Such an answer says what a signature must cover (RFC 9421 section 5). */
function isWithoutProof({ detail }: Denial): boolean {
  return detail === 'authorization_missing' || detail === 'proof_missing';
}

/** Names of the accepted algorithms (RFC 9449 section 7.1); most libraries know Ed25519 as EdDSA alone. */
const DPOP_ALGORITHMS = 'ES256 Ed25519 EdDSA';

function dpopChallenge({ detail = '' }: Denial, takesPassportScheme: boolean): string {
  const error = dpopError(detail);
  const parameters = [...(error === undefined ? [] : [`error="${error}"`]), `algs="${DPOP_ALGORITHMS}"`].join(
    ', ',
  );
  return `${takesPassportScheme ? `${PASSPORT_SCHEME}, ` : ''}${DPOP_SCHEME} ${parameters}`;
}

/** RFC 9449 sections 7.1 and 9; none for a request without credentials of this kind (RFC 6750 section 3.1). */
function dpopError(detail: string): string | undefined {
  if (detail.startsWith('authorization_')) return undefined;
  if (detail === 'dpop_nonce') return 'use_dpop_nonce';
  return detail.startsWith('proof_') ? 'invalid_dpop_proof' : 'invalid_token';
}
