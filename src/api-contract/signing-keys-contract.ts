/** Schemas of a site's signing keys: the public halves, which verifiers pin. */
import Type, { type Static } from 'typebox';
import { givenId, moment, object, SITE_PATH } from './members-contract.ts';

const purpose = Type.Enum(['bundle', 'freshness'], {
  description: 'bundle: bundles, deltas and links (--bundle-key). freshness: statements (--freshness-key).',
});

export const SIGNING_KEY = object(
  {
    signing_key_id: givenId('Names the key here.'),
    purpose,
    state: Type.Enum(['active', 'retiring', 'retired']),
    thumbprint: Type.String({ description: 'kid of its signatures: RFC 7638, SHA-256, base64url.' }),
    jwk: Type.Object({
      kty: Type.Literal('OKP'),
      crv: Type.Literal('Ed25519'),
      x: Type.String({ description: 'base64url, 32 bytes.' }),
    }),
    created_at: moment('When it was made.'),
    retire_at: Type.Optional(moment('When a retiring key stops signing.')),
  },
  'SigningKey',
);

export const SIGNING_KEYS = object({ items: Type.Array(SIGNING_KEY) }, 'SigningKeys');

const MAX_RETIRING_SECONDS = 90 * 86_400;

export const SIGNING_KEY_ROTATION = object(
  {
    purpose,
    retiring_seconds: Type.Optional(
      Type.Integer({
        minimum: 60,
        maximum: MAX_RETIRING_SECONDS,
        description: 'How long the key before signs beside the new one. Default: 86400.',
      }),
    ),
  },
  'SigningKeyRotation',
);

export const SIGNING_KEY_PATH = { ...SITE_PATH, signing_key_id: givenId('The signing key.') };

export const SIGNING_KEY_RETIREMENT = object(
  {
    retiring_seconds: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: MAX_RETIRING_SECONDS,
        description: 'How long the key still signs: less than it would have. Default: 0, it ends now.',
      }),
    ),
  },
  'SigningKeyRetirement',
);

export type SigningKeyResource = Static<typeof SIGNING_KEY>;
export type SigningKeyRotation = Static<typeof SIGNING_KEY_ROTATION>;
export type SigningKeyRetirement = Static<typeof SIGNING_KEY_RETIREMENT>;
