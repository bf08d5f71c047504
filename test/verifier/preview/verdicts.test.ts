/** What a preview says of one event for each kind of change: as much as the event tells, and never that it does not know when it does. */
import { describe, expect, it } from '@jest/globals';
import { type Judged, judgeFacts } from '../../../src/verifier/preview/preview.ts';
import { readFacts } from '../../../src/verifier/preview/recorded-facts.ts';
import { CLIENT_ISSUER } from '../../support/fixtures/bundle-content.ts';
import { previewOf } from '../../support/fixtures/previewed.ts';
import { type CallerName, type RequestEdits, signRequest } from '../../support/fixtures/signed-request.ts';
import {
  compileSite,
  newSiteKeys,
  routeContentOf,
  type SiteContent,
  siteContent,
  sourcesOf,
} from '../../support/fixtures/snapshot.ts';
import { checkNow, createTestVerifier } from '../../support/fixtures/test-verifier.ts';

const keys = newSiteKeys();
type Change = (content: SiteContent) => void;

const route = (content: SiteContent) => routeContentOf(content, 'everything');
const set =
  (members: Partial<ReturnType<typeof route>>): Change =>
  (content) =>
    void Object.assign(route(content), members);

const site =
  (members: Partial<SiteContent>): Change =>
  (content) =>
    void Object.assign(content, members);
/** Of the first issuer, which is the broker's. */
const issuer =
  (members: object): Change =>
  ({ issuers }) =>
    void Object.assign(issuers?.[0] ?? {}, members);

/** The request of the caller at the site before, and what a preview says of it at the site after. */
async function verdictOf(
  caller: CallerName,
  { before, after, edits }: { before?: Change; after: Change; edits?: RequestEdits },
): Promise<string> {
  const content = siteContent(keys);
  before?.(content);
  const snapshot = await compileSite(content);
  const { events, verifier } = createTestVerifier({ snapshot });
  checkNow(verifier, signRequest(keys, { caller, route: 'everything' }, edits).facts);
  const facts = readFacts(JSON.stringify(events[0]));
  if (typeof facts === 'string') throw new Error(facts);
  const changed = structuredClone(content);
  after(changed);
  const published = { revision: 7, head: snapshot.head, policyRevision: 7 };
  return textOf(
    judgeFacts(facts, { before: await previewOf(content), after: await previewOf(changed), published }),
  );
}

function textOf(judged: Judged): string {
  if (judged.kind === 'not_judged') return judged.why;
  if (judged.kind !== 'newly_denied') return judged.kind;
  const { detail, reason } = judged.denial;
  return detail === undefined ? reason : `${reason}/${detail}`;
}

const requireTeam = (...teams: string[]) => set({ required_context: { team: teams } });

