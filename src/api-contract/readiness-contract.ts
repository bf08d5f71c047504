/**
 * Schemas of key-level grants, signing profiles and the five readiness conditions of a derived key.
 * Source: specification "Derived key" (readiness), "Signing profile"; docs/control.md "From key to traffic".
 */
import Type, { type Static } from 'typebox';
import { PROFILE_STATES } from '../control/domain/runtime-states.ts';
import { ACCESS_LEVELS } from '../protocol/access.ts';
import { READINESS_CONDITION } from './enrollment-contract.ts';
import { givenId, identifier, moment, object } from './members-contract.ts';

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
    client_id: identifier('Whose keys sign like this.'),
    name: identifier('Unique among the profiles of a client.'),
    route_id: identifier('The route.'),
    method: Type.String({ description: 'As sent, case included.' }),
    path_template: Type.String({ description: 'As in the bundle.' }),
    audience: identifier("The passport's aud."),
    origins: Type.Array(Type.String(), { minItems: 1, description: 'scheme://authority.' }),
    signed_headers: Type.Array(Type.String(), { description: 'Lower-case names.' }),
    body: Type.Enum(['bound', 'unbound']),
    state: STATE,
    blocked_by: blockedBy,
  },
  'SigningProfile',
  'How a request for one route is signed. Active while the client holds the grant and the route may be called by it.',
);

export const SIGNING_PROFILES = object({ items: Type.Array(SIGNING_PROFILE) }, 'SigningProfiles');

export const KEY_READINESS = object(
  {
    key_id: givenId('The derived key.'),
    target_id: Type.Optional(givenId('The selected target; absent: all that are attached.')),
    ready: Type.Boolean({ description: 'Every condition is satisfied.' }),
    conditions: Type.Array(READINESS_CONDITION),
  },
  'KeyReadiness',
);

export type KeyGrantView = Static<typeof KEY_GRANT>;
export type SigningProfileView = Static<typeof SIGNING_PROFILE>;
export type KeyReadinessView = Static<typeof KEY_READINESS>;
