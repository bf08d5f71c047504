/** Schema parts that many resources share. */

import type { Static, TProperties } from 'typebox';
import Type from 'typebox';

export const closed = { additionalProperties: false } as const;

/** Visible ASCII; not `.` or `..`, which URL parsers remove from a path. */
export const IDENTIFIER_PATTERN = '^(?!\\.{1,2}$)[!-~]{1,512}$';

export const identifier = (description: string) => Type.String({ pattern: IDENTIFIER_PATTERN, description });
/** Text of limited length that Control does not restrict further. */
export const text = (maxLength: number, description: string) =>
  Type.String({ minLength: 1, maxLength, description });
/** An identifier that Control generates. */
export const givenId = (description: string) => Type.String({ pattern: '^[!-~]{1,128}$', description });
const CONTROL_CHARACTERS = '\\u0000-\\u001f\\u007f-\\u009f\\u2028\\u2029';
/**
 * Characters without a width, and those that change the direction of text, with which two names look the same: Unicode's
 * Default_Ignorable_Code_Point and Bidi_Control, and interlinear annotations. Pairs of surrogates are one character each.
 */
export const INVISIBLE_CHARACTERS =
  '\\u00ad\\u034f\\u061c\\u115f\\u1160\\u17b4\\u17b5\\u180b-\\u180f\\u200b-\\u200f\\u202a-\\u202e\\u2060-\\u206f\\u3164' +
  '\\ufe00-\\ufe0f\\ufeff\\uffa0\\ufff0-\\ufffb\\ud82f\\udca0-\\ud82f\\udca3\\ud834\\udd73-\\ud834\\udd7a\\udb40\\udc00-\\udb43\\udfff';

/** Patterns that messages describe by a sentence. */
export const DISPLAY_TEXT_PATTERN = `^[^${CONTROL_CHARACTERS}${INVISIBLE_CHARACTERS}]{1,128}$`;
export const DISPLAY_TEXT_RULE =
  'must be 1 to 128 characters, without control, zero-width and bidirectional characters';

/** A name or text for people, as Control accepts it. */
export const displayText = (description: string) =>
  Type.String({ pattern: DISPLAY_TEXT_PATTERN, description });
/** Query parameter of changes by operators, whose bodies hold the resource. */
export const REASON = { reason: Type.Optional(displayText('Why, for the audit trail.')) };
/**
 * The same in an answer, in which zero-width and bidirectional characters may occur, because 0.3.0 and earlier accepted
 * them.
 */
export const shownText = (description: string) =>
  Type.String({ pattern: `^[^${CONTROL_CHARACTERS}]{1,128}$`, description });
/** Query parameter of lists of resources with names. */
export const NAME_FILTER = { name: Type.Optional(shownText('Only of this name.')) };
export const moment = (description: string) =>
  Type.String({ format: 'date-time', description: `${description} RFC 3339, UTC.` });

/** Members of every versioned resource. */
export const VERSIONED = {
  version: Type.Integer({ minimum: 1, description: 'Version number, as in the ETag.' }),
  created_at: moment('When it was created.'),
  updated_at: moment('When it was last changed.'),
};

/** Path of a resource below a site. */
export const SITE_PATH = { site_id: identifier('The Auth Site.') };

/** A named schema. @param example a valid example for the OpenAPI document */
export const object = <P extends TProperties>(
  members: P,
  id: string,
  description?: string,
  example?: object,
) =>
  Type.Object(members, {
    ...closed,
    $id: id,
    ...(description === undefined ? {} : { description }),
    ...(example === undefined ? {} : { examples: [example] }),
  });

/** Path or query parameters. They have no name in the OpenAPI document. */
export const parameters = <P extends TProperties>(members: P) => Type.Object(members, closed);

/** The empty body of a 204. */
export const nothing = Type.Null();

/** Schema of every error response: problem+json (RFC 9457). */
const FAULT = Type.Object(
  {
    pointer: Type.String({
      description: 'JSON Pointer (RFC 6901) that begins with the part of the request, such as /body/name.',
    }),
    reason: Type.String({ description: 'Reason of the fault.' }),
  },
  { ...closed, $id: 'Fault' },
);

export const PROBLEM = Type.Object(
  {
    type: Type.String({ description: 'urn:proofgate:problem: and the code.' }),
    title: Type.String({ description: 'Short text for the code.' }),
    status: Type.Integer({ minimum: 400, maximum: 599 }),
    code: Type.String({ pattern: '^[a-z][a-z0-9_]*$', description: 'Stable error code.' }),
    detail: Type.Optional(Type.String({ description: 'Details of this failure, for people.' })),
    request_id: Type.String({ description: 'As in X-Request-Id and in the audit trail.' }),
    errors: Type.Optional(Type.Array(FAULT, { description: 'Each fault of the request.' })),
  },
  { ...closed, $id: 'Problem' },
);

export type Fault = Static<typeof FAULT>;
export type Problem = Static<typeof PROBLEM>;
