/**
 * Schemas of the entries in bundles and deltas: issuers, clients, keys, routes, sources. `schema.ts` composes documents
 * of them; all other modules import that one.
 * Source: docs/design/bundle.md "Content".
 */
import Type, { type Static, type TSchema } from 'typebox';
import { ACCESS_LEVELS } from '../../protocol/access.ts';
import { ACCESS_TOKEN_ALGORITHMS, ACCESS_TOKEN_TYPES } from '../../protocol/access-token.ts';
import { MAX_ATTRIBUTES } from '../../protocol/limits.ts';
import { PROOF_FORMATS, UNBOUND_PARTS } from '../../protocol/proof-format.ts';
import { TIME_PATTERN } from '../../protocol/rfc3339.ts';
import { PASSPORT_HEADER_MEMBER } from '../../protocol/wire-names.ts';
import {
  DEFAULT_PASSPORT_TTL_SECONDS,
  MAX_GRANTS,
  MAX_INLINE_DERIVED_KEYS,
  MAX_KEYS_PER_SHARD,
  MAX_PASSPORT_TTL_SECONDS,
  MAX_STALENESS_LIMIT_SECONDS,
} from './bundle-limits.ts';
import {
  IDENTIFIER_PATTERN,
  KEY_ID_PATTERN,
  METHOD_PATTERN,
  PATH_TEMPLATE_PATTERN,
  SHA256_PATTERN,
  SHARD_FILE_PATTERN,
  SUBJECT_PREFIX_PATTERN,
} from './patterns.ts';

export const MAX_KEYS_PER_ISSUER = 64;
const MAX_SOURCES_PER_ROUTE = 1000;
const MAX_ALLOWED_VALUES = 1000;

export type Readable<T> = T extends readonly (infer Item)[]
  ? readonly Readable<Item>[]
  : T extends object
    ? { readonly [Name in keyof T]: Readable<T[Name]> }
    : T;

function closed<P extends Record<string, TSchema>>(members: P, description?: string) {
  return Type.Object(members, {
    additionalProperties: false,
    ...(description === undefined ? {} : { description }),
  });
}

export const identifier = (description: string) => Type.String({ pattern: IDENTIFIER_PATTERN, description });
export const keyId = (description: string) => Type.String({ pattern: KEY_ID_PATTERN, description });
export const time = (description: string) =>
  Type.String({ pattern: TIME_PATTERN, description: `${description} RFC 3339, UTC, whole seconds.` });
export const sha256 = (description: string) =>
  Type.String({ pattern: SHA256_PATTERN, description: `${description} SHA-256, base64url.` });
const attributes = (description: string) =>
  Type.Record(Type.String({ pattern: IDENTIFIER_PATTERN }), identifier('Value.'), {
    additionalProperties: false,
    maxProperties: MAX_ATTRIBUTES,
    description,
  });
const allowedValues = (description: string) =>
  Type.Record(
    Type.String({ pattern: IDENTIFIER_PATTERN }),
    Type.Array(identifier('Allowed value.'), {
      minItems: 1,
      maxItems: MAX_ALLOWED_VALUES,
      uniqueItems: true,
    }),
    { additionalProperties: false, maxProperties: MAX_ATTRIBUTES, description },
  );

export const revision = Type.Integer({
  minimum: 1,
  maximum: Number.MAX_SAFE_INTEGER,
  description: 'Higher than the revision before.',
});
export const authSite = identifier("Must be the verifier's --auth-site.");
export const origins = (description: string) =>
  Type.Array(Type.String({ minLength: 8, maxLength: 520 }), {
    minItems: 1,
    maxItems: 1000,
    uniqueItems: true,
    description,
  });
/** The verifier must allow it, too. Default: enforced. */
export const observe = (description: string) => Type.Optional(Type.Enum(['observe'], { description }));
const keyBinding = (description: string) => Type.Enum(['software', 'attested_workload'], { description });

const publicJwk = Type.Union(
  [
    closed({
      kty: Type.Literal('OKP'),
      crv: Type.Literal('Ed25519'),
      x: coordinate(),
    }),
    closed({
      kty: Type.Literal('EC'),
      crv: Type.Literal('P-256'),
      x: coordinate(),
      y: coordinate(),
    }),
  ],
  {
    description:
      'Public key (RFC 7517, RFC 8037). Ed25519: canonical, of full order. P-256: on the curve. Nothing else.',
  },
);

function coordinate() {
  return Type.String({ pattern: '^[A-Za-z0-9_-]{43}$', description: '32 bytes, canonical base64url.' });
}

const issuerKey = closed({
  kid: keyId('Shares one namespace with key_id.'),
  alg: Type.Enum(['Ed25519', 'ES256'], { description: 'Must be the algorithm of the key.' }),
  jwk: publicJwk,
  not_before: Type.Optional(time('Passports are taken from this moment on.')),
  not_after: Type.Optional(time('Passports are taken before this moment.')),
});

