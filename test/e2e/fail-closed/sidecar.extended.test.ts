/**
 * Tests a sidecar that is killed, hangs, is slow, is restarted, or is replaced by an impostor that sends rubbish: no request
 * without a decision reaches the API, and every answer says what failed. `PROOFGATE_TEST_REQUESTS` sets the number of requests
 * (`make soak`).
 */
import { setTimeout as delay } from 'node:timers/promises';
import { expect, it } from '@jest/globals';
import { envoyVersions } from '../../support/harness/envoy.ts';
import type { VerifierProcess } from '../../support/site/verifier.ts';
import { CAMPAIGN_TIMEOUT_MS, expectRecovery, SIDECAR_REQUESTS } from './campaign.ts';
import { type BegunCampaign, keepDoing, useFailClosedFixture } from './fail-closed-fixture.ts';
import { RUBBISH, startImpostor } from './impostor.ts';

const fixture = useFailClosedFixture();

/** On Redis, so that the successors know what the first one accepted. Each version of Envoy judges answers by itself. */
const begin = () => fixture.begin({ requests: SIDECAR_REQUESTS, envoys: envoyVersions });

function pathOf({ address }: VerifierProcess): string {
  if (address.kind !== 'unix') throw new Error('not on a socket file');
  return address.path;
}

const NO_ANSWER = 'verifier_unavailable/no_answer';

interface Fault {
  begin(begun: BegunCampaign): Promise<void>;
  end(begun: BegunCampaign): Promise<unknown>;
}

const FAULTS: { readonly [name: string]: Fault } = {
  killed: {
    begin: async ({ verifier }) => {
      verifier.signal('SIGKILL');
      await verifier.exited;
    },
    end: ({ successor, verifier }) => successor(verifier),
  },
  hung: {
    begin: async ({ verifier }) => {
      verifier.signal('SIGSTOP');
      fixture.onEnd(() => verifier.signal('SIGCONT'));
    },
    end: async ({ verifier }) => verifier.signal('SIGCONT'),
  },
};

it.each(Object.entries(FAULTS))(
  '%s',
  async (name, fault) => {
    const begun = await begin();
    const { campaign } = begun;
    const pending = campaign.send(Math.ceil(SIDECAR_REQUESTS / 10));
    await fault.begin(begun);
    await pending;
    campaign.failing();
    await campaign.send(SIDECAR_REQUESTS);
    expect([...campaign.duringFault().keys()]).toEqual([NO_ANSWER]);
    campaign.healed();
    await fault.end(begun);
    await expectRecovery(name, campaign, SIDECAR_REQUESTS);
  },
  CAMPAIGN_TIMEOUT_MS,
);

it(
  'slow',
  async () => {
    const { campaign, verifier } = await begin();
    fixture.onEnd(() => verifier.signal('SIGCONT'));
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
    await expectRecovery('slow', campaign, SIDECAR_REQUESTS);
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
    await expectRecovery(`restarted ${restarts} times`, campaign, SIDECAR_REQUESTS);
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
      fixture.onEnd(impostor.stop);
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
    await expectRecovery('rubbish in its place', campaign, SIDECAR_REQUESTS);
  },
  CAMPAIGN_TIMEOUT_MS,
);
