/** Replay across two enforcement points that share one Redis: each proof, shown to both at once, is accepted once. */
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { headerValues, type WireResponse } from '../../src/tools/conformance/wire/exchange.ts';
import { http1Client } from '../../src/tools/conformance/wire/http1.ts';
import type { EnforcementPoint, EnforcementPointDriver } from '../support/points/enforcement-point.ts';
import { derivedKeyCaller } from '../support/site/callers.ts';
import { ROUTES } from '../support/site/routes.ts';
import { signedRequest } from '../support/site/signed-request.ts';
import { createSite, type Site } from '../support/site/site.ts';
import { startRedis } from '../support/site/verifier-states.ts';
import { NEWEST_POINTS } from './points.ts';

const PROOFS = 60;
const PROOFS_AT_ONCE = 10;

const available = NEWEST_POINTS.filter((driver) => driver.unavailable?.() === undefined);
/** Each point with the next one, so that each is in two pairs. */
const pairs = available
  .map((first, index) => ({ first, second: available[(index + 1) % available.length] ?? first }))
  .filter(({ first, second }, index) => first !== second && (available.length > 2 || index === 0));

let site: Site;
let bundleDirectory: string;
let redisUrl: string;
const started = new Map<EnforcementPointDriver, Promise<EnforcementPoint>>();
const stops: (() => Promise<unknown>)[] = [];
beforeAll(async () => {
  site = await createSite();
  bundleDirectory = await site.makeBundle();
  redisUrl = (await startRedis({ site, stops })).url;
});
afterAll(async () => {
  for (const stop of stops.splice(0).reverse()) await stop();
  await site.remove();
});

describe.each(pairs)('$first.name and $second.name', ({ first, second }) => {
  it(`accept each of ${PROOFS.toLocaleString('en')} proofs once`, async () => {
    const both = [await pointOf(first), await pointOf(second)];
    for (const { upstream } of both) upstream.clear();
    const outcomes: string[] = [];
    let accepted = 0;
    const show = async () => {
      const request = signedRequest(site, { caller: derivedKeyCaller(site), route: ROUTES.readOrder });
      const answers = await Promise.all(both.map(({ address }) => http1Client(address).send(request)));
      const outcome = answers.map(outcomeOf).sort().join(' and ');
      accepted += answers.filter(({ status }) => status === 200).length;
      // On a busy machine Redis may answer one of the two too late; such a proof shows nothing here.
      if (!outcome.includes('503 replay_store_unavailable')) outcomes.push(outcome);
    };
    while (outcomes.length < PROOFS) await Promise.all(Array.from({ length: PROOFS_AT_ONCE }, show));
    expect(new Set(outcomes)).toEqual(new Set(['200 and 403 jti_replay']));
    expect(both.reduce((sum, { upstream }) => sum + upstream.requests.length, 0)).toBe(accepted);
  });
});

/** The point of both its pairs. */
function pointOf(driver: EnforcementPointDriver): Promise<EnforcementPoint> {
  const starting = started.get(driver) ?? start(driver);
  started.set(driver, starting);
  return starting;
}

async function start(driver: EnforcementPointDriver): Promise<EnforcementPoint> {
  const point = await driver.start({
    site,
    bundleDirectory,
    replay: redisUrl,
    audit: 'required_file',
    holderQuota: undefined,
    becomesReady: true,
  });
  stops.push(() => point.stop());
  return point;
}

function outcomeOf({ headers, status }: WireResponse): string {
  const [reason] = headerValues(headers, 'x-proofgate-reason');
  return reason === undefined ? String(status) : `${status} ${reason}`;
}
