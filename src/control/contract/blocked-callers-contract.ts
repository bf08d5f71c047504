/**
 * Schemas of blocked callers: bundles deny their requests on every route.
 * Source: docs/operate/control.md "Blocked callers".
 */
import type { Static } from 'typebox';
import Type from 'typebox';
import {
  closed,
  givenId,
  identifier,
  moment,
  object,
  shownText,
} from '../../process/http-service/members-contract.ts';
import { MAX_SHOWN_TARGETS } from './vocabulary.ts';

/** Names a caller: the issuer with exactly one of the others. Body of a new block, and query of its removal. */
export const CALLER_NAME = {
  issuer: identifier(
    "The iss of passport or access token, exactly: the Auth Site's issuer URL, a broker or an OAuth issuer.",
  ),
  subject: Type.Optional(identifier("The passport's sub, exactly. Either this or holder_thumbprint.")),
  holder_thumbprint: Type.Optional(
    Type.String({
      // The last character has two unused bits, which are zero.
      pattern: '^[A-Za-z0-9_-]{42}[AEIMQUYcgkosw048]$',
      description: 'RFC 7638 thumbprint of the holder key, SHA-256, base64url. Either this or subject.',
    }),
  ),
};

export const NEW_BLOCKED_CALLER = object(CALLER_NAME, 'NewBlockedCaller', undefined, {
  issuer: 'https://broker.example/shop',
  subject: 'spiffe://shop.example/billing',
});

export const BLOCKED_CALLER = object(
  {
    site_id: identifier('The Auth Site.'),
    ...CALLER_NAME,
    blocked_at: moment('When it was blocked.'),
    blocked_by: Type.String({ description: 'Actor of the change.' }),
    waiting_for: Type.Optional(
      Type.Array(Type.Object({ target_id: givenId('The target.'), name: shownText('For people.') }, closed), {
        maxItems: MAX_SHOWN_TARGETS,
        description:
          'The first targets that hold the publication back: they did not report yet that they know blocked callers. Absent when there is none.',
      }),
    ),
  },
  'BlockedCaller',
);

export type CallerName = Static<typeof NEW_BLOCKED_CALLER>;
export type BlockedCallerView = Static<typeof BLOCKED_CALLER>;
