/**
 * Kills a verifier that follows a fast-publishing Control, again and again under load: while it writes its state directory and
 * while it starts. `PROOFGATE_TEST_BUNDLE_KILLS` sets the number of kills (`make soak`).
 */
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { KillCampaign } from './kill-campaign.ts';

const KILLS = Number(process.env.PROOFGATE_TEST_BUNDLE_KILLS ?? 10);
const TIMEOUT_MS = 300_000 + KILLS * 20_000;

describe(`after ${KILLS} × kill -9 of a verifier that follows Control, under load`, () => {
  let campaign: KillCampaign;
  beforeAll(async () => {
    campaign = await KillCampaign.prepare();
    await campaign.run(KILLS);
    process.stdout.write(`kills of a following verifier: ${JSON.stringify(campaign.figures)}\n`);
  }, TIMEOUT_MS);
  afterAll(() => campaign?.close());

  it('every start became ready, with no revision below one that was acknowledged or served', () => {
    expect(campaign.findings).toEqual([]);
    expect(campaign.figures.kills).toBeGreaterThanOrEqual(KILLS);
    expect(campaign.figures.killsWhileStarting).toBeGreaterThan(0);
  });

  it('every answer is of one whole revision, and none of an older one than any answer before', () => {
    expect(campaign.verdict?.findings).toEqual([]);
    expect(campaign.failures).toEqual([]);
    // The load was real and met many revisions.
    expect(campaign.figures.allowed).toBeGreaterThan(KILLS);
    expect(campaign.figures.revisionsServed).toBeGreaterThan(KILLS / 4);
  });

  it('kills did meet writes', () => {
    // Rarely does a short run meet one.
    if (KILLS >= 50) expect(campaign.figures.killsThatLeftSomething).toBeGreaterThan(0);
    expect(campaign.figures.basesInstalled).toBeGreaterThan(0);
  });

  it('in the end it has all that Control has', async () => {
    await expect(campaign.catchesUp()).resolves.toEqual(campaign.end);
  });
});
