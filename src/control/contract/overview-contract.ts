/** Schema of the conditions of an Auth Site that need attention. Source: docs/operate/control.md "Propagation". */
import type { Static } from 'typebox';
import Type from 'typebox';
import {
  givenId,
  identifier,
  moment,
  object,
  shownText,
} from '../../process/http-service/members-contract.ts';
import { MAX_SHOWN_TARGETS } from './vocabulary.ts';

const count = (description: string) => Type.Integer({ minimum: 0, description });

const withheldFor = (description: string) =>
  Type.Optional(
    Type.Array(
      Type.Object(
        { target_id: givenId('The target.'), name: shownText('For people.') },
        { additionalProperties: false },
      ),
      { maxItems: MAX_SHOWN_TARGETS, description },
    ),
  );

export const SITE_OVERVIEW = object(
  {
    site_id: identifier('The Auth Site.'),
    revision: count('The newest published; 0 before the first.'),
    published_at: Type.Optional(moment('When it was published.')),
    unpublished_since: Type.Optional(moment('When the oldest unpublished change was made.')),
    fresh_at: Type.Optional(moment('When the newest freshness statement was made.')),
    targets: object(
      {
        attached: count('Attached targets.'),
        current: count('Those with the newest revision.'),
        behind: count(
          'Those without it, refusing and ahead ones included, and those that have loaded nothing.',
        ),
        silent: count('Those that have not polled for longer than targets wait.'),
        behind_since: Type.Optional(moment('When the first revision that one of them lacks was published.')),
      },
      'TargetOverview',
    ),
    observation: Type.Optional(
      object(
        {
          routes: count('Observed routes.'),
          unmatched: Type.Boolean({ description: 'Whether requests that no route matches are observed.' }),
          until: moment('When the last of these observations ends.'),
          withheld_for: withheldFor(
            'The first targets whose verifiers do not know observations: while there is one, bundles hold none, and everything is enforced. Absent when there is none.',
          ),
        },
        'SiteObservation',
        'What lets denied requests pass, where a verifier allows it. Absent when nothing is observed.',
      ),
    ),
    accepted_proofs: Type.Optional(
      object(
        {
          withheld_for: withheldFor(
            'The first targets whose verifiers do not know accepted_proofs: while there is one, routes accept transcripts alone, and deny everything if they do not accept these. Absent when there is none.',
          ),
        },
        'SiteAcceptedProofs',
        'Routes with accepted_proofs. Absent when the newest bundle has none.',
      ),
    ),
    publishing_sources: Type.Array(
      object(
        {
          source_id: givenId('The source.'),
          display_name: shownText('For people.'),
          revision: count('The revision that waits for targets.'),
          since: moment('When it entered the state publishing.'),
        },
        'PublishingSource',
      ),
      { description: 'Sources whose revision waits until targets acknowledge it.' },
    ),
    pending_enrollments: count('Enrollments that wait for approval.'),
    policies_not_renewed: count('Active policies whose last key ends soon, or ended within the last hour.'),
  },
  'SiteOverview',
);
export type SiteOverviewView = Static<typeof SITE_OVERVIEW>;
