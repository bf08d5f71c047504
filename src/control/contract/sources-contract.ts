/**
 * Schemas of Trust Anchor Sources as operators see them. Each revision has its own state.
 * Source: specification "Trust Anchor Source"; docs/operate/control.md "Trust Anchor Source".
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
  text,
  VERSIONED,
} from '../../process/http-service/members-contract.ts';
import {
  APPROVALS,
  KEY_POLICIES,
  MAX_KEY_LIFETIME_SECONDS,
  MAX_KEYS_PER_TOKEN,
  MAX_SHOWN_TARGETS,
  MAX_SOURCE_REVISION,
  MIN_KEY_LIFETIME_SECONDS,
  POLICY_STATES,
  SOURCE_DISCOVERIES,
  SOURCE_KINDS,
  SOURCE_STATES,
} from './vocabulary.ts';

const COORDINATES = {
  issuer: text(2048, "Public URL of the cluster's OIDC issuer."),
  jwks_uri: text(2048, 'Public URL of its key set.'),
  audience: text(512, 'Must be the only audience of the workload tokens. Belongs to one Auth Site.'),
};

const DISCOVERY = Type.Enum([...SOURCE_DISCOVERIES], {
  description:
    "Whether the issuer's discovery document must name issuer and jwks_uri (checked), or is not fetched (skipped), such as for several API servers that name different URLs. Default: checked.",
});

const KEY_POLICY = (event: string) =>
  Type.Enum([...KEY_POLICIES], {
    description: `What happens to valid keys when the source is ${event}: keep them until they expire, or revoke them.`,
  });

export const SOURCE_REVISION = object(
  {
    source_id: givenId('The source.'),
    revision: Type.Integer({ minimum: 1, description: 'Increases by one in each source.' }),
    state: Type.Enum(SOURCE_STATES.filter((state) => state !== 'removed')),
    ...COORDINATES,
    discovery: DISCOVERY,
    fingerprint: Type.Optional(
      givenId(
        'Fingerprint of the validated metadata: SHA-256 over issuer, JWKS URI, audience and key thumbprints. base64url.',
      ),
    ),
    detected_scope: Type.Optional(identifier('Host and path of the issuer; must be the intended cluster.')),
    validated_at: Type.Optional(moment('When its metadata was last found valid.')),
    failure: Type.Optional(
      Type.Object(
        {
          code: givenId('A code of docs/operate/control.md "Outbound fetches".'),
          detail: text(1024, 'Details of the failure.'),
        },
        { ...closed, description: 'Why the last validation, or the check while activating, failed.' },
      ),
    ),
    awaited_bundle_revision: Type.Optional(
      Type.Integer({
        minimum: 1,
        description: 'While publishing: what every attached target must acknowledge.',
      }),
    ),
    waiting_for: Type.Optional(
      Type.Array(Type.Object({ target_id: givenId('The target.'), name: shownText('For people.') }, closed), {
        maxItems: MAX_SHOWN_TARGETS,
        description:
          'While publishing: the first targets that have not acknowledged that bundle. Absent when there is none.',
      }),
    ),
    state_since: moment('When it entered this state.'),
    ...VERSIONED,
  },
  'SourceRevision',
);

export const SOURCE = object(
  {
    source_id: givenId('Names the source.'),
    site_id: identifier('Its Auth Site.'),
    kind: Type.Enum([...SOURCE_KINDS]),
    display_name: shownText('For people.'),
    on_suspend: KEY_POLICY('suspended'),
    on_retire: KEY_POLICY('retired'),
    revisions: Type.Array(SOURCE_REVISION, { description: 'Oldest first.' }),
    ...VERSIONED,
  },
  'Source',
);

const KEY_SET_REVISION = Type.Integer({ minimum: 1, description: 'The revision that the keys belong to.' });

/** The key sets of a source's revisions as Control holds them: public keys, as the issuer published them. */
export const SOURCE_KEYS = object(
  {
    source_id: givenId('The source.'),
    key_sets: Type.Array(
      Type.Object(
        {
          revision: KEY_SET_REVISION,
          refreshed_at: moment('When Control last fetched the key set.'),
          usable_until: moment('When Control stops using these keys, unless it fetches them again.'),
          next_refresh_at: Type.Optional(
            moment(
              'When the next scheduled fetch is due. Absent for a revision that is not in use, and for keys that are too old: those are fetched at every opportunity.',
            ),
          ),
          last_failure: Type.Optional(
            Type.Object(
              {
                at: moment('When that fetch began.'),
                code: givenId('A code of docs/operate/control.md "Outbound fetches".'),
              },
              { ...closed, description: 'The last fetch that failed. Absent when none did.' },
            ),
          ),
        },
        closed,
      ),
      { description: 'Of each revision that was validated and is not retired; oldest first.' },
    ),
    keys: Type.Array(
      Type.Object(
        {
          revision: KEY_SET_REVISION,
          kid: identifier('Name of the key, as in the header of tokens.'),
          algorithms: Type.Array(identifier('As in the header of tokens.'), {
            description: 'Algorithms of tokens that this key verifies.',
          }),
          thumbprint: givenId('RFC 7638, SHA-256. base64url.'),
        },
        closed,
      ),
      { description: 'Keys that can verify tokens. Control skips others.' },
    ),
  },
  'SourceKeys',
);

