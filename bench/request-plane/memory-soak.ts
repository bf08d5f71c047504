/**
 * Measures whether memory stays constant: half an hour of steady load, valid and invalid requests mixed, on two verifiers at
 * once, one with the embedded store and one with Redis. The verifier must allow every valid request and deny every invalid one
 * for its reason. A host that pauses the machine for a second causes a few denials for a missed deadline, which are correct.
 */
import { TestRedisServer } from '../../test/support/harness/redis-server.ts';
import { residentMib } from '../machine.ts';
import { type Bound, type Figure, figure, type Part, type PartResult } from '../report.ts';
import { slopeOf } from '../statistics.ts';
import { type GrpcTarget, latenciesAt } from './load.ts';
import { encodeRequest, fieldsOf, goodPlan } from './requests.ts';

import { type RunningVerifier, refusing, startSiteVerifier } from './servers.ts';
import { type BenchSite, writeSite } from './site.ts';
import { inWorkspace, type Workspace } from './workspace.ts';

const MINUTES = Number(process.env.PROOFGATE_BENCH_SOAK_MINUTES ?? 30);
/** To each of the two verifiers. */
const GOOD_A_SECOND = 300;
const BAD_A_SECOND = 150;
/** Shorter where the soak is, so that there are points enough for a slope. */
const SLICE_SECONDS = Math.min(10, (MINUTES * 60) / 30);
/** Caches and the stores' records, kept for five minutes, fill up first. */
const SETTLING_SHARE = 0.4;
/** Of the memory in an hour: noise of the garbage collector stays below, a leak of a few bytes a request does not. */
const MOST_SHARE_AN_HOUR = 0.1;
const LEAST_POINTS = 10;
/** Reason and detail of the bad requests, and of those past their deadline. */
const BAD_IS_TOLD = ['request_binding_mismatch', 'target'];
const OVERLOADED = '"overloaded"';
const MOST_OVERLOADED_SHARE = 0.001;
const MIB = 1024 * 1024;

export const memorySoak: Part = {
  name: 'soak',
  title: `memory over ${MINUTES} minutes at ${GOOD_A_SECOND} good and ${BAD_A_SECOND} bad requests a second to each of two verifiers, half with new passports`,
  run: () => inWorkspace(measure),
};

interface Soaked {
  readonly name: string;
  readonly usedMib: () => Promise<number> | number;
  /** Hours since the start, and MiB. */
  readonly points: { readonly x: number; readonly y: number }[];
}

async function measure(workspace: Workspace): Promise<PartResult> {
  const site = await writeSite(workspace.directory, { routes: 10, keys: 100 });
  const redis = workspace.started(await TestRedisServer.start('--maxmemory-policy', 'noeviction'));
  const inMemory = await startSiteVerifier(workspace, site);
  const inRedis = await startSiteVerifier(workspace, site, { replay: redis.url });
  const soaked: readonly Soaked[] = [
    { name: 'replay in memory', usedMib: () => residentMib(inMemory.pid), points: [] },
    { name: 'replay in Redis', usedMib: () => residentMib(inRedis.pid), points: [] },
    { name: 'the Redis server itself', usedMib: () => usedMibOf(redis), points: [] },
  ];
  const startMs = performance.now();
  let answered = 0;
  let overloaded = 0;
  const orOverloaded = (target: GrpcTarget): GrpcTarget => ({
    ...target,
    isGood: (answer) => {
      if (target.isGood(answer)) return true;
      if (!answer.includes(OVERLOADED)) return false;
      overloaded += 1;
      return true;
    },
  });
  while (performance.now() - startMs < MINUTES * 60_000) {
    const slices = [...slicesOn(inMemory, site), ...slicesOn(inRedis, site)];
    const latenciesMs = await Promise.all(
      slices.map(({ perSecond, requests, target }) => latenciesAt(orOverloaded(target), requests, perSecond)),
    );
    answered += latenciesMs.flat().length;
    const hours = (performance.now() - startMs) / 3_600_000;
    for (const { points, usedMib } of soaked) points.push({ x: hours, y: await usedMib() });
  }
  const results = soaked.map(reportOf);
  return {
    figures: [
      figure('requests, all answered as they should', '', [answered - overloaded]),
      figure('requests refused, for they came too late', '', [overloaded]),
      ...results.flatMap(({ figures }) => figures),
    ],
    bounds: [
      {
        name: 'share of requests that came too late',
        value: overloaded / answered,
        atMost: MOST_OVERLOADED_SHARE,
      },
      ...results.map(({ bound }) => bound),
    ],
  };
}

interface Slice {
  readonly target: GrpcTarget;
  readonly requests: readonly Buffer[];
  readonly perSecond: number;
}

/** All are signed before the first is sent. */
function slicesOn(verifier: RunningVerifier, site: BenchSite): readonly Slice[] {
  return [
    { target: verifier, requests: mixed(site, GOOD_A_SECOND), perSecond: GOOD_A_SECOND },
    {
      target: refusing(verifier, BAD_IS_TOLD),
      requests: mixed(site, BAD_A_SECOND, 'x'),
      perSecond: BAD_A_SECOND,
    },
  ];
}

/** @param added to the path after signing: nothing, and they are good */
function mixed(site: BenchSite, perSecond: number, added = ''): Buffer[] {
  return Array.from({ length: Math.floor(perSecond * SLICE_SECONDS) }, (_, index) => {
    const plan = goodPlan(site, index);
    const passport = index % 2 === 0 ? { passport: 'new' as const } : {};
    return encodeRequest(fieldsOf({ ...plan, ...passport, sentPath: plan.path + added }));
  });
}

async function usedMibOf(redis: TestRedisServer): Promise<number> {
  return Number(/used_memory:(\d+)/.exec(await redis.command('INFO', 'memory'))?.[1]) / MIB;
}

function reportOf({ name, points }: Soaked): { readonly figures: readonly Figure[]; readonly bound: Bound } {
  const settled = points.slice(Math.floor(points.length * SETTLING_SHARE));
  if (settled.length < LEAST_POINTS) throw new Error('void run: too short for a slope');
  const mib = settled.map(({ y }) => y);
  const slope = slopeOf(settled);
  const mean = mib.reduce((sum, value) => sum + value, 0) / mib.length;
  return {
    figures: [figure(`${name}: memory`, 'MiB', mib), figure(`${name}: slope`, 'MiB an hour', [slope])],
    bound: {
      name: `${name}: growth in an hour, share of the memory`,
      value: slope / mean,
      atMost: MOST_SHARE_AN_HOUR,
    },
  };
}