describe('an allowed request', () => {
  it.each<[what: string, caller: CallerName, after: Change, expected: string]>([
    ['nothing changes', 'billing', () => undefined, 'unchanged'],
    ['the skew grows', 'billing', site({ skew_seconds: 9 }), 'unchanged'],
    ['the skew shrinks', 'billing', site({ skew_seconds: 1 }), 'times_unknown'],
    ['another audience', 'billing', set({ audience: 'urn:x' }), 'invalid_request_proof/audience'],
    [
      'another passport header',
      'billing',
      set({ passport_header: 'X-Proofgate-Passport' }),
      'request_unknown',
    ],
    ['fewer signed headers', 'billing', set({ signed_headers: [] }), 'unchanged'],
    ['more signed headers', 'billing', set({ signed_headers: ['x-tenant', 'x-b'] }), 'request_unknown'],
    ['another body rule', 'billing', set({ body: 'unbound' }), 'request_unknown'],
    ['another age', 'billing', set({ max_staleness_seconds: 60 }), 'freshness_unknown'],
    ['no age', 'billing', set({ freshness_class: 'eventual' }), 'bundle_freshness_unknown'],
    ['another path', 'billing', set({ path_template: '/v2/{id}' }), 'bundle_route_missing'],
    [
      'no source',
      'billing',
      (content) => void sourcesOf(content, 'everything').shift(),
      'source_subject_mismatch',
    ],
    [
      'no grant',
      'billing',
      ({ clients }) => {
        for (const client of clients ?? []) client.grants = [];
      },
      'source_subject_mismatch/not_granted',
    ],
    [
      'another attribute of its key',
      'billing',
      set({ required_context: { zone: ['x'] } }),
      'missing_context/zone',
    ],
    ['another value of its key', 'billing', requireTeam('other'), 'context_mismatch/team'],
    ['one attribute less', 'billing', requireTeam('payments'), 'unchanged'],
    ['one attribute less of a passport', 'broker', requireTeam('payments'), 'unchanged'],
    ['one value more for a passport', 'broker', requireTeam('payments', 'other'), 'unchanged'],
    ['only other values for a passport', 'broker', requireTeam('other'), 'context_mismatch/team'],
    [
      'another attribute of a passport',
      'broker',
      set({ required_context: { zone: ['x'] } }),
      'attribute_unknown',
    ],
    [
      'its key is revoked',
      'billing',
      ({ derived_keys }) => {
        for (const key of derived_keys ?? []) key.status = 'revoked';
      },
      'invalid_request_proof/key_revoked',
    ],
    [
      'its key goes',
      'billing',
      site({ derived_keys: [] }),
      // The route's attributes are those of the passport then.
      'attribute_unknown',
    ],
    [
      'its issuer has another key',
      'broker',
      ({ issuers }) => void Object.assign(issuers?.[0]?.keys[0] ?? {}, { jwk: keys.billing.publicKey.jwk }),
      'invalid_request_proof/passport_signature',
    ],
    ['passports may live longer', 'broker', issuer({ max_passport_ttl_seconds: 900 }), 'unchanged'],
    ['passports may live shorter', 'broker', issuer({ max_passport_ttl_seconds: 60 }), 'times_unknown'],
    [
      'its issuer speaks for others',
      'broker',
      issuer({ subject_prefixes: ['spiffe://shop.example/x/'] }),
      'invalid_request_proof/claims_not_allowed',
    ],
    [
      'it is blocked',
      'billing',
      site({ blocked: [{ issuer: CLIENT_ISSUER, subject: 'client:billing' }] }),
      'invalid_request_proof/subject_blocked',
    ],
    [
      'another is blocked',
      'billing',
      site({ blocked: [{ issuer: CLIENT_ISSUER, subject: 'client:reporting' }] }),
      'unchanged',
    ],
  ])('%s (%s)', async (_what, caller, after, expected) => {
    expect(await verdictOf(caller, { after })).toBe(expected);
  });
});

describe('a denied request', () => {
  it.each<[what: string, caller: CallerName, before: Change, after: Change, expected: string]>([
    [
      'its attribute is allowed',
      'billing',
      requireTeam('other'),
      requireTeam('payments'),
      'possibly_allowed',
    ],
    [
      'another denies it first',
      'billing',
      requireTeam('other'),
      set({ freshness_class: 'eventual' }),
      'denied_otherwise',
    ],
    ['nothing that it meets changes', 'billing', requireTeam('other'), set({ body: 'unbound' }), 'unchanged'],
    ['fewer values for a passport', 'broker', requireTeam('other', 'x'), requireTeam('x'), 'unchanged'],
    [
      'more values for a passport',
      'broker',
      requireTeam('other'),
      requireTeam('other', 'x'),
      'attribute_unknown',
    ],
    [
      'it needs none of a passport any more',
      'broker',
      requireTeam('other'),
      set({ required_context: {} }),
      'possibly_allowed',
    ],
    [
      'it has a source now',
      'billing',
      (content) => void sourcesOf(content, 'everything').shift(),
      (content) =>
        void sourcesOf(content, 'everything').unshift(
          ...sourcesOf(siteContent(keys), 'everything').slice(0, 1),
        ),
      'possibly_allowed',
    ],
  ])('%s (%s)', async (_what, caller, before, after, expected) => {
    expect(await verdictOf(caller, { before, after })).toBe(expected);
  });
});
