/** How long a check takes at half of the load that the verifier takes: next to a bare echo at the same rate, in turns. */
import { TestRedisServer } from '../../test/fakes/redis-server.ts';
import { type Figure, figure, type Part, type PartResult } from '../report.ts';
import { ascending, median, percentile } from '../statistics.ts';
import { costOf, latenciesAt } from './load.ts';
import { goodRequests } from './requests.ts';
import { type RunningServer, startFloor, startSiteVerifier } from './servers.ts';
import { type BenchSite, writeSite } from './site.ts';
import { inWorkspace, type Workspace } from './workspace.ts';

const SLICES = 6;
const SLICE_SECONDS = 3;
const CAPACITY_REQUESTS = 15_000;

export const latency: Part = {
  name: 'latency',
  title: `time of one check at half load, gRPC on loopback, ${SLICES} slices of ${SLICE_SECONDS} s each, in turns`,
  run: () => inWorkspace(measure),
};

async function measure(workspace: Workspace): Promise<PartResult> {
  const site = await writeSite(workspace.directory, { routes: 10, keys: 100 });
  const redis = workspace.started(await TestRedisServer.start('--maxmemory-policy', 'noeviction'));
  const echo = workspace.started(await startFloor({}));
  const memory = await startSiteVerifier(workspace, site);
  const inRedis = await startSiteVerifier(workspace, site, { replay: redis.url });
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
  const [verifierMs, echoMs] = [[] as number[][], [] as number[][]];
  for (let slice = 0; slice < SLICES; slice++) {
    const count = Math.floor(rate * SLICE_SECONDS);
    verifierMs.push(await latenciesAt(verifier, goodRequests(site, count), rate));
    echoMs.push(await latenciesAt(echo, goodRequests(site, count), rate));
  }
  const of = (name: string, slices: readonly (readonly number[])[], share: number) =>
    figure(
      `${name}, p${share * 100}`,
      'ms',
      slices.map((slice) => percentile(ascending(slice), share)),
    );
  return [
    figure(`${store}: checks a second, ${64} in flight`, 'a second', [perSecond]),
    figure(`${store}: half of that`, 'a second', [rate]),
    ...[0.5, 0.99].flatMap((share) => [
      of(`${store}: check`, verifierMs, share),
      of(`${store}: bare echo at the same rate`, echoMs, share),
    ]),
    figure(`${store}: check over echo, median of the p99s`, 'x', [
      median(verifierMs.map((slice) => percentile(ascending(slice), 0.99))) /
        median(echoMs.map((slice) => percentile(ascending(slice), 0.99))),
    ]),
  ];
}
