/**
 * Schemas of the protocol between a target (a verifier) and Control: `GET /v1/targets/self/bundle` and `POST
 * /v1/targets/self/acks`. Documents are sent exactly as they were signed and stored.
 * Source: docs/design/bundle.md "Distribution".
 */
import Type, { type Static } from 'typebox';
import { MAX_WAIT_SECONDS } from './bundle-limits.ts';

const closed = { additionalProperties: false } as const;
const revision = Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER });
const head = Type.String({ pattern: '^[A-Za-z0-9_-]{43}$', description: 'base64url SHA-256.' });

/**
 * Position of the target: all members or none. `base_revision`: revision of its persisted whole bundle, for the
 * background fetch.
 */
export const POLL_QUERY = Type.Object(
  {
    revision: Type.Optional(revision),
    head: Type.Optional(head),
    base_revision: Type.Optional(revision),
    wait_seconds: Type.Optional(Type.Integer({ minimum: 0, maximum: MAX_WAIT_SECONDS, default: 0 })),
  },
  closed,
);

/** A document that continues a chain. `document`: the JWS, JSON text as signed. */
const step = Type.Object({ kind: Type.Enum(['delta', 'link']), revision, document: Type.String() }, closed);

const file = Type.Object(
  {
    name: Type.String({ pattern: '^(bundle\\.jws|keys-[0-9]{4}\\.jsonl)$' }),
    bytes: Type.Integer({ minimum: 1 }),
    sha256: head,
    /** Path on the same Control. Immutable; fetched with the target's token. */
    path: Type.String({ pattern: '^/v1/targets/self/bundles/' }),
  },
  closed,
);

/** A whole bundle's files and the steps after it. A target that takes it polls for any further steps. */
const whole = Type.Object(
  {
    revision,
    head,
    files: Type.Array(file, { minItems: 1 }),
    steps: Type.Array(step),
    /**
     * Whether no steps lead on from the target's position, so that it must take this bundle; otherwise it may, in the
     * background.
     */
    required: Type.Boolean(),
  },
  closed,
);

/** 200. Control answers 304 when nothing changed within the wait; the ETag covers revision, head and freshness statement. */
export const POLL_ANSWER = Type.Object(
  {
    auth_site: Type.String(),
    revision,
    head,
    steps: Type.Array(step, {
      description: "From the target's position on; empty when it has all or cannot continue.",
    }),
    whole: Type.Optional(whole),
    freshness: Type.Optional(
      Type.String({ description: 'The newest statement: a JWS, JSON text as signed.' }),
    ),
  },
  { ...closed, $id: 'TargetBundle' },
);

export const ACKNOWLEDGEMENT = Type.Object(
  {
    revision,
    head,
    outcome: Type.Enum(['accepted', 'refused']),
    code: Type.Optional(
      Type.String({
        pattern: '^[a-z0-9_]{1,64}$',
        description: 'Why it was refused: code of the bundle error.',
      }),
    ),
    detail: Type.Optional(Type.String({ maxLength: 512 })),
  },
  { ...closed, $id: 'TargetAcknowledgement' },
);

export type PollQuery = Static<typeof POLL_QUERY>;
export type PollAnswer = Static<typeof POLL_ANSWER>;
export type DistributedStep = Static<typeof step>;
export type DistributedFile = Static<typeof file>;
export type DistributedBundle = Static<typeof whole>;
export type Acknowledgement = Static<typeof ACKNOWLEDGEMENT>;
