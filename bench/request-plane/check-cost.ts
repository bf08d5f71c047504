/**
 * CPU of one check as a multiple of its floor, and how many a second. The floors: a bare grpc-js unary echo of the same
 * message, then with one Ed25519 verification by node:crypto a request, then with one `SET … NX PX` by ioredis too.
 * Floors and verifier are loaded alike, from this process; every request is different, signed, and must be allowed.
 * Rounds alternate, so that a machine whose speed drifts drifts for all of them; compared within each.
 */
import { TestRedisServer } from '../../test/fakes/redis-server.ts';
import { figure, type Part, type PartResult } from '../report.ts';
import { median } from '../statistics.ts';
import { ratios } from './cost-in-turns.ts';
import { type Cost, costOf } from './load.ts';
import { goodRequests, signedTranscript } from './requests.ts';
import { type RunningServer, siteArguments, startFloor, startVerifier } from './servers.ts';
import { writeSite } from './site.ts';
import { inWorkspace, type Workspace } from './workspace.ts';

const ROUNDS = 5;
const REQUESTS_A_ROUND = 20_000;
/** Most that a check may cost, as a multiple of its floor. */
const MOST_RATIO = 1.3;

const SUBJECTS = {
  echo: 'floor: bare grpc-js unary echo',
  echo_verify: 'floor: echo, one Ed25519 verification by node:crypto',
  memory: 'check, replay in memory',
  echo_verify_set: 'floor: echo, one verification, one SET NX by ioredis',
  redis: 'check, replay in Redis',
} as const;
type Subject = keyof typeof SUBJECTS;

export const checkCost: Part = {
  name: 'check',
  title: `CPU of one check against floors, ${ROUNDS} rounds of ${REQUESTS_A_ROUND} requests`,
  run: () => inWorkspace(measure),
};

async function measure(workspace: Workspace): Promise<PartResult> {
  const site = await writeSite(workspace.directory, { routes: 10, keys: 100 });
  const redis = workspace.started(await TestRedisServer.start('--maxmemory-policy', 'noeviction'));
  const verify = signedTranscript(site);
  const verifier = (replay: string) =>
    startVerifier({ site, source: siteArguments(site), replay, workDirectory: workspace.directory });
  const start: { readonly [S in Subject]: () => Promise<RunningServer> } = {
    echo: () => startFloor({}),
    echo_verify: () => startFloor({ verify }),
    memory: () => verifier('memory'),
    echo_verify_set: () => startFloor({ verify, redisUrl: redis.url }),
    redis: () => verifier(redis.url),
  };
  const costs: { readonly [S in Subject]: Cost[] } = {
    echo: [],
    echo_verify: [],
    memory: [],
    echo_verify_set: [],
    redis: [],
  };
  for (let round = 0; round < ROUNDS; round++) {
    for (const subject of Object.keys(SUBJECTS) as Subject[]) {
      const server = await start[subject]();
      try {
        costs[subject].push(await costOf(server, goodRequests(site, REQUESTS_A_ROUND)));
      } finally {
        await server.stop();
      }
    }
  }
  return report(costs);
}

function report(costs: { readonly [S in Subject]: readonly Cost[] }): PartResult {
  const cpuUs = (subject: Subject) => costs[subject].map((cost) => cost.cpuUs);
  const ratio = (subject: Subject, floor: Subject) => median(ratios(cpuUs(subject), cpuUs(floor)));
  const subjects = Object.entries(SUBJECTS) as [Subject, string][];
  return {
    figures: [
      ...subjects.map(([subject, name]) => figure(name, 'µs CPU', cpuUs(subject))),
      ...subjects.map(([subject, name]) =>
        figure(
          name,
          'a second',
          costs[subject].map(({ perSecond }) => perSecond),
        ),
      ),
    ],
    bounds: [
      { name: 'ratio to the floor, memory', value: ratio('memory', 'echo_verify'), atMost: MOST_RATIO },
      { name: 'ratio to the floor, Redis', value: ratio('redis', 'echo_verify_set'), atMost: MOST_RATIO },
    ],
  };
}