export const SOURCE_CREATION = object(
  {
    kind: Type.Enum([...SOURCE_KINDS], { description: 'Only oidc_jwks is supported.' }),
    display_name: displayText('For people.'),
    ...COORDINATES,
    discovery: Type.Optional(DISCOVERY),
    on_suspend: Type.Optional(KEY_POLICY('suspended')),
    on_retire: Type.Optional(KEY_POLICY('retired')),
  },
  'SourceCreation',
);

export const SOURCE_CHANGE = object(
  {
    display_name: Type.Optional(displayText('For people.')),
    on_suspend: Type.Optional(KEY_POLICY('suspended')),
    on_retire: Type.Optional(KEY_POLICY('retired')),
  },
  'SourceChange',
);

/** Body of a new revision, and of an edit. Members left out keep their value; a new revision starts from the newest one. */
export const SOURCE_REVISION_CHANGE = object(
  {
    issuer: Type.Optional(COORDINATES.issuer),
    jwks_uri: Type.Optional(COORDINATES.jwks_uri),
    audience: Type.Optional(COORDINATES.audience),
    discovery: Type.Optional(DISCOVERY),
  },
  'SourceRevisionChange',
);

export const SOURCE_ACTIVATION = object(
  { expected_scope: identifier('The scope of the intended cluster; must be the detected one.') },
  'SourceActivation',
);

export const SOURCE_PATH = { source_id: givenId('The source.') };
export const SOURCE_REVISION_PATH = {
  ...SOURCE_PATH,
  revision: Type.Integer({ minimum: 1, maximum: MAX_SOURCE_REVISION, description: 'The revision.' }),
};

export type SourceView = Static<typeof SOURCE>;
export type SourceRevisionView = Static<typeof SOURCE_REVISION>;
export type SourceKeysView = Static<typeof SOURCE_KEYS>;
export type SourceCreation = Static<typeof SOURCE_CREATION>;
export type SourceChange = Static<typeof SOURCE_CHANGE>;
export type SourceRevisionChange = Static<typeof SOURCE_REVISION_CHANGE>;

/**
 * Schemas of enrollment policies: which workload identity may enroll a key, and for which client.
 * Source: specification "Enrollment policy"; docs/design/enrollment.md "Enrollment".
 */
const SOURCE_ID = givenId('The Trust Anchor Source.');
const BOUND_REVISION = Type.Integer({
  minimum: 1,
  maximum: MAX_SOURCE_REVISION,
  description: 'The exact revision; must be the active one.',
});
const DISPLAY_NAME = displayText('For people.');
const APPROVAL = Type.Enum([...APPROVALS], { description: 'Unattended, or by an operator.' });
const LIFETIME = Type.Integer({
  minimum: MIN_KEY_LIFETIME_SECONDS,
  maximum: MAX_KEY_LIFETIME_SECONDS,
  description: 'Maximum lifetime of a key in seconds. It expires with its token if that is earlier.',
});
const KEYS_PER_TOKEN = Type.Integer({
  minimum: 1,
  maximum: MAX_KEYS_PER_TOKEN,
  description: 'Maximum number of keys that one workload token may enroll. A restarted pod reuses its token.',
});

