/** The fixture of each campaign: a site, a Redis, a verifier that uses it, and the processes to stop afterwards. */
import { afterAll, afterEach, beforeAll } from '@jest/globals';
import { envoyVersions } from '../../support/harness/envoy.ts';
import { createSite, type Site } from '../../support/site/site.ts';
import { startVerifier, type VerifierOptions, type VerifierProcess } from '../../support/site/verifier.ts';
import { type GuardedRedis, startRedis } from '../../support/site/verifier-states.ts';
import { type Campaign, startCampaign } from './campaign.ts';

export interface BegunCampaign {
  readonly campaign: Campaign;
  readonly redis: GuardedRedis;
  readonly verifier: VerifierProcess;
  /** Starts another verifier in the place of one that has ended. */
  successor(of: VerifierProcess): Promise<VerifierProcess>;
}

interface BeginOptions {
  /** Number of requests of the test; a tenth of them is sent at once. */
  readonly requests: number;
  readonly flags?: readonly string[];
  readonly auditFile?: string;
  /** Versions of Envoy. Default: the newest, since each version asks a verifier that answers in the same way. */
  readonly envoys?: readonly string[];
}

export interface FailClosedFixture {
  readonly site: Site;
  /** Starts a Redis, a verifier that uses it, and a campaign through the Envoys. */
  begin(options: BeginOptions): Promise<BegunCampaign>;
  /** After the test, whatever became of it; the last one first. */
  onEnd(stop: () => Promise<void> | void): void;
}

export function useFailClosedFixture(): FailClosedFixture {
  let site: Site | undefined;
  let bundleDirectory = '';
  const stops: (() => Promise<void>)[] = [];
  const onEnd = (stop: () => Promise<void> | void) => void stops.push(async () => stop());
  const there = (): Site => {
    if (site === undefined) throw new Error('the fixture is not ready yet');
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
    async begin({
      requests,
      envoys = envoyVersions.slice(-1),
      flags = ['--redis-timeout', '400ms'],
      ...options
    }) {
      const redis = await startRedis({ site: there(), stops });
      const start = async (more: Partial<VerifierOptions> = {}) => {
        const fixed = { bundleDirectory, replay: redis.url, flags, ...options };
        const started = await startVerifier(there(), { ...fixed, ...more });
        onEnd(started.stop);
        return started;
      };
      const verifier = await start();
      const campaign = await startCampaign(there(), verifier, envoys);
      onEnd(campaign.stop);
      await campaign.untilOpen();
      await campaign.send(Math.ceil(requests / 10));
      return { campaign, redis, verifier, successor: (of) => start({ successorOf: of }) };
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
