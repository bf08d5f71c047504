/**
 * Schemas of Trust Anchor Sources as operators see them. Each revision has its own state.
 * Source: specification "Trust Anchor Source"; docs/control.md "Trust Anchor Source".
 */
import Type, { type Static } from 'typebox';
import {
  KEY_POLICIES,
  MAX_SHOWN_TARGETS,
  MAX_SOURCE_REVISION,
  SOURCE_KINDS,
  SOURCE_STATES,
} from '../control/domain/source-states.ts';
import { closed, displayText, givenId, identifier, moment, object, VERSIONED } from './members-contract.ts';

const text = (maxLength: number, description: string) =>
  Type.String({ minLength: 1, maxLength, description });

const COORDINATES = {
  issuer: text(2048, "Public URL of the cluster's OIDC issuer."),
  jwks_uri: text(2048, 'Public URL of its key set.'),
  audience: text(512, 'Must be the only audience of the workload tokens. Belongs to one Auth Site.'),
};

const KEY_POLICY = (event: string) =>
  Type.Enum([...KEY_POLICIES], {
    description: `What happens to living keys when the source is ${event}: they live until they expire, or end at once.`,
  });

export const SOURCE_REVISION = object(
  {
    source_id: givenId('The source.'),
    revision: Type.Integer({ minimum: 1, description: 'Counts up in each source.' }),
    state: Type.Enum(SOURCE_STATES.filter((state) => state !== 'removed')),
    ...COORDINATES,
    fingerprint: Type.Optional(
      givenId(
        'Of what was validated: SHA-256 over issuer, JWKS URI, audience and key thumbprints. base64url.',
      ),
    ),
    detected_scope: Type.Optional(identifier('Host and path of the issuer: must be the intended cluster.')),
    validated_at: Type.Optional(moment('When its metadata was last found valid.')),
    failure: Type.Optional(
      Type.Object(
        { code: givenId('Stable.'), detail: text(1024, 'What was found.') },
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
      Type.Array(
        Type.Object({ target_id: givenId('The target.'), name: displayText('For people.') }, closed),
        {
          maxItems: MAX_SHOWN_TARGETS,
          description:
            'While publishing: the first targets that have not acknowledged that bundle. Absent when there is none.',
        },
      ),
    ),
    state_since: moment('Since when it is in this state.'),
    ...VERSIONED,
  },
  'SourceRevision',
);

export const SOURCE = object(
  {
    source_id: givenId('Names the source.'),
    site_id: identifier('Its Auth Site.'),
    kind: Type.Enum([...SOURCE_KINDS]),
    display_name: displayText('For people.'),
    on_suspend: KEY_POLICY('suspended'),
    on_retire: KEY_POLICY('retired'),
    revisions: Type.Array(SOURCE_REVISION, { description: 'Oldest first.' }),
    ...VERSIONED,
  },
  'Source',
);

export const SOURCE_CREATION = object(
  {
    kind: Type.Enum([...SOURCE_KINDS], { description: 'Only oidc_jwks is supported.' }),
    display_name: displayText('For people.'),
    ...COORDINATES,
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
export type SourceCreation = Static<typeof SOURCE_CREATION>;
export type SourceChange = Static<typeof SOURCE_CHANGE>;
export type SourceRevisionChange = Static<typeof SOURCE_REVISION_CHANGE>;
