/** Schemas of targets: verifiers that receive a site's bundles. The site's propagation lists what each target loaded. */
import Type, { type Static } from 'typebox';
import { displayText, givenId, identifier, object, VERSIONED } from './members-contract.ts';
import { AHEAD_REVISION } from './target-distribution-contract.ts';

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
