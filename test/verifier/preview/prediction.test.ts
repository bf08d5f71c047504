/**
 * Each judged event is compared with what the real verifier decides on the same request after the change: random sites, all
 * kinds of change, all kinds of denial.
 */
import { describe, expect, it } from '@jest/globals';
import { BundleError } from '../../../src/bundle/format/bundle-error.ts';
import { predict } from '../../../src/verifier/preview/predict.ts';
import { judgeFacts } from '../../../src/verifier/preview/preview.ts';
import { type RecordedFacts, readFacts } from '../../../src/verifier/preview/recorded-facts.ts';
import { CONSUMED, type ReplayOutcome } from '../../../src/verifier/replay/store.ts';
import { FAULTS } from '../../support/cases/one-fault.ts';
import { SITE_CHANGES, type SiteChange } from '../../support/cases/site-changes.ts';
import { scriptedReplayStore } from '../../support/fakes/replay-store.ts';
import { previewOf } from '../../support/fixtures/previewed.ts';
import { type CallerName, signRequest } from '../../support/fixtures/signed-request.ts';
import {
  compileSite,
  KEY_ID,
  newSiteKeys,
  type RouteId,
  type SiteContent,
  siteContent,
} from '../../support/fixtures/snapshot.ts';
import { checkNow, createTestVerifier } from '../../support/fixtures/test-verifier.ts';
import { NothingToPick, Random } from '../../support/random.ts';

/** `make soak` compares 100,000. */
const EVENTS = Number(process.env.PROOFGATE_TEST_EVENTS ?? 5_000);
const SITES_PER_KIND = 8;

const keys = newSiteKeys();
const callers = Object.keys(KEY_ID) as CallerName[];
const routes = siteContent(keys).routes.map(({ route_id }) => route_id as RouteId);
const requestFaults = FAULTS.filter(({ request, replay }) => request !== undefined || replay !== undefined);
const kinds = Object.entries(SITE_CHANGES);

interface Sites {
  readonly before: SiteContent;
  readonly after: SiteContent;
}

/** A site with up to two random changes, and with one of the kind more. Content that no verifier loads is drawn again. */
async function randomSites(change: SiteChange, random: Random) {
  for (let attempt = 0; attempt < 50; attempt++) {
    try {
      const before = siteContent(keys);
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
  const fault = random.below(2) === 0 ? random.pick(requestFaults) : undefined;
  const route = random.below(2) === 0 ? 'everything' : random.pick(routes);
  const item = random.pick(['17', 'special', 'x']);
  const { facts } = signRequest(keys, { caller: random.pick(callers), route, item }, fault?.request);
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
