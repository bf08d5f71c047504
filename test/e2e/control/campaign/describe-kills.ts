/** The tests around a kill campaign, the same for both databases. */
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { brokenPromises, type DatabaseContents } from './kept-promises.ts';
import { KillCampaign, type KillCampaignOptions } from './kill-campaign.ts';
import type { SiteFollower } from './site-follower.ts';

const KILLS = Number(process.env.PROOFGATE_TEST_KILLS ?? 2);
/** Each kill with its restart and its check, on a machine that does other things too. */
export const campaignTimeoutMs = 300_000 + KILLS * 10_000;

export function describeKills(database: string, options: () => Omit<KillCampaignOptions, 'kills'>): void {
  describe(`after ${KILLS} × kill -9 under load on ${database}`, () => {
    let campaign: KillCampaign;
    let contents: DatabaseContents;
    let follower: SiteFollower;
    beforeAll(async () => {
      campaign = await KillCampaign.prepare({ ...options(), kills: KILLS });
      follower = await campaign.follow('followed-throughout');
      contents = await campaign.run();
      process.stdout.write(`kills, ${database}: ${JSON.stringify(campaign.figures)}\n`);
    }, campaignTimeoutMs);
    afterAll(() => follower?.stop());

    it('nothing that was acknowledged is lost, and nothing is there twice', () => {
      expect(campaign.findings).toEqual([]);
      expect(campaign.figures).toMatchObject({ lost: 0, doubled: 0 });
      expect(campaign.figures.kills).toBeGreaterThanOrEqual(KILLS);
      // At least once Control died between a submission and its answer.
      expect(campaign.figures.submissionsWithoutAnswer).toBeGreaterThan(0);
      expect(campaign.figures.mutationsAcknowledged).toBeGreaterThan(4 * KILLS);
    });

    it('the API shows all of it', async () => {
      await expect(campaign.missingInApi()).resolves.toEqual([]);
    });

    it('who followed throughout, and who begins now, has exactly the living keys', async () => {
      await expect(campaign.differencesTo(follower)).resolves.toEqual([]);
      const fresh = await campaign.follow('begins-now');
      await expect(campaign.differencesTo(fresh)).resolves.toEqual([]);
      await fresh.stop();
    });

    it('the check itself finds what is lost, doubled or broken', () => {
      const doctored = (change: Partial<DatabaseContents>) =>
        brokenPromises({ ...contents, ...change }, campaign.acknowledged).join('\n');
      const { enrollments, keys, steps } = contents;
      expect(doctored({ enrollments: enrollments.slice(1) })).toMatch(/^lost: enrollment/m);
      expect(doctored({ keys: keys.slice(1) })).toMatch(/^half: enrollment/m);
      expect(doctored({ keys: [...keys, ...keys.slice(0, 1)] })).toMatch(/^doubled: public key/m);
      const unrevoked = keys.map((row) => ({ ...row, status: 'active' }));
      expect(doctored({ keys: unrevoked })).toMatch(/^lost: revocation/m);
      const twice = [...enrollments, ...enrollments.slice(0, 1)];
      expect(doctored({ enrollments: twice })).toMatch(/^doubled: challenge/m);
      expect(doctored({ audit: [] })).toMatch(/^audit: /m);
      expect(doctored({ clients: [], grants: [] })).toMatch(/^lost: client[\s\S]*^lost: grant/m);
      expect(doctored({ steps: steps.toSpliced(1, 1) })).toMatch(/^chain: /m);
    });
  });
}
