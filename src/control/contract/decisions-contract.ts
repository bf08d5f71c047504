/**
 * Schemas of decision summaries: what an instance of a target posts a minute, and the series that operators read.
 * Source: docs/operate/control.md "Decisions".
 */
import type { Static } from 'typebox';
import Type from 'typebox';
import {
  LATENCY_BOUNDS_MS,
  MAX_SUMMARY_COUNT,
  MAX_SUMMARY_ROUTES,
  SUMMARY_CODE_PATTERN,
} from '../../bundle/format/decision-summary.ts';
import { MAX_KEY_USES } from '../../bundle/format/key-use.ts';
import { MAX_UNKNOWN_KEYS } from '../../bundle/format/unknown-keys.ts';
import { closed, givenId, identifier, moment, object } from '../../process/http-service/members-contract.ts';

/** More than there are reasons with details. */
const MAX_CODES = 200;
export const MAX_SERIES = 20;

const count = (description: string) => Type.Integer({ minimum: 0, maximum: MAX_SUMMARY_COUNT, description });
const codes = (description: string) =>
  Type.Record(Type.String({ pattern: SUMMARY_CODE_PATTERN }), count('Decisions.'), {
    ...closed,
    maxProperties: MAX_CODES,
    description,
  });

const OUTCOMES = {
  allowed: count('Allowed requests.'),
  denied: codes('Denied ones by reason, or reason and detail: `invalid_request_proof/key_unknown`.'),
  observed: codes('Those that were denied and passed without identity, likewise.'),
};

export const DECISION_SUMMARY = object(
  {
    routes: Type.Array(Type.Object({ route_id: identifier('A route of the site.'), ...OUTCOMES }, closed), {
      maxItems: MAX_SUMMARY_ROUTES,
      description: 'The busiest. An ID that is not of the site counts as another route.',
    }),
    other: Type.Object(OUTCOMES, {
      ...closed,
      description: 'Of other routes, and of requests that no route matches.',
    }),
    methods: Type.Record(Type.String({ pattern: '^([A-Z]{1,16}|other)$' }), count('Decisions.'), {
      ...closed,
      maxProperties: 16,
    }),
    latency: Type.Array(count('Decisions.'), {
      minItems: LATENCY_BOUNDS_MS.length + 1,
      maxItems: LATENCY_BOUNDS_MS.length + 1,
      description: `Decisions that took at most ${LATENCY_BOUNDS_MS.join(', ')} milliseconds, and longer ones.`,
    }),
    dropped: count('Decisions of earlier minutes that are counted nowhere, because a post failed.'),
  },
  'DecisionSummary',
);

export const LAST_USED = object(
  {
    keys: Type.Array(
      Type.Object(
        {
          key_id: givenId('A derived key of the site. Others are ignored.'),
          used_at: moment('When it was last used. A time in the future counts as now.'),
        },
        closed,
      ),
      { minItems: 1, maxItems: MAX_KEY_USES },
    ),
  },
  'LastUsed',
);

export const UNKNOWN_KEYS = object(
  {
    keys: Type.Array(
      Type.Object(
        {
          issuer: identifier('An OAuth issuer of the site. Others are ignored.'),
          kid: givenId('`kid` of an access token that is not verified.'),
        },
        closed,
      ),
      { minItems: 1, maxItems: MAX_UNKNOWN_KEYS },
    ),
  },
  'UnknownKeys',
);

export const DECISIONS_QUERY = {
  by: Type.Optional(
    Type.Enum(['outcome', 'reason', 'route', 'target', 'method', 'latency'], {
      description: 'What the series are. Default: outcome.',
    }),
  ),
  step: Type.Optional(
    Type.Enum(['minute', 'hour'], {
      description: 'Length of a step. Default: minute. Minutes are kept for a day.',
    }),
  ),
  from: Type.Optional(moment('Start. Default: 60 steps before the end.')),
  until: Type.Optional(moment('End. Default: now.')),
  route_id: Type.Optional(identifier('Only this route.')),
  outcome: Type.Optional(
    Type.Enum(['allowed', 'denied', 'observed'], {
      description: 'Only this outcome. Not by method or latency.',
    }),
  ),
};

const total = (description: string) => Type.Integer({ minimum: 0, description });

export const DECISION_SERIES = object(
  {
    site_id: identifier('The Auth Site.'),
    by: Type.Enum(['outcome', 'reason', 'route', 'target', 'method', 'latency']),
    step: Type.Enum(['minute', 'hour']),
    from: moment('Start of the first step.'),
    until: moment('End of the last step.'),
    reporting: Type.Array(total('Targets.'), {
      description: 'How many targets reported each step. With 0 nothing is known of it.',
    }),
    series: Type.Array(
      object(
        {
          name: Type.String({
            maxLength: 512,
            description:
              'Outcome, reason with its detail, route, name of the target, method, or upper bound in milliseconds.',
          }),
          outcome: Type.Optional(
            Type.Enum(['allowed', 'denied', 'observed'], { description: 'By outcome or reason.' }),
          ),
          target_id: Type.Optional(givenId('By target.')),
          total: total('Sum of the counts.'),
          counts: Type.Array(total('Decisions.'), { description: 'Of each step.' }),
        },
        'DecisionCounts',
      ),
      { maxItems: MAX_SERIES + 1, description: 'The largest first; after the 20 largest the others as one.' },
    ),
    dropped: total('Decisions that targets made and could not report, known of the period.'),
  },
  'DecisionSeries',
  'As targets reported it: Control cannot check it, and decides nothing by it.',
);

export type DecisionSeriesView = Static<typeof DECISION_SERIES>;
export type DecisionsBy = DecisionSeriesView['by'];
