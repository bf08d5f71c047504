/**
 * Upgrades Control and its verifiers from release to release under load, and takes the verifiers back: Envoy asks them in turns, and they
 * share one Redis. Source: docs/operate/enforcement.md "Replacing verifiers", docs/operate/control-upkeep.md "Upgrade and rollback".
 */
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { http1Client } from '../../src/tools/conformance/wire/http1.ts';
import { besideVerifier } from '../e2e/rolling/roll-fixture.ts';
import { SteadyLoad } from '../e2e/rolling/steady-load.ts';
import {
  ALLOWED,
  FollowedSite,
  type FollowingVerifier,
  type Program,
} from '../support/control/followed-site.ts';
import { envoyVersions, startEnvoy } from '../support/harness/envoy.ts';
import { closeAtOnce, patient } from '../support/harness/envoy-config.ts';
import { freePort } from '../support/harness/free-port.ts';
import { TestRedisServer } from '../support/harness/redis-server.ts';
import { upgradableReleases } from '../support/harness/releases.ts';
import { startUpstream, type Upstream } from '../support/harness/upstream.ts';
import { waitFor } from '../support/wait.ts';

const REQUESTS_BETWEEN = 60;
const HEALTHY = 'cluster.proofgate.membership_healthy';

const programs: readonly Program[] = [...upgradableReleases().map(({ program }) => program), undefined];
const [oldest, ...newer] = programs;
/** Control migrates its database, so only verifiers go back. */
const back = programs.slice(0, -1).toReversed();
/** A target for each verifier, as each has a state directory of its own. */
const targets = [...programs, ...back].map((_, turn) => `gateway-${turn}`);

let redis: TestRedisServer;
let upstream: Upstream;
let site: FollowedSite;
beforeAll(async () => {
  redis = await TestRedisServer.start();
  upstream = await startUpstream({ answer: 'short' });
  site = await FollowedSite.start({ controlRelease: oldest, targets });
});
afterAll(async () => {
  await site?.stop();
  await upstream?.stop();
  await redis?.stop();
});

it('no valid request is refused, and none passes twice', async () => {
  const { keyFile } = await site.stage.enroll('billing');
  const ports = [await freePort(), await freePort()] as const;
  let turn = 0;
  const start = (program: Program): Promise<FollowingVerifier> =>
    site.startVerifier({
      program,
      target: targets[turn] ?? '',
      port: ports[turn % 2] ?? 0,
      replay: redis.url,
      redisTimeout: '7s',
      flags: ['--drain-delay', '5s'],
    });
  let running = await start(oldest);
  await site.awaitOutcome(running, keyFile, ALLOWED);
  const envoy = await startEnvoy(envoyVersions[1], {
    verifier: { kind: 'tcp', host: '127.0.0.1', port: ports[0] },
    upstream: { host: upstream.host, port: upstream.port },
    concurrency: 2,
    healthChecks: true,
    edits: [closeAtOnce, ...patient, ...besideVerifier(ports[1])],
  });
  const healthy = (count: number) =>
    waitFor(`${count} healthy`, async () => ((await envoy.stat(HEALTHY)) === count ? true : undefined));
  await healthy(1);
  const load = new SteadyLoad(() => site.signedRequest(keyFile), http1Client(envoy));
  const more = () => {
    const enough = load.sent + REQUESTS_BETWEEN;
    return waitFor('more requests', () => (load.sent >= enough ? true : undefined));
  };
  const replaceBy = async (program: Program) => {
    const former = running;
    turn += 1;
    running = await start(program);
    await healthy(2);
    await more();
    await former.stop();
    await healthy(1);
    await more();
    expect([load.refused, [...(await load.presentAgain()).keys()]]).toEqual([[], ['403 jti_replay']]);
  };
  try {
    for (const program of newer) {
      await more();
      await site.stage.stopControl();
      await more();
      await site.stage.startControl({ release: program });
      await replaceBy(program);
    }
    for (const program of back) await replaceBy(program);
  } finally {
    await load.stop();
    await envoy.stop();
  }
  process.stdout.write(`${turn} verifiers replaced: ${load.sent} requests, ${load.refused.length} refused\n`);
  expect(load.refused).toEqual([]);
}, 600_000);
