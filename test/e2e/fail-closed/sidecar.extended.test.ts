/**
 * Tests a sidecar that is killed, hangs, is slow, is restarted, or is replaced by an impostor that sends rubbish: no request
 * without a decision reaches the API, and every answer says what failed. `PROOFGATE_TEST_REQUESTS` sets the number of requests
 * (`make soak`).
 */
import { setTimeout as delay } from 'node:timers/promises';
import { expect, it } from '@jest/globals';
import type { VerifierProcess } from '../environment/verifier.ts';
import { CAMPAIGN_TIMEOUT_MS, type Campaign, expectMet, SIDECAR_REQUESTS, tell } from './campaign.ts';
import { keepDoing, setFailingStage } from './fail-closed-fixture.ts';
import { RUBBISH, startImpostor } from './impostor.ts';

const stage = setFailingStage();
const tenth = Math.ceil(SIDECAR_REQUESTS / 10);

/** On Redis, so that what the first one let through is known to its successors. */
async function begin() {
  const { url } = await stage.redis();
  const options = { replay: url, flags: ['--redis-timeout', '400ms'] };
  const verifier = await stage.verifier(options);
  const campaign = await stage.campaign(verifier);
  await campaign.untilOpen();
  await campaign.send(tenth);
  const successor = (of: VerifierProcess) => stage.verifier({ ...options, successorOf: of });
  return { campaign, verifier, successor };
}

function pathOf({ address }: VerifierProcess): string {
  if (address.kind !== 'unix') throw new Error('not on a socket file');
  return address.path;
}

async function finish(what: string, campaign: Campaign): Promise<void> {
  campaign.healed();
  await campaign.untilOpen();
  await campaign.send(tenth);
  campaign.reckon();
  expectMet(campaign, SIDECAR_REQUESTS);
  tell(what, campaign);
}

const NO_ANSWER = 'verifier_unavailable/no_answer';

it(
  'killed',
  async () => {
    const { campaign, successor, verifier } = await begin();
    const underWay = campaign.send(tenth);
    verifier.signal('SIGKILL');
    await verifier.exited;
    await underWay;
    campaign.failing();
    await campaign.send(SIDECAR_REQUESTS);
    expect([...campaign.duringFault().keys()]).toEqual([NO_ANSWER]);
    campaign.healed();
    await successor(verifier);
    await finish('killed', campaign);
  },
  CAMPAIGN_TIMEOUT_MS,
);

it(
  'hung',
  async () => {
    const { campaign, verifier } = await begin();
    const underWay = campaign.send(tenth);
    verifier.signal('SIGSTOP');
    stage.onEnd(() => verifier.signal('SIGCONT'));
    await underWay;
    campaign.failing();
    await campaign.send(SIDECAR_REQUESTS);
    expect([...campaign.duringFault().keys()]).toEqual([NO_ANSWER]);
    verifier.signal('SIGCONT');
    await finish('hung', campaign);
  },
  CAMPAIGN_TIMEOUT_MS,
);

it(
  'slow',
  async () => {
    const { campaign, verifier } = await begin();
    stage.onEnd(() => verifier.signal('SIGCONT'));
    // Longer than Envoy's time-out in most rounds: Envoy has given up when the verifier decides.
    const slowing = keepDoing(async () => {
      verifier.signal('SIGSTOP');
      await delay(600);
      verifier.signal('SIGCONT');
      await delay(150);
    });
    campaign.failing();
    await campaign.send(SIDECAR_REQUESTS);
    await slowing.stop();
    expect([...campaign.duringFault().keys()]).toContain(NO_ANSWER);
    await finish('slow', campaign);
  },
  CAMPAIGN_TIMEOUT_MS,
);

it(
  'restarted again and again, killed or asked to end',
  async () => {
    const { campaign, successor, verifier } = await begin();
    let current = verifier;
    let restarts = 0;
    campaign.failing();
    const restarting = keepDoing(async () => {
      current.signal(restarts % 2 === 0 ? 'SIGKILL' : 'SIGTERM');
      await current.exited;
      current = await successor(current);
      restarts += 1;
    });
    const round = () => campaign.send(Math.ceil(SIDECAR_REQUESTS / 8));
    for (let rounds = 0; rounds < 8 || restarts < 3; rounds += 1) await round();
    await restarting.stop();
    expect([...campaign.duringFault().keys()]).toEqual(expect.arrayContaining([NO_ANSWER, '200']));
    await finish(`restarted ${restarts} times`, campaign);
  },
  CAMPAIGN_TIMEOUT_MS,
);

it(
  'rubbish in its place',
  async () => {
    const { campaign, successor, verifier } = await begin();
    verifier.signal('SIGKILL');
    await verifier.exited;
    campaign.failing();
    let outcomesBefore = campaign.duringFault();
    for (const rubbish of RUBBISH) {
      const impostor = await startImpostor(pathOf(verifier), rubbish);
      stage.onEnd(impostor.stop);
      await campaign.send(Math.ceil(SIDECAR_REQUESTS / RUBBISH.length));
      await impostor.stop();
      const now = campaign.duringFault();
      const grown = [...now].filter(([outcome, times]) => times !== (outcomesBefore.get(outcome) ?? 0));
      const expected = `verifier_unavailable/${rubbish.failure ?? 'no_answer'}`;
      // A connection to the previous impostor may still be in use for a moment.
      expect([rubbish.name, grown.map(([outcome]) => outcome)]).toEqual([
        rubbish.name,
        rubbish.failure === undefined ? [NO_ANSWER] : expect.arrayContaining([expected]),
      ]);
      outcomesBefore = now;
    }
    campaign.reckon();
    await successor(verifier);
    await finish('rubbish in its place', campaign);
  },
  CAMPAIGN_TIMEOUT_MS,
);
