/** Schemas of targets: verifiers that receive a site's bundles. The site's propagation lists what each target loaded. */

import type { Static } from 'typebox';
import Type from 'typebox';
import { MAX_NAMED } from '../../bundle/format/enforced-observations.ts';
import {
  displayText,
  givenId,
  identifier,
  moment,
  object,
  shownText,
  VERSIONED,
} from '../../process/http-service/members-contract.ts';

/** Schemas of the distribution state: which revision each target has loaded. Source: docs/operate/control.md "From key to traffic". */

const AHEAD_REVISION = Type.Optional(
  Type.Integer({
    minimum: 1,
    description:
      'The revision that the target reports, while no publication continues from it: it is above all of them, or on another chain. If it exceeds what a target may raise, an operator must raise the floor.',
  }),
);

const ENFORCED_OBSERVATIONS = Type.Optional(
  object(
    {
      count: Type.Integer({ minimum: 1, description: 'How many, with those that are not named.' }),
      unmatched: Type.Boolean({ description: 'Whether requests that no route matches are among them.' }),
      routes: Type.Array(identifier('A route.'), { maxItems: MAX_NAMED, description: 'Some of the routes.' }),
    },
    'EnforcedObservations',
    'What the verifier enforces although the bundle says observe: not allowed by --allow-observe, or begun and ended there. As it reported last; absent when there is nothing.',
  ),
);

const revision = (description: string) => Type.Integer({ minimum: 0, description });

const TARGET_INSTANCE = object(
  {
    instance_id: Type.String({ description: 'Of one run of a verifier.' }),
    version: shownText('Of its package.'),
    replay_store: Type.Optional(
      Type.String({
        description: 'ID of its Redis; `memory` for a store of its own; absent while it does not know.',
      }),
    ),
    revision: Type.Optional(revision('The one that it has loaded; absent before the first.')),
    acked_revision: Type.Optional(
      revision('The one that it acknowledged with its signature; absent before the first.'),
    ),
    may_allow_until: Type.Optional(
      moment('When it denies every request, unless it polls again. Until then its target waits for it.'),
    ),
    first_seen_at: moment('When it first polled.'),
    last_seen_at: moment('When it last polled.'),
    silent: Type.Boolean({ description: 'It has not polled for longer than targets wait.' }),
    enforced_observations: Type.Integer({
      minimum: 0,
      description: 'How many observations of the bundle it enforces nevertheless.',
    }),
  },
  'TargetInstance',
);

const TARGET_PROPAGATION = object(
  {
    target_id: givenId('The target.'),
    name: shownText('For people.'),
    state: Type.Enum(['current', 'behind', 'ahead', 'refusing', 'never'], {
      description:
        'ahead: no publication continues from its revision. refusing: it rejected a later revision than the one that it has. never: it has acknowledged nothing.',
    }),
    acked_revision: Type.Optional(revision('The newest revision that it loaded.')),
    acked_at: Type.Optional(moment('When it acknowledged that revision.')),
    behind_revisions: revision('Number of published revisions that it lacks; 0 when it is current.'),
    behind_since: Type.Optional(moment('When the first revision that it lacks was published.')),
    ahead_revision: AHEAD_REVISION,
    ahead_since: Type.Optional(moment('When it became ahead.')),
    refused: Type.Optional(
      Type.Object(
        {
          revision: revision('The rejected revision.'),
          code: Type.String({ description: 'Code of the bundle error.' }),
          detail: Type.Optional(Type.String()),
          at: moment('When it rejected it.'),
        },
        { additionalProperties: false },
      ),
    ),
    enforced_observations: ENFORCED_OBSERVATIONS,
    last_seen_at: Type.Optional(moment('When it last polled.')),
    silent: Type.Boolean({ description: 'It has not polled for longer than targets wait.' }),
    instances: Type.Array(TARGET_INSTANCE, {
      description:
        'Verifiers that share its token, those of the last ten minutes or that may still allow requests, at most 256, and those that were there first. Verifiers of earlier versions are not listed.',
    }),
    unlisted_may_allow_until: Type.Optional(
      moment(
        'When all further verifiers, beyond those in `instances`, deny every request unless they poll again. Until then the target waits for them.',
      ),
    ),
  },
  'TargetPropagation',
);

const revocation = object(
  {
    key_id: givenId('The derived key.'),
    revoked_at: moment('When it was revoked here.'),
    revision: Type.Optional(
      revision('The revision that contains the revocation; absent until it is published.'),
    ),
    held_everywhere_since: Type.Optional(moment('When the last attached target loaded it.')),
    waiting_for: revision('Attached targets that do not have it yet.'),
  },
  'RevocationPropagation',
);

export const SITE_PROPAGATION = object(
  {
    site_id: identifier('The Auth Site.'),
    revision: revision('The newest published; 0 before the first.'),
    head: Type.Optional(Type.String({ description: 'Hash that identifies the revision and all before it.' })),
    published_at: Type.Optional(moment('When it was published.')),
    policy_revision: revision('The newest revision with another change than derived keys.'),
    unpublished_since: Type.Optional(moment('When the oldest unpublished change was made.')),
    held_everywhere: revision('The newest that every attached target has; 0 while one has none.'),
    replay_stores: Type.Integer({
      minimum: 0,
      description:
        'Number of replay stores that the instances use. With more than one, a proof is accepted once in each.',
    }),
    expected_replay_stores: Type.Enum(['one', 'per_region'], { description: 'replay_stores of the site.' }),
    targets: Type.Array(TARGET_PROPAGATION),
    revocations: Type.Array(revocation, {
      description: 'Revocations of keys that have not expired, newest first, at most 100.',
    }),
  },
  'SitePropagation',
);

export type TargetPropagationView = Static<typeof TARGET_PROPAGATION>;
export type TargetInstanceView = Static<typeof TARGET_INSTANCE>;
export type SitePropagationView = Static<typeof SITE_PROPAGATION>;

export const NEW_TARGET = object({ name: displayText('For people.') }, 'NewTarget');
export const TARGET_CHANGE = object({ name: displayText('For people.') }, 'TargetChange');

const TARGET_MEMBERS = {
  target_id: givenId('Names the target.'),
  site_id: identifier('The Auth Site.'),
  name: shownText('For people.'),
  state: Type.Enum(['attached', 'detached'], {
    description: 'A detached target gets no more bundles, and no publication waits for it. Final.',
  }),
  ahead_revision: AHEAD_REVISION,
  enforced_observations: ENFORCED_OBSERVATIONS,
  ...VERSIONED,
};

export const TARGET = object(TARGET_MEMBERS, 'Target');

const token = Type.Optional(
  Type.String({
    description: 'For --control-token-file. Shown only once; absent in a repeated response.',
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
        description: 'How long the previous token stays valid. An older one expires at once.',
      }),
    ),
  },
  'TargetTokenRotation',
);

export const TARGET_PATH = { target_id: identifier('The target.') };

export type TargetView = Static<typeof TARGET>;
export type TokenRotation = Static<typeof TOKEN_ROTATION>;
