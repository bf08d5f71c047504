/**
 * Each judged event is compared with what the real verifier decides on the same request after the change: random sites, all
 * kinds of change, all kinds of denial.
 */
import { describe, expect, it } from '@jest/globals';
import { BundleError } from '../../../src/bundle/format/bundle-error.ts';
import type { ProofFormat } from '../../../src/protocol/proof-format.ts';
import type { RequestFacts } from '../../../src/verifier/decision/facts/request-facts.ts';
import { predict } from '../../../src/verifier/preview/predict.ts';
import { judgeFacts } from '../../../src/verifier/preview/preview.ts';
import { type RecordedFacts, readFacts } from '../../../src/verifier/preview/recorded-facts.ts';
import { CONSUMED, type ReplayOutcome } from '../../../src/verifier/replay/store.ts';
import { FAULTS } from '../../support/cases/one-fault.ts';
import { PROOF_SETS, SITE_CHANGES, type SiteChange } from '../../support/cases/site-changes.ts';
import { scriptedReplayStore } from '../../support/fakes/replay-store.ts';
import { AUTH_SITE, NOW_SECONDS, ORIGIN } from '../../support/fixtures/bundle-content.ts';
import { previewOf } from '../../support/fixtures/previewed.ts';
import { type CallerName, headersOfLines, signRequest } from '../../support/fixtures/signed-request.ts';
import {
  compileSite,
  KEY_ID,
  newSiteKeys,
  type RouteId,
  routeContentOf,
  type SiteContent,
  siteContent,
} from '../../support/fixtures/snapshot.ts';
import { checkNow, createTestVerifier } from '../../support/fixtures/test-verifier.ts';
import { type HttpSigningOptions, signHttp } from '../../support/protocol/http-signer.ts';
import { NothingToPick, Random } from '../../support/random.ts';

/** `make soak` compares 100,000. */
const EVENTS = Number(process.env.PROOFGATE_TEST_EVENTS ?? 5_000);
const SITES_PER_KIND = 8;

const keys = newSiteKeys();
const callers = Object.keys(KEY_ID) as CallerName[];
const routes = siteContent(keys).routes.map(({ route_id }) => route_id as RouteId);
const requestFaults = FAULTS.filter(({ request, replay }) => request !== undefined || replay !== undefined);
const kinds = Object.entries(SITE_CHANGES);

/** A request that a derived key signs itself. @param without a header that does not arrive */
async function keyedFacts(
  { method = 'GET', target, body, without }: KeyedPlan,
  sign: Partial<HttpSigningOptions> = {},
): Promise<RequestFacts> {
  const headers = method === 'GET' ? {} : { 'x-tenant': 'acme' };
  const usual = {
    key: keys.billing,
    keyId: KEY_ID.billing,
    authSite: AUTH_SITE,
    createdSeconds: NOW_SECONDS,
  };
  const request = { method, url: `${ORIGIN}${target}`, headers, body };
  const signed = await signHttp(request, { ...usual, ...sign });
  const lines = Object.entries(signed).filter(([name]) => name !== without);
  const [scheme = '', authority = ''] = ORIGIN.split('://');
  return {
    ...{ method, scheme, authority, target, removesProofs: true },
    headers: headersOfLines(lines.map(([name, value]) => ({ name, value }))),
    body: body === undefined ? { kind: 'none' } : { kind: 'exact', bytes: body },
  };
}

interface KeyedPlan {
  readonly method?: string;
  readonly target: string;
  readonly body?: Buffer;
  readonly without?: string;
}