export const issuer = closed(
  {
    issuer: identifier("The passport's iss. Must not be the issuer of a client."),
    trust_domain: identifier("The passport's trust_domain."),
    subject_prefixes: Type.Array(Type.String({ pattern: SUBJECT_PREFIX_PATTERN }), {
      minItems: 1,
      maxItems: 1000,
      uniqueItems: true,
      description: 'What its keys may speak for. Each ends in "/" or ":"; the empty one says: anything.',
    }),
    key_binding: keyBinding('The strongest class that its keys may attest.'),
    max_passport_ttl_seconds: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: MAX_PASSPORT_TTL_SECONDS,
        default: DEFAULT_PASSPORT_TTL_SECONDS,
        description: 'Longest exp - iat.',
      }),
    ),
    keys: Type.Array(issuerKey, { minItems: 1, maxItems: MAX_KEYS_PER_ISSUER }),
  },
  'A broker: signs passports for others.',
);

const rsaJwk = closed({
  kty: Type.Literal('RSA'),
  n: Type.String({ pattern: '^[A-Za-z0-9_-]{342,683}$', description: '2048 to 4096 bits, base64url.' }),
  e: Type.Literal('AQAB'),
});

const oauthKey = closed({
  kid: keyId("The token's kid. Shares a namespace with this issuer's keys alone."),
  alg: Type.Enum([...ACCESS_TOKEN_ALGORITHMS], { description: 'The only algorithm of the key.' }),
  jwk: Type.Union([publicJwk, rsaJwk], { description: 'Public key (RFC 7517).' }),
});

const claimName = (description: string) =>
  Type.String({ pattern: IDENTIFIER_PATTERN, maxLength: 128, description });

export const oauthIssuer = closed(
  {
    issuer: identifier("The token's iss. Must not be the issuer of a client or broker."),
    trust_domain: identifier('Of its callers, for allowed_sources.'),
    token_types: Type.Optional(
      Type.Array(Type.Enum([...ACCESS_TOKEN_TYPES]), {
        minItems: 1,
        uniqueItems: true,
        description: "The token's typ. Default: at+jwt. JWT: for servers that write no other.",
      }),
    ),
    subject_claim: Type.Optional(
      claimName(
        'Names the caller: the subject is CLAIM:VALUE. Default: sub. client_id and azp need service_marker.',
      ),
    ),
    service_marker: Type.Optional(
      closed(
        { claim: claimName('Name.'), value: identifier('Value.') },
        'What tokens of client credentials alone have; others are refused.',
      ),
    ),
    context_claims: Type.Optional(
      Type.Array(claimName('Claim that becomes context. Of scope, one of the values must be allowed.'), {
        maxItems: MAX_ATTRIBUTES,
        uniqueItems: true,
      }),
    ),
    max_token_ttl_seconds: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: MAX_PASSPORT_TTL_SECONDS,
        default: DEFAULT_PASSPORT_TTL_SECONDS,
        description: 'Longest exp - iat.',
      }),
    ),
    not_before: Type.Optional(time('Tokens issued before are refused.')),
    keys: Type.Array(oauthKey, { minItems: 1, maxItems: MAX_KEYS_PER_ISSUER }),
  },
  'An OAuth authorization server: its access tokens count beside a DPoP proof.',
);

const grant = closed({
  resource: identifier('What routes name as their resource.'),
  access: Type.Enum([...ACCESS_LEVELS], { description: 'write includes read.' }),
});

export const client = closed(
  {
    client_id: identifier('Names the client.'),
    issuer: identifier('The iss of passports that its derived keys sign.'),
    trust_domain: identifier('Their trust_domain.'),
    subject: identifier('Their sub. A SPIFFE ID lies in trust_domain.'),
    context: Type.Optional(attributes('What its derived keys act for.')),
    grants: Type.Array(grant, { maxItems: MAX_GRANTS, description: 'Each resource once.' }),
  },
  'Whom derived keys act for.',
);

export const derivedKey = closed(
  {
    key_id: keyId('Shares one namespace with kid.'),
    client_id: identifier('The client that it acts for.'),
    jwk: publicJwk,
    status: Type.Enum(['active', 'revoked']),
    expires_at: time('Requests are taken before this moment.'),
    provenance: Type.Optional(attributes('Where the key comes from.')),
  },
  'A key that Control derived for a workload. Always of class software.',
);

export const keyShard = closed(
  {
    file: Type.String({ pattern: SHARD_FILE_PATTERN, description: 'Beside the bundle.' }),
    count: Type.Integer({ minimum: 1, maximum: MAX_KEYS_PER_SHARD, description: 'Keys in it, one a line.' }),
    sha256: sha256("Of the file's bytes."),
  },
  `Derived keys beyond ${MAX_INLINE_DERIVED_KEYS}, as lines of JSON in a file of their own.`,
);

