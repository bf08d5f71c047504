/**
 * Schemas of enrollments for operators, who read and decide them. Schemas for workloads are in `enrollment-contract.ts`.
 * Source: docs/control.md "Enrollment".
 */
import Type, { type Static } from 'typebox';
import { ENROLLMENT_STATES } from '../control/domain/enrollment-states.ts';
import { displayText, givenId, identifier, moment, object, VERSIONED } from './members-contract.ts';

const STATE = Type.Enum([...ENROLLMENT_STATES]);

export const ENROLLMENT = object(
  {
    enrollment_id: givenId('Names the enrollment.'),
    site_id: identifier('Its Auth Site.'),
    policy_id: givenId('The policy that it was made under.'),
    client_id: identifier('The client that its key acts for.'),
    source_id: givenId('The source that its token was verified against.'),
    source_revision: Type.Integer({ minimum: 1, description: 'The exact revision.' }),
    state: STATE,
    fingerprint: givenId('Of the public key: RFC 7638 thumbprint, SHA-256, base64url.'),
    verified_issuer: identifier("The workload token's iss."),
    verified_subject: identifier("The workload token's sub."),
    provenance: Type.Record(Type.String(), Type.String(), { description: 'Other claims of the token.' }),
    key_expires_at: moment('When the key ends; fixed when the submission was accepted.'),
    denial_code: Type.Optional(givenId('Why it was denied; stable.')),
    decided_by: Type.Optional(
      Type.String({ description: 'Operator who decided, or control when no approval was needed.' }),
    ),
    decided_at: Type.Optional(moment('When it was decided.')),
    key_id: Type.Optional(givenId('The key that was issued.')),
    ...VERSIONED,
  },
  'Enrollment',
);

export const ENROLLMENT_FILTER = {
  state: Type.Optional(STATE),
  policy_id: Type.Optional(givenId('Only of this policy.')),
};

export const ENROLLMENT_DENIAL = object(
  { reason: Type.Optional(displayText('For the audit trail; the workload does not see it.')) },
  'EnrollmentDenial',
);

export const ENROLLMENT_PATH = { enrollment_id: givenId('The enrollment.') };

export type EnrollmentView = Static<typeof ENROLLMENT>;
export type EnrollmentDenial = Static<typeof ENROLLMENT_DENIAL>;
