/**
 * Schemas of the broker's API. Callers import the types from here.
 * Source: docs/operate/broker.md "API".
 */
import Type, { type Static } from 'typebox';
import { closed, identifier, moment, text } from '../process/http-service/members-contract.ts';
import { KEY_BINDINGS } from '../protocol/identifiers.ts';

const base64url = (maxLength: number, description: string) =>
  Type.String({ pattern: `^[A-Za-z0-9_-]{1,${maxLength}}$`, description: `${description} base64url.` });

const PUBLIC_JWK = Type.Union(
  [
    Type.Object(
      { kty: Type.Literal('OKP'), crv: Type.Literal('Ed25519'), x: base64url(43, '32 bytes.') },
      closed,
    ),
    Type.Object(
      {
        kty: Type.Literal('EC'),
        crv: Type.Literal('P-256'),
        x: base64url(43, '32 bytes.'),
        y: base64url(43, '32 bytes.'),
      },
      closed,
    ),
  ],
  { $id: 'HolderKey', description: 'A public key: Ed25519 (RFC 8037) or P-256 (RFC 7518).' },
);
const challenge = base64url(256, 'From POST /v1/challenges.');
const holderSignature = base64url(128, 'Of holder_jwk, over the lines of proofgate-broker-v1.');

export const BROKER_CHALLENGE = Type.Object(
  { challenge, expires_at: moment('When the challenge expires.') },
  { ...closed, $id: 'BrokerChallenge' },
);

/** How the caller proves who it is; the strongest class of the passport follows from it. */
export const CALLER_PROOF = Type.Union(
  [
    Type.Object(
      { kind: Type.Literal('mtls') },
      {
        ...closed,
        description:
          'The client certificate of this connection, an X.509-SVID, whose key becomes the holder key.',
      },
    ),
    Type.Object(
      {
        kind: Type.Literal('signed_form'),
        challenge,
        certificates: Type.Array(Type.String({ pattern: '^[A-Za-z0-9+/=]{1,16384}$' }), {
          minItems: 1,
          maxItems: 8,
          description: 'X.509-SVID and its intermediates: DER in base64, leaf first, as in x5c (RFC 7515).',
        }),
        holder_jwk: PUBLIC_JWK,
        svid_signature: base64url(1024, 'Of the SVID, over the same lines: ES256, ES384, Ed25519 or PS256.'),
        holder_signature: holderSignature,
      },
      closed,
    ),
    Type.Object(
      {
        kind: Type.Literal('jwt_svid'),
        challenge,
        token: text(16_384, 'JWT-SVID, its only audience <broker-url>#jkt=<thumbprint of holder_jwk>.'),
        holder_jwk: PUBLIC_JWK,
        holder_signature: holderSignature,
      },
      closed,
    ),
    Type.Object(
      {
        kind: Type.Literal('software_key'),
        challenge,
        registered_jwk: PUBLIC_JWK,
        registered_signature: base64url(128, 'Of registered_jwk, over the lines of proofgate-broker-v1.'),
        holder_jwk: Type.Optional(PUBLIC_JWK),
        holder_signature: Type.Optional(holderSignature),
      },
      { ...closed, description: 'Without holder_jwk the registered key is the holder key.' },
    ),
  ],
  { $id: 'CallerProof' },
);

export const PASSPORT_REQUEST = Type.Object(
  { audience: identifier("The passport's aud."), proof: CALLER_PROOF },
  { ...closed, $id: 'PassportRequest' },
);

const COORDINATES = {
  key_id: text(128, "The passport's kid: the broker's signing key."),
  issuer: text(512, "The passport's iss."),
  trust_domain: text(512, "The passport's trust_domain."),
  subject: text(512, "The passport's sub."),
  key_binding: Type.Enum(KEY_BINDINGS),
};

