/**
 * Schemas of derived keys and blocked subjects, as operators see them.
 * Source: specification "Derived key"; docs/control.md "Enrollment".
 */
import Type, { type Static } from 'typebox';
import { KEY_STATES } from '../control/domain/enrollment-states.ts';
import { displayText, givenId, identifier, moment, object, VERSIONED } from './members-contract.ts';

const STATUS = Type.Enum([...KEY_STATES], { description: 'As of now.' });
const BUNDLE_REVISION = (description: string) => Type.Integer({ minimum: 1, description });

export const DERIVED_KEY = object(
  {
    key_id: givenId('kid of the passports that the key signs.'),
    site_id: identifier('Its Auth Site.'),
    client_id: identifier('The client that it acts for.'),
    policy_id: givenId('The enrollment policy.'),
    enrollment_id: givenId('The enrollment.'),
    source_id: givenId('The source that let it in.'),
    source_revision: Type.Integer({ minimum: 1, description: 'The exact revision.' }),
    fingerprint: givenId('RFC 7638 thumbprint, SHA-256, base64url.'),
    status: STATUS,
    expires_at: moment('The key is of no use from this moment on.'),
    verified_issuer: identifier("The workload token's iss."),
    verified_subject: identifier("The workload token's sub."),
    provenance: Type.Record(Type.String(), Type.String(), { description: 'Other claims of the token.' }),
    revoked_at: Type.Optional(moment('When it was revoked.')),
    revoked_by: Type.Optional(Type.String({ description: 'By whom.' })),
    revoked_reason: Type.Optional(Type.String({ description: 'Why.' })),
    listed_in_revision: Type.Optional(BUNDLE_REVISION('The bundle revision that first lists it.')),
    revoked_in_revision: Type.Optional(BUNDLE_REVISION('The bundle revision that took it out.')),
    ...VERSIONED,
  },
  'DerivedKey',
);

export const DERIVED_KEY_FILTER = {
  client_id: Type.Optional(identifier('Only of this client.')),
  status: Type.Optional(STATUS),
};

export const KEY_REVOCATION = object(
  {
    reason: Type.Optional(displayText('For the audit trail.')),
    block_subject: Type.Optional(
      Type.Boolean({ description: "Also refuse new enrollments of the key's verified subject." }),
    ),
  },
  'KeyRevocation',
);

export const KEY_REVOCATION_RESULT = object(
  {
    key: DERIVED_KEY,
    revoked_key_ids: Type.Array(givenId('Key ID.'), {
      description: 'Every key ID that this revoked: all living ones of the same public key.',
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
    blocked_at: moment('Since when.'),
    blocked_by: Type.String({ description: 'By whom.' }),
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