export const route = closed(
  {
    route_id: identifier('Names the route.'),
    method: Type.String({
      pattern: METHOD_PATTERN,
      description: 'Compared exactly, case included.',
    }),
    path_template: Type.String({
      pattern: PATH_TEMPLATE_PATTERN,
      description: 'Literal segments, {name} for one segment, {name*} at the end for one or more.',
    }),
    audience: identifier("The passport's aud."),
    freshness_class: identifier('bounded or realtime; a route with another one denies every request.'),
    max_staleness_seconds: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: MAX_STALENESS_LIMIT_SECONDS,
        description: 'Greatest age of the content. Required for bounded.',
      }),
    ),
    resource: Type.Optional(identifier('What a derived key must be granted. Default: the route_id.')),
    access: Type.Optional(
      Type.Enum([...ACCESS_LEVELS], { description: 'Default: read for GET, HEAD and OPTIONS; else write.' }),
    ),
    origins: Type.Optional(origins("Narrower than the site's.")),
    signed_headers: Type.Optional(
      Type.Array(Type.String({ minLength: 1, maxLength: 128 }), {
        maxItems: 32,
        uniqueItems: true,
        description: 'Lower-case names of headers that every transcript must sign.',
      }),
    ),
    body: Type.Optional(
      Type.Enum(['bound', 'unbound'], {
        default: 'bound',
        description:
          'unbound: the body is not part of the proof. For streams and uploads that no buffer holds.',
      }),
    ),
    upgrade: Type.Optional(
      Type.Enum(['websocket'], {
        description: 'Upgrade that the reverse proxy passes on. Default: none.',
      }),
    ),
    required_provenance: Type.Optional(allowedValues('Name to the values allowed.')),
    required_context: Type.Optional(allowedValues('Name to the values allowed.')),
    passport_header: Type.Optional(
      Type.Enum([PASSPORT_HEADER_MEMBER], {
        description:
          'Header that carries the passport; Authorization then belongs to the application. Default: Authorization.',
      }),
    ),
    forward_authorization: Type.Optional(
      Type.Boolean({ default: false, description: 'Whether the upstream receives the passport.' }),
    ),
    accepted_proofs: Type.Optional(
      Type.Array(Type.Enum([...PROOF_FORMATS]), {
        minItems: 1,
        uniqueItems: true,
        description: 'Formats of proofs that the route accepts. Default: transcript-v1 alone.',
      }),
    ),
    unbound: Type.Optional(
      Type.Array(Type.Enum([...UNBOUND_PARTS]), {
        uniqueItems: true,
        description:
          'What requests with a DPoP proof may have although it binds none of it. Required with dpop; always has route and site.',
      }),
    ),
    dpop_nonce: Type.Optional(
      Type.Enum(['required'], {
        description: 'Whether a DPoP proof must have a nonce of the verifier. Default: no.',
      }),
    ),
    oauth_revocation: Type.Optional(
      Type.Enum(['token_lifetime'], {
        description:
          'Lets a realtime route accept access tokens of oauth_issuers, which nothing ends before their time.',
      }),
    ),
    enforcement: observe('Whether denied requests pass, without identity, until observe_until.'),
    observe_until: Type.Optional(
      time('When the observation ends, at most 30 days after issued_at. Required with enforcement.'),
    ),
  },
  'Which requests there are, and what each must carry.',
);

const allowedSource = closed({
  issuer: identifier("Equals the passport's iss."),
  trust_domain: identifier("Equals the passport's trust_domain."),
  subject_exact: Type.Optional(identifier("Equals the passport's sub. Either this or subject_prefix.")),
  subject_prefix: Type.Optional(identifier('Begins it. Ends in "/" or ":".')),
  required_key_binding: keyBinding('Weakest class that is enough.'),
});

export const routeSources = closed(
  {
    route_id: identifier('Every route has exactly one of these.'),
    allowed_sources: Type.Array(allowedSource, { minItems: 1, maxItems: MAX_SOURCES_PER_ROUTE }),
  },
  'Who may call a route.',
);

export const blockedCaller = closed(
  {
    issuer: identifier("Equals the passport's iss."),
    subject: Type.Optional(identifier("Equals the passport's sub. Either this or holder_thumbprint.")),
    holder_thumbprint: Type.Optional(
      Type.String({
        pattern: SHA256_PATTERN,
        description: 'RFC 7638 thumbprint of the holder key, base64url.',
      }),
    ),
  },
  'Whom no route admits, whatever else the bundle says.',
);

export const trustAnchorSource = closed(
  {
    id: identifier('Names the source.'),
    revision: Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER }),
    fingerprint: identifier('As validation reported it.'),
  },
  'Informational: an enrollment source that stands behind derived keys.',
);

export type IssuerContent = Readable<Static<typeof issuer>>;
export type OAuthIssuerContent = Readable<Static<typeof oauthIssuer>>;
export type IssuerKeyContent = Readable<Static<typeof issuerKey>>;
export type ClientContent = Readable<Static<typeof client>>;
export type DerivedKeyContent = Readable<Static<typeof derivedKey>>;
export type KeyShardContent = Readable<Static<typeof keyShard>>;
export type RouteContent = Readable<Static<typeof route>>;
export type RouteSourcesContent = Readable<Static<typeof routeSources>>;
export type BlockedCallerContent = Readable<Static<typeof blockedCaller>>;
export type AllowedSourceContent = Readable<Static<typeof allowedSource>>;