export const PASSPORT_ANSWER = Type.Object(
  {
    passport: text(8_192, 'Compact JWS.'),
    expires_at: moment('When the passport expires.'),
    holder_thumbprint: base64url(43, 'RFC 7638 thumbprint of the holder key.'),
    ...COORDINATES,
  },
  { ...closed, $id: 'IssuedPassport' },
);

export const PROOF_REQUEST = Type.Object(
  {
    auth_site: identifier('The Auth Site of the route.'),
    route_id: identifier('The route.'),
    audience: identifier("The route's audience."),
    proof: CALLER_PROOF,
    request: Type.Object(
      {
        method: text(32, 'As sent, case included.'),
        url: text(8_192, 'As sent: its path and query are signed byte for byte.'),
        headers: Type.Array(Type.Tuple([text(128, 'Name.'), text(4_096, 'Value.')]), {
          maxItems: 32,
          description: 'Headers to sign.',
        }),
        body_sha256: Type.Optional(base64url(43, 'SHA-256 of the body; without it no body is bound.')),
      },
      closed,
    ),
  },
  { ...closed, $id: 'ProofRequest' },
);

export const PROOF_ANSWER = Type.Object(
  {
    headers: Type.Record(Type.String(), Type.String(), {
      description: 'Authorization, X-Proofgate-Transcript and X-Proofgate-Signature.',
    }),
    expires_at: moment('When the proof expires.'),
  },
  { ...closed, $id: 'IssuedProof' },
);

export const PROFILES_REQUEST = Type.Object({ proof: CALLER_PROOF }, { ...closed, $id: 'ProfilesRequest' });

/** Documents as in docs/operate/cli.md "Signing profiles". */
export const PROFILES_ANSWER = Type.Object(
  { profiles: Type.Array(Type.Unknown(), { description: 'Signing profile files that fit the caller.' }) },
  { ...closed, $id: 'FittingProfiles' },
);

export const BROKER_DISCOVERY = Type.Object(
  {
    issuer: text(512, "The passports' iss."),
    jwks_uri: text(2_048, 'Public signing keys.'),
    trust_domains: Type.Array(text(255, 'A trust domain that the broker issues for.')),
    proofs: Type.Array(Type.Enum(['mtls', 'signed_form', 'jwt_svid', 'software_key'])),
    algorithms: Type.Array(Type.Enum(['Ed25519', 'ES256'])),
    max_passport_ttl_seconds: Type.Integer({ minimum: 1, maximum: 300 }),
    serves_proofs: Type.Boolean(),
  },
  { ...closed, $id: 'BrokerDiscovery' },
);

/** A JWK Set (RFC 7517 section 5). The key that signs next is in it before its first use. */
export const BROKER_JWKS = Type.Object(
  {
    keys: Type.Array(
      Type.Object(
        {
          kty: Type.Enum(['OKP', 'EC']),
          crv: Type.Enum(['Ed25519', 'P-256']),
          x: base64url(43, '32 bytes.'),
          y: Type.Optional(base64url(43, '32 bytes; P-256 only.')),
          kid: text(128, "The passports' kid; unique among all trust domains."),
          alg: Type.Enum(['Ed25519', 'ES256']),
          use: Type.Literal('sig'),
          trust_domain: text(255, 'The trust domain that the key signs for.'),
        },
        closed,
      ),
    ),
  },
  { ...closed, $id: 'BrokerJwks' },
);

export type BrokerChallenge = Static<typeof BROKER_CHALLENGE>;
export type CallerProof = Static<typeof CALLER_PROOF>;
export type PassportRequest = Static<typeof PASSPORT_REQUEST>;
export type PassportAnswer = Static<typeof PASSPORT_ANSWER>;
export type ProofRequest = Static<typeof PROOF_REQUEST>;
export type ProofAnswer = Static<typeof PROOF_ANSWER>;
export type ProfilesAnswer = Static<typeof PROFILES_ANSWER>;
export type BrokerDiscovery = Static<typeof BROKER_DISCOVERY>;
