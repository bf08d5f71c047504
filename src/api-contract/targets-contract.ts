/** Schemas of targets: verifiers that receive a site's bundles. The site's propagation lists what each target loaded. */

import type { Static } from 'typebox';
import Type from 'typebox';
import { displayText, givenId, identifier, moment, object, VERSIONED } from './members-contract.ts';

/** Schemas of the distribution state: which revision each target has loaded. Source: docs/control.md "From key to traffic". */
const AHEAD_REVISION = Type.Optional(
  Type.Integer({
    minimum: 1,
    description:
      'The revision that the target reports, while no publication continues from it: it is above all of them, or on another chain. Above what one target may raise in all, an operator has to raise the floor.',
  }),
);

const revision = (description: string) => Type.Integer({ minimum: 0, description });

const TARGET_PROPAGATION = object(
  {
    target_id: givenId('The target.'),
    name: displayText('For people.'),
    state: Type.Enum(['current', 'behind', 'ahead', 'refusing', 'never'], {
      description:
        'ahead: no publication continues from its revision. refusing: it said no to a revision after the one that it has. never: it has acknowledged nothing.',
    }),
    acked_revision: Type.Optional(revision('The newest that it took.')),
    acked_at: Type.Optional(moment('When it said so.')),
    behind_revisions: revision('How far it is behind what is published; 0 when it is current.'),
    behind_since: Type.Optional(moment('When the first revision that it lacks was published.')),
    ahead_revision: AHEAD_REVISION,
    ahead_since: Type.Optional(moment('Since when it is ahead.')),
    refused: Type.Optional(
      Type.Object(
        {
          revision: revision('Which one.'),
          code: Type.String({ description: 'Why: code of the bundle error.' }),
          detail: Type.Optional(Type.String()),
          at: moment('When.'),
        },
        { additionalProperties: false },
      ),
    ),
    last_seen_at: Type.Optional(moment('When it last asked.')),
    silent: Type.Boolean({ description: 'It has not asked for longer than targets wait.' }),
  },
  'TargetPropagation',
);

const revocation = object(
  {
    key_id: givenId('The derived key.'),
    revoked_at: moment('When it was revoked here.'),
    revision: Type.Optional(revision('The revision that says so; absent until it is published.')),
    held_everywhere_since: Type.Optional(moment('Since when every attached target has it.')),
    waiting_for: revision('Attached targets that do not have it yet.'),
  },
  'RevocationPropagation',
);

export const SITE_PROPAGATION = object(
  {
    site_id: identifier('The Auth Site.'),
    revision: revision('The newest published; 0 before the first.'),
    head: Type.Optional(Type.String({ description: 'Names the revision and all before it.' })),
    published_at: Type.Optional(moment('When it was.')),
    policy_revision: revision('The newest that changed anything but derived keys.'),
    unpublished_since: Type.Optional(moment('Moment of the oldest change that is not published.')),
    held_everywhere: revision('The newest that every attached target has; 0 while one has none.'),
    targets: Type.Array(TARGET_PROPAGATION),
    revocations: Type.Array(revocation, {
      description: 'Of keys that have not ended, newest first, 100 at most.',
    }),
  },
  'SitePropagation',
);

export type TargetPropagationView = Static<typeof TARGET_PROPAGATION>;
export type SitePropagationView = Static<typeof SITE_PROPAGATION>;

export const NEW_TARGET = object({ name: displayText('For people.') }, 'NewTarget');
export const TARGET_CHANGE = object({ name: displayText('For people.') }, 'TargetChange');

const TARGET_MEMBERS = {
  target_id: givenId('Names the target.'),
  site_id: identifier('The Auth Site.'),
  name: displayText('For people.'),
  state: Type.Enum(['attached', 'detached'], {
    description: 'A detached target gets nothing any more, and nothing waits for it. Final.',
  }),
  ahead_revision: AHEAD_REVISION,
  ...VERSIONED,
};

export const TARGET = object(TARGET_MEMBERS, 'Target');

const token = Type.Optional(
  Type.String({
    description: 'For --control-token-file. Shown this once; absent when an answer is repeated.',
  }),
);

export const TARGET_WITH_TOKEN = object({ ...TARGET_MEMBERS, token }, 'TargetWithToken');

const MAX_OVERLAP_SECONDS = 7 * 86_400;
export const DEFAULT_OVERLAP_SECONDS = 3600;

export const TOKEN_ROTATION = object(
  {
    overlap_seconds: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: MAX_OVERLAP_SECONDS,
        default: DEFAULT_OVERLAP_SECONDS,
        description: 'How long the token before stays good. One before that ends at once.',
      }),
    ),
  },
  'TargetTokenRotation',
);

export const TARGET_PATH = { target_id: identifier('The target.') };

export type TargetView = Static<typeof TARGET>;
export type TokenRotation = Static<typeof TOKEN_ROTATION>;
