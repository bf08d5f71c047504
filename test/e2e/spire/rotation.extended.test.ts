/**
 * SVIDs of real SPIRE rotate under load from eight connections, and SPIRE's agent and server restart: no request is refused.
 * `PROOFGATE_TEST_LOAD_SECONDS` and `PROOFGATE_TEST_SVID_SECONDS` set how long the load and an SVID last.
 */
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { freePort } from '../../support/harness/free-port.ts';
import { type Service, startProofgate } from '../../support/harness/sidecar.ts';
import { machineSlowness, waitFor } from '../../support/wait.ts';
import { type BrokerStage, useBrokerStages } from './broker-stage.ts';
import { CONNECTIONS, PassportLoad } from './passport-load.ts';
import { type StartedSpire, TRUST_DOMAIN, useSpire } from './spire-fixture.ts';
import { describeWithSpire } from './spire-programs.ts';

/** SPIRE renews an SVID when half of its time has passed; in the other half the agent must get a passport for it. */
const SVID_SECONDS = Math.ceil(
  Number(process.env.PROOFGATE_TEST_SVID_SECONDS ?? 10) * Math.max(1, machineSlowness()),
);
const LOAD_SECONDS = Number(process.env.PROOFGATE_TEST_LOAD_SECONDS ?? 2 * SVID_SECONDS);
const CHECKOUT = '/ns/prod/sa/checkout';
/** With mTLS each SVID brings another holder key; with the signed form, the default, the agent keeps its own. */
const PROOFS = ['mtls', 'signed_form'] as const;

describeWithSpire('workloads of SPIRE under load', () => {
  const spire = useSpire();
  const startStage = useBrokerStages();
  const agents: Service[] = [];
  const loads: PassportLoad[] = [];
  let started: StartedSpire;
  let stage: BrokerStage;

  beforeAll(async () => {
    started = await spire.start([{ path: CHECKOUT }], { svidTtlSeconds: SVID_SECONDS });
    stage = await startStage({
      ...{ trustDomains: [TRUST_DOMAIN], workloads: [started.server.id(CHECKOUT)] },
      brokerFlags: ['--spiffe-socket', started.agent.endpoint, '--max-holder-keys', '1000'],
    });
    for (const proof of PROOFS) {
      const keyFile = join(stage.site.directory, `${proof}.pem`);
      agents.push(await startAgent(keyFile, proof));
      loads.push(new PassportLoad({ keyFile, url: stage.url }));
    }
  });
  afterAll(async () => {
    for (const process of [...loads, ...agents]) await process.stop();
  });

  async function startAgent(keyFile: string, proof: string): Promise<Service> {
    const admin = `127.0.0.1:${await freePort()}`;
    return startProofgate(
      [
        ...[
          'agent',
          ...stage.callerFlags,
          '--spiffe-socket',
          started.agent.endpoint,
          '--broker-proof',
          proof,
        ],
        ...['--private-key-out', keyFile, '--admin-listen', admin],
      ],
      { readyUrl: `http://${admin}/readyz` },
    );
  }

  /** Each caller goes on with a passport from now on, and nothing was refused so far. */
  async function expectNextPassports(): Promise<void> {
    const shown = loads.map(({ passports }) => passports.size);
    // One that was being made may be of the time before.
    await waitFor('two more passports of each caller', () =>
      loads.every(({ passports }, i) => passports.size > (shown[i] ?? 0) + 1) ? true : undefined,
    );
    expect(loads.flatMap(({ refused }) => refused)).toEqual([]);
  }

  it(
    'are never refused while their SVIDs rotate',
    async () => {
      const endMs = performance.now() + 1_000 * LOAD_SECONDS;
      await waitFor('the end of the load', () => {
        const isRefused = loads.some(({ refused }) => refused.length > 0);
        return performance.now() > endMs || isRefused || undefined;
      });
      await expectNextPassports();
      const [mtls, signedForm] = loads;
      const requests = loads.map(({ sent }) => sent).join(' and ');
      console.log(
        `${requests} requests in ${LOAD_SECONDS} s; SVIDs of ${SVID_SECONDS} s: ${mtls?.holders.size} keys by mTLS, ${signedForm?.passports.size} passports by the signed form`,
      );
      for (const { connections, passports, sent } of loads) {
        expect(connections).toBe(CONNECTIONS);
        expect(sent).toBeGreaterThan(10 * LOAD_SECONDS);
        expect(passports.size).toBeGreaterThan(LOAD_SECONDS / SVID_SECONDS);
      }
      expect(mtls?.holders.size).toBeGreaterThan(LOAD_SECONDS / SVID_SECONDS);
      expect(signedForm?.holders.size).toBe(1);
    },
    1_000 * LOAD_SECONDS + 300_000,
  );

  it("are never refused while SPIRE's agent restarts", async () => {
    await started.agent.stop();
    await started.agent.startAgain();
    await expectNextPassports();
  });

  it("are never refused while SPIRE's server restarts", async () => {
    await started.server.stop();
    await started.server.startAgain();
    await expectNextPassports();
  });

  it('are never refused while the broker restarts', async () => {
    await stage.broker.stop();
    await stage.startBrokerAgain();
    await expectNextPassports();
  });
});
