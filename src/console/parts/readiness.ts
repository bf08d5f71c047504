/** Names for people of the conditions of a key's readiness (docs/operate/control.md "Readiness"). */
import type { Schemas } from '../api/client';

export const CONDITIONS: { readonly [C in Schemas['ReadinessCondition']['condition']]: string } = {
  derived_key: 'The key is active',
  route_grant: 'Its client is granted a route',
  signing_profile: 'It has a signing profile',
  target_acknowledged: 'The targets have loaded it',
  version_current: 'The targets have the current revision',
};
