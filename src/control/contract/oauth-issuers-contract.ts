/**
 * Schemas of OAuth authorization servers. The definition comes from the bundle's schema.
 * Source: docs/operate/control.md "OAuth issuers"; docs/design/bundle.md "Content".
 */
import type { Static } from 'typebox';
import Type from 'typebox';
import { oauthIssuer } from '../../bundle/format/schema-entries.ts';
import {
  closed,
  givenId,
  identifier,
  moment,
  object,
  VERSIONED,
} from '../../process/http-service/members-contract.ts';
import { ACCESS_TOKEN_ALGORITHMS } from '../../protocol/access-token.ts';

const { issuer: _issuer, keys: _keys, ...members } = oauthIssuer.properties;

export const OAUTH_ISSUER_DEFINITION = Type.Object(
  {
    ...members,
    jwks_url: Type.Optional(
      identifier('https URL of its key set. Default: jwks_uri of its metadata, which is then not fetched.'),
    ),
  },
  {
    ...closed,
    $id: 'OAuthIssuerDefinition',
    description: 'As in a bundle’s oauth_issuers, without issuer and keys, which Control fetches.',
  },
);

export const OAUTH_ISSUER_REPLACEMENT = object(
  { definition: OAUTH_ISSUER_DEFINITION },
  'OAuthIssuerReplacement',
  undefined,
  { definition: { trust_domain: 'shop.example', subject_claim: 'sub' } },
);

const FETCHED_KEY = object(
  {
    kid: givenId('kid of the access tokens that it signs.'),
    alg: Type.Enum([...ACCESS_TOKEN_ALGORITHMS]),
    thumbprint: givenId('RFC 7638, SHA-256, base64url.'),
  },
  'FetchedKey',
);

export const OAUTH_ISSUER = object(
  {
    site_id: identifier('The Auth Site.'),
    issuer: identifier('iss of the access tokens that it signs.'),
    trust_domain: identifier('As in the definition.'),
    definition: OAUTH_ISSUER_DEFINITION,
    keys: Type.Array(FETCHED_KEY, { description: 'The keys that Control fetched last.' }),
    published: Type.Boolean({
      description: 'Whether bundles contain it. A server without keys is not published.',
    }),
    fetched_at: Type.Optional(moment('When Control last fetched its keys.')),
    failure: Type.Optional(Type.String({ description: 'Code of the last fetch, if it failed.' })),
    ...VERSIONED,
  },
  'OAuthIssuer',
);

export const OAUTH_ISSUER_PATH = {
  site_id: identifier('The Auth Site.'),
  issuer: identifier('iss of the access tokens, percent-encoded.'),
};

export type OAuthIssuerDefinition = Static<typeof OAUTH_ISSUER_DEFINITION>;
export type OAuthIssuerView = Static<typeof OAUTH_ISSUER>;
