/** Measures how long a check takes at half of the verifier's maximum load, next to a bare echo at the same rate, in turns. */
import { TestRedisServer } from '../../test/support/harness/redis-server.ts';
import { keepOnCore, keepThisOnCore, MEASURED_CORE, OTHERS_CORE } from '../machine.ts';
import { type Figure, figure, type Part, type PartResult } from '../report.ts';
import { ascending, median } from '../statistics.ts';
import { disturbance, measureInTurns, percentiles } from './in-turns.ts';
import { costOf, latenciesAt } from './load.ts';
import { goodRequests } from './requests.ts';
import { type RunningServer, startFloor, startSiteVerifier } from './servers.ts';
import { type BenchSite, writeSite } from './site.ts';
import { inWorkspace, type Workspace } from './workspace.ts';

const PAIRS = 8;
const MOST_PAIRS = 24;
const SLICE_SECONDS = 2;
const CAPACITY_REQUESTS = 15_000;

export const latency: Part = {
  name: 'latency',
  title: `time of one check at half load, gRPC on loopback, ${PAIRS} slices of ${SLICE_SECONDS} s for each, in turns`,
  run: () => inWorkspace(measure),
};

async function measure(workspace: Workspace): Promise<PartResult> {
  const site = await writeSite(workspace.directory, { routes: 10, keys: 100 });
  const redis = workspace.started(await TestRedisServer.start('--maxmemory-policy', 'noeviction'));
  const echo = workspace.started(await startFloor({}));
  const memory = await startSiteVerifier(workspace, site);
  const inRedis = await startSiteVerifier(workspace, site, { replay: redis.url });
  for (const { pid } of [echo, memory, inRedis]) keepOnCore(pid, MEASURED_CORE);
  workspace.started(keepThisOnCore(OTHERS_CORE));
  return {
    figures: [
      ...(await compare('memory', memory, echo, site)),
      ...(await compare('Redis', inRedis, echo, site)),
    ],
    bounds: [],
  };
}

async function compare(
  store: string,
  verifier: RunningServer,
  echo: RunningServer,
  site: BenchSite,
): Promise<readonly Figure[]> {
  const { perSecond } = await costOf(verifier, goodRequests(site, CAPACITY_REQUESTS));
  const rate = perSecond / 2;
  const slice = (target: RunningServer) => {
    const requests = goodRequests(site, Math.floor(rate * SLICE_SECONDS));
    return async () => ascending(await latenciesAt(target, requests, rate));
  };
  const measured = await measureInTurns({
    first: () => slice(verifier),
    second: () => slice(echo),
    pairs: PAIRS,
    mostPairs: MOST_PAIRS,
  });
  const { first, second } = measured;
  return [
    figure(`${store}: checks a second, ${64} in flight`, 'a second', [perSecond]),
    figure(`${store}: half of that`, 'a second', [rate]),
    ...[0.5, 0.99].flatMap((share) => [
      figure(`${store}: check, p${share * 100}`, 'ms', percentiles(first, share)),
      figure(`${store}: bare echo at the same rate, p${share * 100}`, 'ms', percentiles(second, share)),
    ]),
    figure(`${store}: check over echo, median of the p99s`, 'x', [
      median(percentiles(first, 0.99)) / median(percentiles(second, 0.99)),
    ]),
    ...disturbance(measured, `${store}: `),
  ];
}