const READ: KeyedPlan = { target: '/v1/orders/17' };
const EVERYTHING = { method: 'POST', target: '/v1/everything/17', body: Buffer.from('{"amount":1}') };
const FIELDS = ['@method', '@target-uri', 'content-digest', 'x-tenant'];
const keyedRequests = await Promise.all([
  ...(['billing', 'reporting', 'revoked'] as const).flatMap((name) => {
    const sign = { key: keys[name], keyId: KEY_ID[name] };
    return [keyedFacts(READ, sign), keyedFacts(EVERYTHING, { ...sign, fields: FIELDS })];
  }),
  keyedFacts(READ, { keyId: 'dk_nobody' }),
  keyedFacts(READ, { keyId: KEY_ID.reporting }),
  keyedFacts(READ, { createdSeconds: NOW_SECONDS - 64, ttlSeconds: 32 }),
  keyedFacts(READ, { ttlSeconds: 301 }),
  keyedFacts(EVERYTHING),
  keyedFacts({ ...EVERYTHING, without: 'x-tenant' }, { fields: FIELDS }),
]);

interface Sites {
  readonly before: SiteContent;
  readonly after: SiteContent;
}

/** A site with up to two random changes, and with one of the kind more. Content that no verifier loads is drawn again. */
async function randomSites(change: SiteChange, random: Random) {
  for (let attempt = 0; attempt < 50; attempt++) {
    try {
      const before = siteContent(keys);
      for (const route of before.routes) {
        if (random.below(2) === 0) route.accepted_proofs = random.pick(PROOF_SETS);
      }
      for (let count = random.below(3); count > 0; count--) random.pick(kinds)[1](before, random);
      const after = structuredClone(before);
      change(after, random);
      return { ...(await compiled({ before, after })), before, after };
    } catch (error) {
      if (!(error instanceof BundleError || error instanceof NothingToPick)) throw error;
    }
  }
  throw new Error('no such site is valid');
}

async function compiled({ after, before }: Sites) {
  return {
    old: await compileSite(before),
    new: await compileSite(after),
    previewed: { before: await previewOf(before), after: await previewOf(after) },
  };
}

/** A request of any caller, for any route, half of them with a fault. */
function randomRequest(random: Random) {
  if (random.below(4) === 0) return { facts: random.pick(keyedRequests), replay: CONSUMED };
  const fault = random.below(2) === 0 ? random.pick(requestFaults) : undefined;
  const route = random.below(2) === 0 ? 'everything' : random.pick(routes);
  const item = random.pick(['17', 'special', 'x']);
  const signed = signRequest(keys, { caller: random.pick(callers), route, item }, fault?.request);
  const facts: RequestFacts = { ...signed.facts, removesProofs: true };
  return { facts, replay: fault?.replay ?? CONSUMED };
}

interface Tally {
  judged: number;
  changed: number;
  freed: number;
  readonly why: Map<string, number>;
}

describe('what a preview predicts', () => {
  const total: Tally = { judged: 0, changed: 0, freed: 0, why: new Map() };
  const perSite = Math.ceil(EVENTS / kinds.length / SITES_PER_KIND);

  it.each(kinds)('is what the verifier decides when %s', async (kind, change) => {
    const random = new Random(kinds.findIndex(([name]) => name === kind) + 1);
    const wrong: unknown[] = [];
    let judged = 0;
    for (let site = 0; site < SITES_PER_KIND; site++) {
      const sites = await randomSites(change, random);
      const { after, before } = sites.previewed;
      const published = { revision: 7, head: sites.old.head, policyRevision: 7 };
      const [decideBefore, decideAfter] = [verifierOf(sites.old), verifierOf(sites.new)];
      for (let count = 0; count < perSite; count++) {
        const request = randomRequest(random);
        const [was, is] = [decideBefore(request), decideAfter(request)];
        const recorded = readFacts(JSON.stringify(was.event));
        if (typeof recorded === 'string') throw new Error(`${recorded}: ${JSON.stringify(was.event)}`);
        const verdict = judgeFacts(recorded, { before, after, published });
        if (verdict.kind === 'not_judged') {
          total.why.set(verdict.why, (total.why.get(verdict.why) ?? 0) + 1);
        } else if (verdict.kind === 'possibly_allowed') {
          total.freed += 1;
          if (is.text === was.text) wrong.push({ verdict, event: was.event, is: is.text });
        } else {
          judged += 1;
          if (verdict.kind !== 'unchanged') total.changed += 1;
          if (!predicts(recorded, sites.previewed, is.text))
            wrong.push({ verdict, event: was.event, is: is.text });
          if (
            (verdict.kind === 'unchanged') !== (was.text === is.text) &&
            verdict.kind !== 'denied_otherwise'
          ) {
            wrong.push({ verdict, was: was.text, is: is.text });
          }
        }
      }
    }
    total.judged += judged;
    expect(wrong.slice(0, 3)).toEqual([]);
    expect(judged).toBeGreaterThan(0);
  });

  it('covers most events, and says why not the others', () => {
    const others = [...total.why].sort((a, b) => b[1] - a[1]);
    const notJudged = others.reduce((sum, [, count]) => sum + count, total.freed);
    const events = total.judged + notJudged;
    const share = ((100 * notJudged) / events).toFixed(1);
    process.stdout.write(
      `${events} events, ${kinds.length} kinds of change: ${total.judged} judged, ${total.changed} of them changed; not judged ${share} %: possibly_allowed ${total.freed}, ${others.map(([why, count]) => `${why} ${count}`).join(', ')}\n`,
    );
    expect(events).toBeGreaterThanOrEqual(EVENTS);
    expect(total.why.has('contradicts_site')).toBe(false);
    expect(total.changed).toBeGreaterThan(EVENTS / 100);
    expect(notJudged).toBeLessThan(events / 2);
  });
});

