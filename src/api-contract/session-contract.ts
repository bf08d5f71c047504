/** Schemas of the sign-in requests and of the current session. */
import Type, { type Static } from 'typebox';
import { ROLES } from '../control/domain/roles.ts';
import { SCOPE } from './operators-contract.ts';

const closed = { additionalProperties: false } as const;

export const HELD_ROLE = Type.Object(
  {
    role: Type.Enum([...ROLES]),
    scope: SCOPE,
  },
  { ...closed, $id: 'HeldRole' },
);

export const SESSION = Type.Object(
  {
    actor: Type.String({
      description: 'As audit events and role grants name them, such as oidc:<issuer>|<subject>.',
    }),
    display_name: Type.String({ description: 'For people.' }),
    via: Type.Enum(['bootstrap', 'access_token', 'session']),
    roles: Type.Array(HELD_ROLE, { description: 'Those held now, from every grant that applies.' }),
    expires_at: Type.Optional(Type.String({ description: 'When these credentials end, RFC 3339.' })),
  },
  { ...closed, $id: 'Session' },
);
export type SessionView = Static<typeof SESSION>;

/** `GET /auth/login`. */
export const SIGN_IN_QUERY = Type.Object(
  {
    return_to: Type.Optional(
      Type.String({
        maxLength: 2048,
        description: 'Where to go afterwards: a path of this host. Default /.',
      }),
    ),
    cli_redirect: Type.Optional(
      Type.String({
        maxLength: 512,
        description: 'http://127.0.0.1:PORT/path where a command line waits for its code.',
      }),
    ),
    cli_challenge: Type.Optional(
      Type.String({
        maxLength: 128,
        description: 'S256 (RFC 7636) of the verifier that the command line keeps.',
      }),
    ),
    cli_state: Type.Optional(
      Type.String({ maxLength: 128, description: 'Given back to the command line as it came.' }),
    ),
  },
  closed,
);

/** `POST /auth/confirm`, form-encoded. */
export const CONFIRMATION = Type.Object(
  {
    confirmation: Type.String({ minLength: 1, maxLength: 128 }),
    decision: Type.Enum(['allow', 'deny']),
  },
  { ...closed, $id: 'SignInConfirmation' },
);

/** `POST /v1/session/exchange`. */
export const SESSION_EXCHANGE = Type.Object(
  {
    code: Type.String({
      minLength: 1,
      maxLength: 128,
      description: 'As it came to cli_redirect. Good once, for 60 s.',
    }),
    verifier: Type.String({
      pattern: '^[A-Za-z0-9._~-]{43,128}$',
      description: 'What cli_challenge is the S256 of (RFC 7636 section 4.1).',
    }),
  },
  { ...closed, $id: 'SessionExchange' },
);

export const SESSION_TOKEN = Type.Object(
  {
    token: Type.String({ description: 'Send it as Authorization: Bearer. A secret, shown only here.' }),
    expires_at: Type.String({ description: 'RFC 3339.' }),
  },
  { ...closed, $id: 'SessionToken' },
);
