/**
 * Types of what callers send to Control and brokers, and of what they store from Control's answers.
 * Source: docs/reference/openapi.json, docs/reference/broker-openapi.json; `test/caller/service/wire-types.ts` compares them with the schemas.
 */
import type { BodyRule } from '../../protocol/body-binding.ts';
import type { PublicJwk } from '../../protocol/public-key.ts';
import type { PASSPORT_HEADER_MEMBER } from '../../protocol/wire-names.ts';

export interface ChallengeRequest {
  policy: string;
  provider: string;
  public_key: Extract<PublicJwk, { kty: 'OKP' }>;
}

export interface EnrollmentSubmission {
  challenge_id: string;
  workload_token: string;
  /** base64url. */
  signature: string;
}

/** A derived key, as Control answers and as the state file keeps it. */
export interface EnrolledKey {
  key_id: string;
  fingerprint: string;
  status: 'active' | 'revoked' | 'expired';
  /** RFC 3339, UTC. */
  expires_at: string;
  client_id: string;
  issuer: string;
  trust_domain: string;
  subject: string;
  key_binding: 'software';
}

/** The signing profile of one route, as Control answers and as the state file keeps it. */
export interface EnrolledProfile {
  name: string;
  route_id: string;
  method: string;
  path_template: string;
  audience: string;
  origins: string[];
  signed_headers: string[];
  body: BodyRule;
  passport_header?: typeof PASSPORT_HEADER_MEMBER;
}

/** A caller's proof of its identity to a broker. Signatures, hashes and challenges are in base64url. */
export type CallerProof =
  | { kind: 'mtls' }
  | {
      kind: 'signed_form';
      challenge: string;
      /** DER in base64, leaf first. */
      certificates: string[];
      holder_jwk: PublicJwk;
      svid_signature: string;
      holder_signature: string;
    }
  | { kind: 'jwt_svid'; challenge: string; token: string; holder_jwk: PublicJwk; holder_signature: string }
  | {
      kind: 'software_key';
      challenge: string;
      registered_jwk: PublicJwk;
      registered_signature: string;
      holder_jwk?: PublicJwk;
      holder_signature?: string;
    };

export interface PassportRequest {
  audience: string;
  proof: CallerProof;
}
