/**
 * Enrollments as operators see and decide them; what workloads see is in `enrollment.ts`.
 * Source: docs/control.md "Enrollment".
 */
import Type, { type Static } from 'typebox';
import { ENROLLMENT_STATES } from '../../domain/enrollment.ts';
import { pageOf } from '../pagination.ts';
import { closed, moment, text, version } from './fields.ts';

const STATE = Type.Enum([...ENROLLMENT_STATES]);

export const ENROLLMENT = Type.Object(
  {
    enrollment_id: text(64, 'Names the enrollment.'),
    site_id: text(512, 'Its Auth Site.'),
    policy_id: text(64, 'The policy that it was made under.'),
    client_id: text(512, 'The client that its key acts for.'),
    source_id: text(64, 'The source that its token was verified against.'),
    source_revision: Type.Integer({ minimum: 1, description: 'The exact revision.' }),
    state: STATE,
    fingerprint: text(43, 'Of the public key: RFC 7638 thumbprint, SHA-256, base64url.'),
    verified_issuer: text(512, "The workload token's iss."),
    verified_subject: text(512, "The workload token's sub."),
    provenance: Type.Record(Type.String(), Type.String(), { description: 'What else the token told.' }),
    key_expires_at: moment('When the key ends; fixed when the submission was accepted.'),
    denial_code: Type.Optional(text(64, 'Why it was denied; stable.')),
    decided_by: Type.Optional(text(1024, 'Who decided; control itself where nobody had to.')),
    decided_at: Type.Optional(moment('When it was decided.')),
    key_id: Type.Optional(text(128, 'The key that was issued.')),
    created_at: moment('When the submission was accepted.'),
    version,
  },
  { ...closed, $id: 'Enrollment' },
);

export const ENROLLMENT_PAGE = pageOf(ENROLLMENT, 'EnrollmentPage');

export const ENROLLMENT_FILTER = {
  state: Type.Optional(STATE),
  policy_id: Type.Optional(text(64, 'Only of this policy.')),
};

export const ENROLLMENT_DENIAL = Type.Object(
  { reason: Type.Optional(text(512, 'For the audit trail; the workload does not see it.')) },
  { ...closed, $id: 'EnrollmentDenial' },
);

export type EnrollmentView = Static<typeof ENROLLMENT>;
export type EnrollmentDenial = Static<typeof ENROLLMENT_DENIAL>;