export const ENROLLMENT_POLICY = object(
  {
    policy_id: givenId('Names the policy.'),
    site_id: identifier('Its Auth Site.'),
    reference: givenId('Opaque reference in the enroll command.'),
    display_name: shownText('For people.'),
    source_id: SOURCE_ID,
    source_revision: BOUND_REVISION,
    client_id: identifier('The client whose grants its keys inherit.'),
    approval: APPROVAL,
    max_key_lifetime_seconds: LIFETIME,
    verified_issuer: identifier("The workload token's iss, exactly."),
    verified_subject: identifier("The workload token's sub, exactly."),
    max_keys_per_token: KEYS_PER_TOKEN,
    state: Type.Enum([...POLICY_STATES]),
    refuses_with: Type.Optional(
      givenId(
        'The code with which Control rejects every enrollment now because of the policy, its source or its subject. Absent when there is none.',
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
    source_revision: BOUND_REVISION,
    client_id: identifier('A client of the same Auth Site.'),
    approval: APPROVAL,
    max_key_lifetime_seconds: LIFETIME,
    verified_issuer: identifier("Must be the revision's issuer."),
    verified_subject: identifier('Such as system:serviceaccount:<namespace>:<serviceaccount>.'),
    max_keys_per_token: Type.Optional(KEYS_PER_TOKEN),
  },
  'EnrollmentPolicyCreation',
);

/** Source and issuer change only with {@link ENROLLMENT_POLICY_REBINDING}; subject and client never. */
export const ENROLLMENT_POLICY_CHANGE = object(
  {
    display_name: Type.Optional(DISPLAY_NAME),
    source_revision: Type.Optional(BOUND_REVISION),
    approval: Type.Optional(APPROVAL),
    max_key_lifetime_seconds: Type.Optional(LIFETIME),
    max_keys_per_token: Type.Optional(KEYS_PER_TOKEN),
  },
  'EnrollmentPolicyChange',
);

export const ENROLLMENT_POLICY_REBINDING = object(
  {
    source_id: givenId('A Trust Anchor Source of the same Auth Site.'),
    source_revision: Type.Integer({
      minimum: 1,
      maximum: MAX_SOURCE_REVISION,
      description: 'Its exact revision; must be active, or about to be: activating or publishing.',
    }),
    expected_issuer: identifier("The issuer of the intended cluster; must be the revision's, exactly."),
  },
  'EnrollmentPolicyRebinding',
);

export const ENROLLMENT_COMMAND = object(
  {
    policy_id: givenId('The policy.'),
    control_url: text(2048, 'URL of Control for workloads.'),
    reference: givenId('The opaque policy reference.'),
    command: text(8192, 'Command to run in the workload, quoted for a POSIX shell. Enrolls one key.'),
    init_container: text(16_384, 'Parts of a pod template with the command as an init container, YAML.'),
    agent_command: text(8192, 'Command of the agent, which replaces each key before it expires.'),
    native_sidecar: text(
      16_384,
      'Parts of a pod template with the agent as a native sidecar, YAML. Kubernetes 1.29.',
    ),
    signer_command: Type.Optional(
      text(
        8192,
        'Command of the signer, which keeps a key as the agent does and signs what the application sends to it. Absent while the client may call no route.',
      ),
    ),
    signer_sidecar: Type.Optional(
      text(16_384, 'Parts of a pod template with the signer as a native sidecar, YAML.'),
    ),
  },
  'EnrollmentCommand',
);

export const POLICY_PATH = { policy_id: givenId('The enrollment policy.') };

export type EnrollmentPolicyView = Static<typeof ENROLLMENT_POLICY>;
export type EnrollmentPolicyCreation = Static<typeof ENROLLMENT_POLICY_CREATION>;
export type EnrollmentPolicyChange = Static<typeof ENROLLMENT_POLICY_CHANGE>;
export type EnrollmentPolicyRebinding = Static<typeof ENROLLMENT_POLICY_REBINDING>;
export type EnrollmentCommand = Static<typeof ENROLLMENT_COMMAND>;
