/**
 * Schemas of derived keys and blocked subjects, as operators see them.
 * Source: specification "Derived key"; docs/design/enrollment.md "Enrollment".
 */

import type { Static } from 'typebox';
import Type from 'typebox';
import {
  closed,
  displayText,
  givenId,
  identifier,
  moment,
  object,
  shownText,
  VERSIONED,
} from '../../process/http-service/members-contract.ts';
import { ACCESS_LEVELS } from '../../protocol/access.ts';
import { ENROLLED_PROFILE, PASSPORT_HEADER_FIELD, READINESS_CONDITION } from './enrollment-contract.ts';
import { ENROLLMENT_STATES, KEY_STATES, PROFILE_STATES } from './vocabulary.ts';

const STATUS = Type.Enum([...KEY_STATES], { description: 'Current state.' });
const BUNDLE_REVISION = (description: string) => Type.Integer({ minimum: 1, description });

export const DERIVED_KEY = object(
  {
    key_id: givenId('kid of the passports that the key signs.'),
    site_id: identifier('Its Auth Site.'),
    client_id: identifier('The client that it acts for.'),
    policy_id: givenId('The enrollment policy.'),
    enrollment_id: givenId('The enrollment.'),
    source_id: givenId('The source that verified its token.'),
    source_revision: Type.Integer({ minimum: 1, description: 'The exact revision.' }),
    fingerprint: givenId('RFC 7638 thumbprint, SHA-256, base64url.'),
    status: STATUS,
    expires_at: moment('When the key expires.'),
    verified_issuer: identifier("The workload token's iss."),
    verified_subject: identifier("The workload token's sub."),
    provenance: Type.Record(Type.String(), Type.String(), { description: 'Other claims of the token.' }),
    revoked_at: Type.Optional(moment('When it was revoked.')),
    revoked_by: Type.Optional(Type.String({ description: 'Actor of the change.' })),
    revoked_reason: Type.Optional(Type.String({ description: 'Reason for the audit trail.' })),
    listed_in_revision: Type.Optional(BUNDLE_REVISION('The bundle revision that first lists it.')),
    revoked_in_revision: Type.Optional(BUNDLE_REVISION('The first bundle revision without it.')),
    last_used_at: Type.Optional(
      moment('Minute of its last allowed request, as targets reported it; absent when none did.'),
    ),
    ...VERSIONED,
  },
  'DerivedKey',
);

export const DERIVED_KEY_FILTER = {
  client_id: Type.Optional(identifier('Only of this client.')),
  status: Type.Optional(STATUS),
  subject: Type.Optional(identifier('Only of verified subjects that contain this text.')),
  fingerprint: Type.Optional(givenId('Only with this fingerprint.')),
};

export const KEY_REVOCATION = object(
  {
    reason: Type.Optional(displayText('For the audit trail.')),
    block_subject: Type.Optional(
      Type.Boolean({ description: "Also reject new enrollments of the key's verified subject." }),
    ),
  },
  'KeyRevocation',
);

export const KEY_REVOCATION_RESULT = object(
  {
    key: DERIVED_KEY,
    revoked_key_ids: Type.Array(givenId('Key ID.'), {
      description: 'IDs of all revoked keys: each valid key with the same public key.',
    }),
    subject_blocked: Type.Boolean(),
  },
  'KeyRevocationResult',
);

export const BLOCKED_SUBJECT = object(
  {
    site_id: identifier('The Auth Site.'),
    issuer: identifier("The workload token's iss."),
    subject: identifier("The workload token's sub."),
    blocked_at: moment('When it was blocked.'),
    blocked_by: Type.String({ description: 'Actor of the change.' }),
  },
  'BlockedSubject',
);

/** Query parameters that identify a blocked subject: issuer and subject together. */
export const BLOCKED_SUBJECT_NAME = {
  issuer: identifier('As listed.'),
  subject: identifier('As listed.'),
};

export const NEW_BLOCKED_SUBJECT = object(
  {
    issuer: identifier("The workload token's iss, exactly."),
    subject: identifier("The workload token's sub, exactly."),
  },
  'NewBlockedSubject',
  undefined,
  { issuer: 'https://oidc.example/id/4F2A', subject: 'system:serviceaccount:prod:billing' },
);

export const DERIVED_KEY_PATH = { key_id: givenId('The derived key.') };

export type DerivedKeyView = Static<typeof DERIVED_KEY>;
export type KeyRevocation = Static<typeof KEY_REVOCATION>;
export type KeyRevocationResult = Static<typeof KEY_REVOCATION_RESULT>;
export type BlockedSubjectView = Static<typeof BLOCKED_SUBJECT>;

/**
 * Schemas of enrollments for operators, who read and decide them. Schemas for workloads are in `enrollment-contract.ts`.
 * Source: docs/design/enrollment.md "Enrollment".
 */
const ENROLLMENT_STATE = Type.Enum([...ENROLLMENT_STATES]);

