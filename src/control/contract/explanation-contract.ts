/** Schemas of explanations: why a captured request was allowed or denied. Source: docs/operate/explain.md "As JSON". */

import type { Static } from 'typebox';
import Type from 'typebox';
import { closed, moment, object } from '../../process/http-service/members-contract.ts';

/** Maximum size of a body, whose JSON text is escaped inside JSON. */
export const MAX_EXPLANATION_BYTES = 256 * 1024;

export const EXPLANATION_REQUEST = object(
  {
    request: Type.String({
      minLength: 1,
      maxLength: MAX_EXPLANATION_BYTES,
      description:
        'The captured request as JSON text, in any form that `proofgate explain --request` takes. If it has a signature, the proof must have expired.',
    }),
    revision: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: Number.MAX_SAFE_INTEGER,
        description:
          'Published revision to explain with. Default: the one of the audit event if Control holds it, otherwise the newest.',
      }),
    ),
    at: Type.Optional(moment('The moment to explain. Default: that of the capture, otherwise now.')),
  },
  'ExplanationRequest',
);
export type ExplanationRequest = Static<typeof EXPLANATION_REQUEST>;

const shown = (description: string) => Type.String({ description });
const orNull = <T extends Type.TSchema>(schema: T, description?: string) =>
  Type.Union([schema, Type.Null()], description === undefined ? {} : { description });
const nullable = orNull(Type.String());
/** Members of which only the text form is shown. */
const unspecified = (description: string) =>
  Type.Unknown({ description: `${description} See docs/operate/explain.md.` });

const VERDICT = Type.Enum(['passed', 'failed', 'would_pass', 'would_fail', 'not_reached', 'not_checked']);

const DECISION = Type.Object(
  {
    outcome: Type.Enum(['allowed', 'denied']),
    reason: nullable,
    detail: nullable,
    status: orNull(Type.Integer()),
  },
  closed,
);

const STEP = object(
  {
    step: Type.Integer({ minimum: 1, maximum: 7 }),
    name: shown('What it checks.'),
    verdict: VERDICT,
    reason: Type.Optional(Type.String()),
    detail: Type.Optional(nullable),
  },
  'ExplainedStep',
);

const TRANSCRIPT_LINE = object(
  {
    line: shown('Its name.'),
    equal: Type.Boolean({ description: 'The signed value is that of the request.' }),
    signed: orNull(Type.String(), 'Null: the caller did not sign it.'),
    rebuilt: orNull(Type.String(), 'As the request has it. Null: unknown.'),
    why: orNull(
      Type.Enum(['not_signed', 'body_unavailable', 'header_missing', 'header_repeated']),
      'Why one of the values is missing.',
    ),
    difference: orNull(
      Type.Object(
        {
          character: Type.Integer({ minimum: 1, description: 'Where the values begin to differ.' }),
          place: orNull(Type.String(), 'In a target: the path segment or query parameter.'),
          only_in: orNull(Type.Enum(['case', 'escapes'])),
        },
        closed,
      ),
    ),
  },
  'ComparedLine',
);

const RULE = object(
  {
    rule: Type.Integer({ minimum: 0, description: 'Its position in the route.' }),
    matches: Type.Boolean(),
    fault: orNull(Type.String(), 'Reason why it does not match.'),
    issuer: Type.String(),
    trust_domain: Type.String(),
    subject_exact: Type.Optional(Type.String()),
    subject_prefix: Type.Optional(Type.String()),
    canonical: Type.Boolean({ description: 'Otherwise it matches no caller.' }),
    required_key_binding: Type.String(),
  },
  'ExplainedRule',
);

const BUNDLE = Type.Object(
  {
    auth_site: Type.String(),
    revision: Type.Integer(),
    head: Type.String(),
    issued_at: Type.String(),
    fresh_as_of: Type.String(),
    expires_at: Type.String(),
    signatures: Type.Enum(['valid', 'not_checked']),
    warnings: Type.Array(Type.String()),
  },
  closed,
);

const RECORDED = Type.Object(
  {
    time: Type.String(),
    decision_id: nullable,
    outcome: Type.Enum(['allowed', 'denied']),
    reason: nullable,
    detail: nullable,
    comparison: orNull(Type.Enum(['agrees', 'beyond', 'differs'])),
    same_bundle: orNull(Type.Boolean()),
    bundle_revision: orNull(Type.Integer()),
    same_transcript: orNull(Type.Boolean()),
    hint: nullable,
  },
  closed,
);

export const EXPLAIN_REPORT = object(
  {
    decision: DECISION,
    hint: orNull(Type.String(), 'What to do.'),
    at: shown('The moment explained.'),
    at_source: Type.Enum(['flag', 'event', 'check_request', 'now']),
    bundle: orNull(BUNDLE),
    recorded: orNull(RECORDED, 'The decision that the audit event says, compared with this one.'),
    request: unspecified('The request.'),
    steps: Type.Array(STEP),
    route: unspecified('The route that matches.'),
    credentials: unspecified('Passport and proof, by size and hash.'),
    caller: unspecified('The caller.'),
    rules: Type.Array(RULE, { description: 'Source rules of the route.' }),
    freshness: unspecified('Age of the bundle.'),
    attributes: unspecified('Attributes that the route requires.'),
    proof_checks: unspecified('Parts of step 5 before the binding.'),
    clock: unspecified('Times of passport and proof.'),
    transcript: Type.Array(TRANSCRIPT_LINE),
    upstream_headers: unspecified('Headers that an allowed request adds.'),
    when_made: orNull(
      Type.Object({ at: Type.String(), decision: DECISION }, closed),
      'For a denial that depends on clocks: the decision when the proof was made.',
    ),
    needs: Type.Array(Type.String(), { description: 'Of an event alone: what would say more.' }),
    values: Type.Enum(['redacted', 'shown']),
  },
  'ExplainReport',
  'What the request says and the bundle does not is shown by its length.',
);

export const EXPLANATION = object(
  {
    explained_by: Type.Enum(['control', 'verifier'], {
      description: 'verifier: the capture holds no request, only the explanation that the verifier wrote.',
    }),
    report: EXPLAIN_REPORT,
    lines: Type.Array(Type.String(), { description: 'The report as text.' }),
  },
  'Explanation',
);
