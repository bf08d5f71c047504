/** The fixture of each campaign: a site, a Redis, a verifier that uses it, and the processes to stop afterwards. */
import { afterAll, afterEach, beforeAll } from '@jest/globals';
import { createSite, type Site } from '../environment/site.ts';
import { startVerifier, type VerifierOptions, type VerifierProcess } from '../environment/verifier.ts';
import { type GuardedRedis, startRedis } from '../environment/verifier-states.ts';
import { waitFor } from '../harness/wait.ts';
import { type Campaign, startCampaign } from './campaign.ts';

export interface FailingStage {
  readonly site: Site;
  redis(): Promise<GuardedRedis>;
  verifier(options: Omit<VerifierOptions, 'bundleDirectory'>): Promise<VerifierProcess>;
  campaign(verifier: VerifierProcess): Promise<Campaign>;
  /** After the test, whatever became of it; the last one first. */
  onEnd(stop: () => Promise<void> | void): void;
}

export function setFailingStage(): FailingStage {
  let site: Site | undefined;
  let bundleDirectory = '';
  const stops: (() => Promise<void>)[] = [];
  const onEnd = (stop: () => Promise<void> | void) => void stops.push(async () => stop());
  const there = (): Site => {
    if (site === undefined) throw new Error('the stage is not set yet');
    return site;
  };
  beforeAll(async () => {
    site = await createSite();
    bundleDirectory = await site.makeBundle();
  });
  afterEach(async () => {
    for (const stop of stops.splice(0).reverse()) await stop();
  });
  afterAll(() => site?.remove());
  return {
    get site() {
      return there();
    },
    redis: () => startRedis({ site: there(), stops }),
    verifier: async (options) => {
      const verifier = await startVerifier(there(), { bundleDirectory, ...options });
      onEnd(verifier.stop);
      return verifier;
    },
    campaign: async (verifier) => {
      const campaign = await startCampaign(there(), verifier);
      onEnd(campaign.stop);
      return campaign;
    },
    onEnd,
  };
}

/** Repeats a step until `stop()`. */
export function keepDoing(step: () => Promise<void>): { stop(): Promise<void> } {
  let isStopped = false;
  const doing = (async () => {
    while (!isStopped) await step();
  })();
  doing.catch(() => undefined);
  return {
    stop: async () => {
      isStopped = true;
      await doing;
    },
  };
}

export function untilReady(verifier: VerifierProcess): Promise<true> {
  return waitFor('the verifier to be ready again', 60_000, async () =>
    (await verifier.probe('/readyz')).status === 200 ? true : undefined,
  );
}