describe('of a request that a derived key signed itself', () => {
  const onRoute = (changes: object) => (content: SiteContent) =>
    void Object.assign(routeContentOf(content, 'orders-read'), changes);
  const accept = (...formats: ProofFormat[]) => onRoute({ accepted_proofs: formats });

  it.each<[string, SiteChange, object]>([
    [
      'signatures are accepted no longer',
      accept('transcript-v1'),
      { kind: 'not_judged', why: 'request_unknown' },
    ],
    [
      'transcripts are accepted, too',
      accept('transcript-v1', 'http-message-signatures'),
      { kind: 'not_judged' },
    ],
    ['another audience', onRoute({ audience: 'urn:other' }), { kind: 'unchanged' }],
    [
      'a grant goes',
      ({ clients = [] }) => {
        for (const { grants } of clients) grants.splice(0);
      },
      { kind: 'newly_denied' },
    ],
  ])('%s', async (_, change, verdict) => {
    const before = siteContent(keys);
    accept('http-message-signatures')(before);
    const after = structuredClone(before);
    change(after, new Random(1));
    const sites = await compiled({ before, after });
    const { event, text } = verifierOf(sites.old)({ facts: await keyedFacts(READ), replay: CONSUMED });
    const recorded = readFacts(JSON.stringify(event));
    if (typeof recorded === 'string') throw new Error(recorded);
    const published = { revision: 7, head: sites.old.head, policyRevision: 7 };
    expect(text).toBe('allowed');
    expect(judgeFacts(recorded, { ...sites.previewed, published })).toMatchObject(verdict);
  });
});

/** A verifier with a site's snapshot, whose replay store answers as the request says. */
function verifierOf(snapshot: Awaited<ReturnType<typeof compileSite>>) {
  let answer: ReplayOutcome = CONSUMED;
  const { events, verifier } = createTestVerifier({ snapshot, store: scriptedReplayStore(() => answer) });
  return ({ facts, replay }: ReturnType<typeof randomRequest>) => {
    answer = replay;
    const decision = checkNow(verifier, facts);
    const denial = decision.kind === 'denied' ? decision.denial : undefined;
    return {
      text: denial === undefined ? 'allowed' : `${denial.reason} ${denial.detail ?? ''}`,
      event: events.pop(),
    };
  };
}

function predicts(
  recorded: RecordedFacts,
  { after, before }: Awaited<ReturnType<typeof compiled>>['previewed'],
  text: string,
): boolean {
  const prediction = predict(recorded, before, after);
  if (prediction.kind !== 'denied') return prediction.kind === text;
  const { detail = '', isDetailKnown, reason } = prediction;
  return isDetailKnown ? text === `${reason} ${detail}` : text.startsWith(`${reason} `);
}
