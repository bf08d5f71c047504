/**
 * Tests two verifiers on one Redis name that leads to another primary, under load: after a demotion, a crash, a pause, and
 * while the old primary goes on. No proof is accepted twice, and service resumes by itself within the fence.
 * `PROOFGATE_TEST_FAILOVERS` sets the number of failovers (`make soak`).
 */
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { waitFor } from '../../support/wait.ts';
import { AcceptLedger } from './accept-ledger.ts';
import { ReplayCampaign } from './campaign.ts';
import { NAME_FAILOVERS, NamedPrimary, type NameFailover } from './named-primary.ts';
import { ReplayStage } from './replay-fixture.ts';
import { naiveTarget } from './targets.ts';
import type { ReplayVerifier } from './verifier-process.ts';

const FAILOVERS = Number(process.env.PROOFGATE_TEST_FAILOVERS ?? NAME_FAILOVERS.length);
/** The outcome of a verifier that got the call while it was paused. */
const GIVEN_UP = 'rpc CANCELLED';

let stage: ReplayStage;
let redis: NamedPrimary;
let verifiers: readonly [ReplayVerifier, ReplayVerifier];
let campaign: ReplayCampaign;
const figures: object[] = [];
beforeAll(async () => {
  stage = await ReplayStage.set();
  redis = await NamedPrimary.start();
  stage.endsWith(() => redis.stop());
  verifiers = [
    await stage.startVerifier({ name: 'north', replay: redis.north.url }),
    await stage.startVerifier({ name: 'south', replay: redis.south.url }),
  ];
  campaign = new ReplayCampaign({
    source: stage.source,
    targets: verifiers.map(({ target }) => target),
    ledger: new AcceptLedger([GIVEN_UP]),
  });
});
afterAll(() => stage?.strike());

const rounds = Array.from({ length: FAILOVERS }, (_, round) => {
  const failover = NAME_FAILOVERS[round % NAME_FAILOVERS.length];
  return [round + 1, failover?.name ?? '', failover] as const;
});

describe.each(rounds)('failover %i, %s', (_round, name, failover) => {
  it('accepts nothing twice and resumes by itself', async () => {
    if (failover === undefined) throw new Error('no such failover');
    const fencesBefore = await fences();
    await campaign.underLoad(async () => {
      let ready: Promise<number> = Promise.resolve(Number.NaN);
      let movedMs = Number.NaN;
      await campaign.survive(name, () =>
        strike(failover, campaign, () => {
          movedMs = performance.now();
          ready = untilReady(movedMs);
        }),
      );
      const acceptSeconds = secondsSince(movedMs);
      figures.push({ name, readySeconds: await ready, acceptSeconds });
    });
    expect(campaign.ledger.doubles).toEqual([]);
    expect(campaign.ledger.unknown).toEqual([]);
    for (const [at, count] of (await fences()).entries())
      expect(count).toBeGreaterThan(fencesBefore[at] ?? 0);
  });
});

it('accepted all along', async () => {
  await campaign.presentEverything();
  const { ledger } = campaign;
  process.stdout.write(`one name: ${JSON.stringify({ accepts: ledger.acceptCount, figures })}\n`);
  process.stdout.write(`one name: ${JSON.stringify(Object.fromEntries(ledger.outcomes))}\n`);
  expect(ledger.doubles).toEqual([]);
});

it('a store without a fence accepts twice when the name moves: the campaign finds it', async () => {
  const targets = ['north', 'south'].map((target) => naiveTarget(target, () => redis.primary.server));
  const naive = new ReplayCampaign({ source: stage.source, targets });
  await naive.underLoad(async () => {
    await redis.promoteWithoutWrites(naive);
    await naive.presentAgain();
    await redis.follow();
  });
  expect(naive.ledger.doubles.length).toBeGreaterThan(0);
});

async function strike(failover: NameFailover, under: ReplayCampaign, moved: () => void): Promise<void> {
  await failover.strike({ redis, campaign: under, verifiers, moved });
}

/** @returns the seconds until both verifiers are ready */
async function untilReady(sinceMs: number): Promise<number> {
  await Promise.all(
    verifiers.map(({ target, probe }) =>
      waitFor(`${target.name} to be ready`, async () => (await probe('/readyz')).status === 200),
    ),
  );
  return secondsSince(sinceMs);
}

function secondsSince(ms: number): number {
  return Math.round((performance.now() - ms) / 100) / 10;
}

/** At each verifier: of a changed primary, or of a clock where the machine gave a primary no time for more than 10 s. */
async function fences(): Promise<readonly number[]> {
  const counts = verifiers.map(async ({ probe }) => {
    const line = /^proofgate_replay_fences_total\{[^}]*why="(?:primary_changed|clock)"[^}]*\} ([0-9]+)$/gm;
    const found = [...(await probe('/metrics')).text.matchAll(line)];
    return found.reduce((sum, [, count]) => sum + Number(count), 0);
  });
  return Promise.all(counts);
}
