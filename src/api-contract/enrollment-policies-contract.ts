/**
 * Schemas of enrollment policies: which workload identity may enroll a key, and for which client.
 * Source: specification "Enrollment policy"; docs/control.md "Enrollment".
 */
import Type, { type Static } from 'typebox';
import {
  APPROVALS,
  MAX_KEY_LIFETIME_SECONDS,
  MAX_KEYS_PER_TOKEN,
  MIN_KEY_LIFETIME_SECONDS,
  POLICY_STATES,
} from '../control/domain/enrollment-states.ts';
import { MAX_SOURCE_REVISION } from '../control/domain/source-states.ts';
import { displayText, givenId, identifier, object, VERSIONED } from './members-contract.ts';

const text = (maxLength: number, description: string) =>
  Type.String({ minLength: 1, maxLength, description });

const SOURCE_ID = givenId('The Trust Anchor Source.');
const SOURCE_REVISION = Type.Integer({
  minimum: 1,
  maximum: MAX_SOURCE_REVISION,
  description: 'The exact revision; must be the active one.',
});
const DISPLAY_NAME = displayText('For people.');
const APPROVAL = Type.Enum([...APPROVALS], { description: 'Unattended, or by an operator.' });
const LIFETIME = Type.Integer({
  minimum: MIN_KEY_LIFETIME_SECONDS,
  maximum: MAX_KEY_LIFETIME_SECONDS,
  description: 'A key ends then, or with its token when that is earlier. Seconds.',
});
const KEYS_PER_TOKEN = Type.Integer({
  minimum: 1,
  maximum: MAX_KEYS_PER_TOKEN,
  description: 'Keys that one workload token may enroll: restarted pods find their token again.',
});

export const ENROLLMENT_POLICY = object(
  {
    policy_id: givenId('Names the policy.'),
    site_id: identifier('Its Auth Site.'),
    reference: givenId('Opaque: what the enroll command carries.'),
    display_name: DISPLAY_NAME,
    source_id: SOURCE_ID,
    source_revision: SOURCE_REVISION,
    client_id: identifier('The client whose grants its keys inherit.'),
    approval: APPROVAL,
    max_key_lifetime_seconds: LIFETIME,
    verified_issuer: identifier("The workload token's iss, exactly."),
    verified_subject: identifier("The workload token's sub, exactly."),
    max_keys_per_token: KEYS_PER_TOKEN,
    state: Type.Enum([...POLICY_STATES]),
    refuses_with: Type.Optional(
      givenId(
        'The code with which every enrollment is refused now, because of the policy, its source or its subject. Absent when there is none.',
      ),
    ),
    ...VERSIONED,
  },
  'EnrollmentPolicy',
);

export const ENROLLMENT_POLICY_CREATION = object(
  {
    display_name: DISPLAY_NAME,
    source_id: SOURCE_ID,
    source_revision: SOURCE_REVISION,
    client_id: identifier('A client of the same Auth Site.'),
    approval: APPROVAL,
    max_key_lifetime_seconds: LIFETIME,
    verified_issuer: identifier("Must be the revision's issuer."),
    verified_subject: identifier('Such as system:serviceaccount:<namespace>:<serviceaccount>.'),
    max_keys_per_token: Type.Optional(KEYS_PER_TOKEN),
  },
  'EnrollmentPolicyCreation',
);

/** Source, identity and client cannot change, because issued keys refer to them. */
export const ENROLLMENT_POLICY_CHANGE = object(
  {
    display_name: Type.Optional(DISPLAY_NAME),
    source_revision: Type.Optional(SOURCE_REVISION),
    approval: Type.Optional(APPROVAL),
    max_key_lifetime_seconds: Type.Optional(LIFETIME),
    max_keys_per_token: Type.Optional(KEYS_PER_TOKEN),
  },
  'EnrollmentPolicyChange',
);

export const ENROLLMENT_COMMAND = object(
  {
    policy_id: givenId('The policy.'),
    control_url: text(2048, 'As workloads must be given it.'),
    reference: givenId('The opaque policy reference.'),
    command: text(8192, 'To be run inside the workload; quoted for a POSIX shell. Enrolls one key.'),
    init_container: text(16_384, 'Parts of a pod template that runs it first, YAML.'),
    agent_command: text(8192, 'The same for as long as the workload runs: each key is replaced in time.'),
    native_sidecar: text(
      16_384,
      'Parts of a pod template that runs it beside the application, YAML. Kubernetes 1.29.',
    ),
  },
  'EnrollmentCommand',
);

export const POLICY_PATH = { policy_id: givenId('The enrollment policy.') };

export type EnrollmentPolicyView = Static<typeof ENROLLMENT_POLICY>;
export type EnrollmentPolicyCreation = Static<typeof ENROLLMENT_POLICY_CREATION>;
export type EnrollmentPolicyChange = Static<typeof ENROLLMENT_POLICY_CHANGE>;
export type EnrollmentCommand = Static<typeof ENROLLMENT_COMMAND>;
