/**
 * Tests clocks of Redis and of verifiers that jump ahead and back, and back and ahead, one at a time and all together, under
 * load: no proof is accepted twice, and service resumes by itself once the clocks are right.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { TestRedisServer } from '../../support/harness/redis-server.ts';
import { machineSlowness } from '../../support/wait.ts';
import { AcceptLedger } from './accept-ledger.ts';
import { ReplayCampaign } from './campaign.ts';
import { FakeClock } from './fake-clock.ts';
import { type Proof, SKEW_SECONDS, systemSeconds } from './proof-source.ts';
import { ReplayStage } from './replay-fixture.ts';
import { naiveTarget } from './targets.ts';

const FENCE_SECONDS = 2 * SKEW_SECONDS + 1;
/** Time to notice, with a margin for a busy machine. */
const ALLOWANCE_SECONDS = 12;
const IS_LONG = Number(process.env.PROOFGATE_TEST_FAULTS ?? 1) > 1;
/** One beyond the time for which anything is kept, one within the life of a proof (`make soak`). */
const JUMPS_SECONDS = IS_LONG ? [400, 45] : [400];
/** Outcomes with a wrong clock, at the verifier or the signer: it denies before it asks the replay store. */
const REFUSED_BY_TIME = [
  'invalid_request_proof/passport_expired 401',
  'invalid_request_proof/passport_not_yet_valid 401',
  'invalid_request_proof/proof_expired 401',
  'invalid_request_proof/proof_not_yet_valid 401',
];

let stage: ReplayStage;
let redis: TestRedisServer;
let campaign: ReplayCampaign;
/** Signed by clocks that had jumped. */
const elsewhere: Proof[] = [];
const clocks: { readonly [name: string]: FakeClock } = {};
beforeAll(async () => {
  stage = await ReplayStage.set();
  for (const name of ['redis', 'north', 'south']) {
    const clock = await FakeClock.create();
    stage.endsWith(() => clock.remove());
    Object.assign(clocks, { [name]: clock });
  }
  const settings = ['--maxmemory-policy', 'noeviction'];
  redis = await TestRedisServer.startWith({ settings, env: clockOf('redis').env });
  stage.endsWith(() => redis.stop());
  for (const name of ['north', 'south']) {
    await stage.startVerifier({ name, replay: redis.url, env: clockOf(name).env });
  }
  campaign = campaignWith(stage.verifiers.map(({ target }) => target));
});
afterAll(() => stage?.strike());

const cases = [['redis'], ['north'], ['redis', 'north', 'south']].flatMap((names) =>
  JUMPS_SECONDS.flatMap((seconds) => [
    { who: names.join(' and '), names, way: 'ahead and back', seconds },
    { who: names.join(' and '), names, way: 'back and ahead', seconds: -seconds },
  ]),
);

describe.each(cases)('the clock of $who jumps $seconds s, $way', ({ who, names, way, seconds }) => {
  it('accepts nothing twice and resumes by itself', async () => {
    await campaign.underLoad(async () => {
      const recovery = await campaign.survive(`${who} ${way} ${seconds}`, () => jumpTwice(names, seconds));
      expect(campaign.ledger.doubles).toEqual([]);
      expect(campaign.ledger.unknown).toEqual([]);
      expect(recovery.seconds).toBeLessThan(FENCE_SECONDS + ALLOWANCE_SECONDS * machineSlowness());
    });
  });
});

it('accepted all along', () => {
  const { ledger, recoveries } = campaign;
  process.stdout.write(`clocks: ${JSON.stringify({ accepts: ledger.acceptCount, recoveries })}\n`);
  process.stdout.write(`clocks: ${JSON.stringify(Object.fromEntries(ledger.outcomes))}\n`);
  expect(recoveries).toHaveLength(cases.length);
});

it('a store whose records lapse by the clock accepts twice: the campaign finds it', async () => {
  const naive = campaignWith(['north', 'south'].map((name) => naiveTarget(name, () => redis)));
  await naive.underLoad(async () => {
    await naive.survive('ahead and back', async () => {
      await clockOf('redis').put(400);
      await pause(500);
      await clockOf('redis').put(0);
    });
  });
  expect(naive.ledger.doubles.length).toBeGreaterThan(0);
});

/** Jumps the clocks, waits until no target serves as before and every proof was presented again, and jumps back. */
async function jump(names: readonly string[], seconds: number): Promise<void> {
  const isOne = names.length === 1;
  await Promise.all(names.map((name) => clockOf(name).put(seconds)));
  try {
    const refusing = stage.verifiers.filter(
      ({ target }) => names.includes('redis') || names.includes(target.name),
    );
    if (isOne) await Promise.all(refusing.map(({ target }) => campaign.untilRefusing(target)));
    await campaign.presentAgain();
    await presentByTheirClock(names, isOne);
  } finally {
    await Promise.all(names.map((name) => clockOf(name).put(0)));
  }
}

/** What was accepted in the other time is presented there again, after a while in this one. */
async function jumpTwice(names: readonly string[], seconds: number): Promise<void> {
  await jump(names, seconds);
  await campaign.untilServing();
  await Promise.all(names.map((name) => clockOf(name).put(seconds)));
  try {
    for (const proof of elsewhere) {
      for (const { target } of stage.verifiers) await campaign.presentOne(proof, target);
    }
  } finally {
    await Promise.all(names.map((name) => clockOf(name).put(0)));
  }
}

/** Proofs that are of the present for the verifiers that jumped. */
async function presentByTheirClock(names: readonly string[], isRefused: boolean): Promise<void> {
  for (const { target } of stage.verifiers.filter((verifier) => names.includes(verifier.target.name))) {
    for (let count = 0; count < 20; count += 1) {
      const issuedAtSeconds = systemSeconds() + clockOf(target.name).offsetSeconds;
      const proof = stage.source.mint({ issuedAtSeconds });
      const outcome = await campaign.presentOne(proof, target);
      elsewhere.push(proof);
      if (isRefused) expect(outcome).toBe('replay_store_unavailable/store 503');
    }
  }
}

function campaignWith(targets: ReplayCampaign['targets']): ReplayCampaign {
  return new ReplayCampaign({ source: stage.source, targets, ledger: new AcceptLedger(REFUSED_BY_TIME) });
}

function clockOf(name: string): FakeClock {
  const clock = clocks[name];
  if (clock === undefined) throw new Error(`there is no clock of ${name}`);
  return clock;
}
