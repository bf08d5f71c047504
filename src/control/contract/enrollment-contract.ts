/**
 * Schemas of the enrollment endpoints: requests and responses of a workload's tool. Clients import the types from here.
 * Source: docs/design/enrollment.md "Enrollment".
 */
import Type, { type Static } from 'typebox';
import { closed, moment, text } from '../../process/http-service/members-contract.ts';
import { READINESS_CONDITIONS } from '../../protocol/readiness-conditions.ts';
import { PASSPORT_HEADER_MEMBER } from '../../protocol/wire-names.ts';
import { ENROLLMENT_STATES } from './vocabulary.ts';

export const ENROLLMENT_PROVIDERS = ['oidc_jwks'] as const;

export const CHALLENGE_REQUEST = Type.Object(
  {
    policy: text(128, 'The opaque policy reference, from the Enrollment Command Generator.'),
    provider: text(64, 'Only oidc_jwks is supported.'),
    public_key: Type.Object(
      { kty: Type.Literal('OKP'), crv: Type.Literal('Ed25519'), x: text(64, 'base64url, 32 bytes.') },
      { ...closed, description: 'The new public key (RFC 8037).' },
    ),
  },
  { ...closed, $id: 'EnrollmentChallengeRequest' },
);

export const CHALLENGE_ANSWER = Type.Object(
  {
    challenge_id: text(64, 'Names the challenge.'),
    challenge: text(64, '256 bits, base64url. A secret until it is used.'),
    auth_site: text(512, 'The Auth Site that the key will belong to.'),
    expires_at: moment('When the challenge expires.'),
  },
  { ...closed, $id: 'EnrollmentChallenge' },
);

export const ENROLLMENT_SUBMISSION = Type.Object(
  {
    challenge_id: text(64, 'From the challenge.'),
    workload_token: text(16_384, 'The projected service-account token.'),
    signature: text(128, 'Signature of the new key over the lines of proofgate-enroll-v1. base64url.'),
  },
  { ...closed, $id: 'EnrollmentSubmission' },
);

export const PASSPORT_HEADER_FIELD = Type.Optional(
  Type.Enum([PASSPORT_HEADER_MEMBER], {
    description: 'Header that carries the passport. Absent: Authorization.',
  }),
);

/** The signing profile of one route, in the shape of docs/operate/cli.md "Signing profiles". */
export const ENROLLED_PROFILE = Type.Object(
  {
    name: text(512, 'Unique among the key’s profiles.'),
    route_id: text(512, 'The route.'),
    method: text(32, 'As sent, case included.'),
    path_template: text(2048, 'As in the bundle.'),
    audience: text(512, "The passport's aud."),
    origins: Type.Array(text(520, 'scheme://authority.'), { minItems: 1 }),
    signed_headers: Type.Array(text(128, 'Lower-case name.')),
    body: Type.Enum(['bound', 'unbound']),
    passport_header: PASSPORT_HEADER_FIELD,
  },
  { ...closed, $id: 'EnrolledProfile' },
);

export const ENROLLED_KEY = Type.Object(
  {
    key_id: text(128, 'kid of the passports that the key signs.'),
    fingerprint: text(64, 'RFC 7638 thumbprint, SHA-256, base64url.'),
    status: Type.Enum(['active', 'revoked', 'expired']),
    expires_at: moment('When the key expires.'),
    client_id: text(512, 'The client that it acts for.'),
    issuer: text(512, "The passport's iss."),
    trust_domain: text(512, "The passport's trust_domain."),
    subject: text(512, "The passport's sub."),
    key_binding: Type.Literal('software'),
  },
  { ...closed, $id: 'EnrolledKey' },
);

/** Response to a submission (201, or 200 for the same submission again) and to a poll (200). */
export const WORKLOAD_ENROLLMENT = Type.Object(
  {
    enrollment_id: text(64, 'Names the enrollment.'),
    auth_site: text(512, 'The Auth Site.'),
    state: Type.Enum([...ENROLLMENT_STATES]),
    created_at: moment('When the submission was accepted.'),
    denial_code: Type.Optional(text(64, 'Why it was denied; stable.')),
    derived_key: Type.Optional(ENROLLED_KEY),
    signing_profiles: Type.Optional(Type.Array(ENROLLED_PROFILE)),
  },
  { ...closed, $id: 'WorkloadEnrollment' },
);

/** One of the five conditions of runtime readiness (specification "Derived key"). */
export const READINESS_CONDITION = Type.Object(
  {
    condition: Type.Enum([...READINESS_CONDITIONS]),
    state: text(64, 'As the resource or target reports it, such as active or pending.'),
    satisfied: Type.Boolean(),
    since: Type.Optional(moment('When the condition entered this state.')),
    blocked_by: Type.Optional(text(512, 'What the condition waits for.')),
  },
  { ...closed, $id: 'ReadinessCondition' },
);

/**
 * Response to `GET /v1/enrollments/{id}/readiness`. The workload authorizes it with the same `Proofgate-Key` header as
 * a poll of its enrollment. `ready` is true when every condition is satisfied.
 */
export const WORKLOAD_READINESS = Type.Object(
  { ready: Type.Boolean(), conditions: Type.Array(READINESS_CONDITION) },
  { ...closed, $id: 'WorkloadReadiness' },
);

export type ChallengeRequest = Static<typeof CHALLENGE_REQUEST>;
export type ChallengeAnswer = Static<typeof CHALLENGE_ANSWER>;
export type EnrollmentSubmission = Static<typeof ENROLLMENT_SUBMISSION>;
export type EnrolledProfile = Static<typeof ENROLLED_PROFILE>;
export type EnrolledKey = Static<typeof ENROLLED_KEY>;
export type WorkloadEnrollment = Static<typeof WORKLOAD_ENROLLMENT>;
export type ReadinessCondition = Static<typeof READINESS_CONDITION>;
export type WorkloadReadiness = Static<typeof WORKLOAD_READINESS>;
