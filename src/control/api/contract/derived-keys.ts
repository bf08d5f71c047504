/**
 * Derived keys as operators see them, and subjects that may not enroll.
 * Source: specification "Derived key"; docs/control.md "Enrollment".
 */
import Type, { type Static } from 'typebox';
import { KEY_STATES } from '../../domain/enrollment.ts';
import { pageOf } from '../pagination.ts';
import { closed, identifier, moment, text, version } from './fields.ts';

const STATUS = Type.Enum([...KEY_STATES], { description: 'As of now.' });
const BUNDLE_REVISION = (description: string) => Type.Integer({ minimum: 1, description });

export const DERIVED_KEY = Type.Object(
  {
    key_id: text(128, 'kid of the passports that the key signs.'),
    site_id: text(512, 'Its Auth Site.'),
    client_id: text(512, 'The client that it acts for.'),
    policy_id: text(64, 'The enrollment policy.'),
    enrollment_id: text(64, 'The enrollment.'),
    source_id: text(64, 'The source that let it in.'),
    source_revision: Type.Integer({ minimum: 1, description: 'The exact revision.' }),
    fingerprint: text(43, 'RFC 7638 thumbprint, SHA-256, base64url.'),
    status: STATUS,
    expires_at: moment('The key is of no use from this moment on.'),
    verified_issuer: text(512, "The workload token's iss."),
    verified_subject: text(512, "The workload token's sub."),
    provenance: Type.Record(Type.String(), Type.String(), { description: 'What else the token told.' }),
    revoked_at: Type.Optional(moment('When it was revoked.')),
    revoked_by: Type.Optional(text(1024, 'By whom.')),
    revoked_reason: Type.Optional(text(512, 'Why.')),
    listed_in_revision: Type.Optional(BUNDLE_REVISION('The bundle revision that first lists it.')),
    revoked_in_revision: Type.Optional(BUNDLE_REVISION('The bundle revision that took it out.')),
    created_at: moment('When it was issued.'),
    version,
  },
  { ...closed, $id: 'DerivedKey' },
);

export const DERIVED_KEY_PAGE = pageOf(DERIVED_KEY, 'DerivedKeyPage');

export const DERIVED_KEY_FILTER = {
  client_id: Type.Optional(text(512, 'Only of this client.')),
  status: Type.Optional(STATUS),
};

export const KEY_REVOCATION = Type.Object(
  {
    reason: Type.Optional(text(512, 'For the audit trail.')),
    block_subject: Type.Optional(
      Type.Boolean({ description: "Also refuse new enrollments of the key's verified subject." }),
    ),
  },
  { ...closed, $id: 'KeyRevocation' },
);

/** Every key ID that ended with it: all that were living with the same public key. */
export const KEY_REVOCATION_RESULT = Type.Object(
  {
    key: DERIVED_KEY,
    revoked_key_ids: Type.Array(text(128, 'Key ID.'), { minItems: 1 }),
    subject_blocked: Type.Boolean(),
  },
  { ...closed, $id: 'KeyRevocationResult' },
);

export const BLOCKED_SUBJECT = Type.Object(
  {
    site_id: text(512, 'The Auth Site.'),
    issuer: text(512, "The workload token's iss."),
    subject: text(512, "The workload token's sub."),
    blocked_at: moment('Since when.'),
    blocked_by: text(1024, 'By whom.'),
  },
  { ...closed, $id: 'BlockedSubject' },
);

export const BLOCKED_SUBJECT_LIST = Type.Object(
  { items: Type.Array(BLOCKED_SUBJECT) },
  { ...closed, $id: 'BlockedSubjectList' },
);

export const BLOCKED_SUBJECT_NAME = Type.Object(
  { issuer: identifier('As listed.'), subject: identifier('As listed.') },
  closed,
);

export type DerivedKeyView = Static<typeof DERIVED_KEY>;
export type KeyRevocation = Static<typeof KEY_REVOCATION>;
export type KeyRevocationResult = Static<typeof KEY_REVOCATION_RESULT>;
export type BlockedSubjectView = Static<typeof BLOCKED_SUBJECT>;
