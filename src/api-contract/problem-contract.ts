/** Schema of every error response: problem+json (RFC 9457). */
import Type, { type Static } from 'typebox';

const closed = { additionalProperties: false } as const;

const FAULT = Type.Object(
  {
    pointer: Type.String({
      description: 'Where: a JSON Pointer (RFC 6901) after the part of the request, such as /body/name.',
    }),
    reason: Type.String({ description: 'What is wrong there.' }),
  },
  { ...closed, $id: 'Fault' },
);

export const PROBLEM = Type.Object(
  {
    type: Type.String({ description: 'urn:proofgate:problem: and the code.' }),
    title: Type.String({ description: 'The code, in words.' }),
    status: Type.Integer({ minimum: 400, maximum: 599 }),
    code: Type.String({ pattern: '^[a-z][a-z0-9_]*$', description: 'Stable: switch on it.' }),
    detail: Type.Optional(Type.String({ description: 'More of this very failure; for people.' })),
    request_id: Type.String({ description: 'As in X-Request-Id and in the audit trail.' }),
    errors: Type.Optional(Type.Array(FAULT, { description: 'Every fault of the request.' })),
  },
  { ...closed, $id: 'Problem' },
);

export type Fault = Static<typeof FAULT>;
export type Problem = Static<typeof PROBLEM>;