export const ENROLLMENT = object(
  {
    enrollment_id: givenId('Names the enrollment.'),
    site_id: identifier('Its Auth Site.'),
    policy_id: givenId('The policy that it was made under.'),
    client_id: identifier('The client that its key acts for.'),
    source_id: givenId('The source that its token was verified against.'),
    source_revision: Type.Integer({ minimum: 1, description: 'The exact revision.' }),
    state: ENROLLMENT_STATE,
    fingerprint: givenId('Of the public key: RFC 7638 thumbprint, SHA-256, base64url.'),
    verified_issuer: identifier("The workload token's iss."),
    verified_subject: identifier("The workload token's sub."),
    provenance: Type.Record(Type.String(), Type.String(), { description: 'Other claims of the token.' }),
    key_expires_at: moment('When the key expires; fixed when the submission was accepted.'),
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
  state: Type.Optional(ENROLLMENT_STATE),
  policy_id: Type.Optional(givenId('Only of this policy.')),
};

export const ENROLLMENT_APPROVAL = object(
  { reason: Type.Optional(displayText('For the audit trail; the workload does not see it.')) },
  'EnrollmentApproval',
);

export const ENROLLMENT_DENIAL = object(
  { reason: Type.Optional(displayText('For the audit trail; the workload does not see it.')) },
  'EnrollmentDenial',
);

export const ENROLLMENT_PATH = { enrollment_id: givenId('The enrollment.') };

export type EnrollmentView = Static<typeof ENROLLMENT>;
export type EnrollmentApproval = Static<typeof ENROLLMENT_APPROVAL>;
export type EnrollmentDenial = Static<typeof ENROLLMENT_DENIAL>;

/**
 * Schemas of key-level grants, signing profiles and the five readiness conditions of a derived key.
 * Source: specification "Derived key" (readiness), "Signing profile"; docs/operate/control.md "From key to traffic".
 */
const ACCESS = Type.Enum([...ACCESS_LEVELS]);
const STATE = Type.Enum([...PROFILE_STATES]);
const blockedBy = Type.Optional(Type.String({ maxLength: 512, description: 'Why it is inactive.' }));

export const KEY_GRANT = object(
  {
    route_id: identifier('A route that needs the resource.'),
    resource: identifier('What the client was granted.'),
    needed: { ...ACCESS, description: 'What the route needs.' },
    granted: { ...ACCESS, description: 'What the client holds; write includes read.' },
    state: STATE,
    since: Type.Optional(moment('Since when it is active.')),
    blocked_by: blockedBy,
  },
  'KeyGrant',
  'A route grant that a derived key inherits from its client.',
);

export const KEY_GRANTS = object({ items: Type.Array(KEY_GRANT) }, 'KeyGrants');

export const SIGNING_PROFILE = object(
  {
    client_id: identifier('The client whose keys use the profile.'),
    name: identifier('Unique among the profiles of a client.'),
    route_id: identifier('The route.'),
    method: Type.String({ description: 'As sent, case included.' }),
    path_template: Type.String({ description: 'As in the bundle.' }),
    audience: identifier("The passport's aud."),
    origins: Type.Array(Type.String(), { minItems: 1, description: 'scheme://authority.' }),
    signed_headers: Type.Array(Type.String(), { description: 'Lower-case names.' }),
    body: Type.Enum(['bound', 'unbound']),
    passport_header: PASSPORT_HEADER_FIELD,
    state: STATE,
    blocked_by: blockedBy,
  },
  'SigningProfile',
  'How a request for one route is signed. Active while the client holds the grant and the route may be called by it.',
);

export const SIGNING_PROFILES = object({ items: Type.Array(SIGNING_PROFILE) }, 'SigningProfiles');

/** A complete signing profile file (docs/operate/cli.md "Signing profiles"). */
export const CALLER_PROFILES = object(
  {
    format: Type.Literal('proofgate.signing-profile/v1'),
    auth_site: identifier('The Auth Site.'),
    issuer: identifier("The passport's iss: the broker."),
    trust_domain: identifier("The passport's trust_domain."),
    subject: identifier("The passport's sub."),
    key_binding: Type.Enum(['software', 'attested_workload']),
    profiles: Type.Array(ENROLLED_PROFILE, { description: 'Routes that admit the caller; may be empty.' }),
  },
  'CallerProfiles',
  'The signing profile file of a caller whose passports a broker signs.',
);

export const KEY_READINESS = object(
  {
    key_id: givenId('The derived key.'),
    target_id: Type.Optional(givenId('The selected target; absent: all that are attached.')),
    ready: Type.Boolean({ description: 'Every condition is satisfied.' }),
    conditions: Type.Array(READINESS_CONDITION),
  },
  'KeyReadiness',
);

export const KEY_LAST_USED = object(
  {
    key_id: givenId('The derived key.'),
    targets: Type.Array(
      Type.Object(
        {
          target_id: givenId('The target.'),
          name: shownText('Its name.'),
          last_used_at: moment('Minute of the last request of the key that it allowed.'),
        },
        closed,
      ),
      { description: 'Those that reported a use, the latest first.' },
    ),
  },
  'KeyLastUsed',
  'As targets reported it: Control cannot check it, and decides nothing by it.',
);

export const REVOCATION_RECEIPT = object(
  {
    key_id: givenId('The derived key.'),
    state: Type.Enum(['pending', 'effective'], {
      description: 'effective: no verifier can allow a request of the key.',
    }),
    no_use_from: Type.Optional(moment('From when on no verifier can; absent while unknown.')),
    waiting_for: Type.Array(
      Type.Object(
        {
          target_id: givenId('Its target.'),
          target_name: shownText('Name of the target.'),
          instance_id: givenId('The verifier.'),
          acked_revision: Type.Optional(BUNDLE_REVISION('The newest that it acknowledged.')),
        },
        closed,
      ),
      { description: 'Verifiers that did not acknowledge the revocation yet, as in the receipt.' },
    ),
    receipt: Type.String({ description: 'Compact JWS, signed by a receipt key of the site.' }),
  },
  'RevocationReceipt',
);

export type KeyLastUsedView = Static<typeof KEY_LAST_USED>;
export type RevocationReceiptView = Static<typeof REVOCATION_RECEIPT>;
export type KeyGrantView = Static<typeof KEY_GRANT>;
export type SigningProfileView = Static<typeof SIGNING_PROFILE>;
export type CallerProfilesView = Static<typeof CALLER_PROFILES>;
export type KeyReadinessView = Static<typeof KEY_READINESS>;
