/**
 * Measures the CPU of one check as a multiple of its floors, and the checks a second. The floors: a bare grpc-js unary echo of
 * the same message, then with one Ed25519 verification a request, by node:crypto or by libsodium, then also with one `SET … NX
 * PX` by ioredis. This process loads floors and verifier alike; every request is different, signed, and must be allowed. Each
 * round starts all of them anew, because processes of one kind differ. Within a round they take turns, so that a machine whose
 * speed drifts drifts for all.
 */
import { TestRedisServer } from '../../test/support/harness/redis-server.ts';
import { useImageNode } from '../environment.ts';
import { figure, type Part, type PartResult, ratioBound } from '../report.ts';
import { ratios } from './cost-in-turns.ts';
import type { FloorJob } from './floors.ts';
import { type Cost, costOf } from './load.ts';
import { FORMAT_ROUTES, type OtherFormat, requestsOfFormat } from './other-formats.ts';
import { goodRequests, signedTranscript } from './requests.ts';
import { type RunningServer, siteArguments, startFloor, startVerifier } from './servers.ts';
import { type BenchSite, writeSite } from './site.ts';
import { inWorkspace, type Workspace } from './workspace.ts';

const ROUNDS = 3;
/** Enough for V8 to finish its compilation. */
const WARM_UP_REQUESTS = 15_000;
const SLICES = 4;
const REQUESTS_A_SLICE = 2_500;
/** Most that a check may cost, as a multiple of a floor that verifies by the same library, and by node:crypto. */
const MOST_RATIO = 1.2;
const MOST_RATIO_TO_NODE_CRYPTO = 1.3;
/** The same, of another format to a transcript; of a caller's first DPoP proof, with a passport that was not seen before. */
const MOST_RATIO_OF = { http: 1.15, dpop: 1.3, dpop_first: 1.9 } as const satisfies {
  readonly [F in OtherFormat]: number;
};

const SUBJECTS = {
  echo: 'floor: bare grpc-js unary echo',
  node: 'floor: echo, one Ed25519 verification by node:crypto',
  sodium: 'floor: echo, one Ed25519 verification by libsodium',
  memory: 'check, replay in memory',
  node_set: 'floor: echo, verification by node:crypto, one SET NX by ioredis',
  sodium_set: 'floor: echo, verification by libsodium, one SET NX by ioredis',
  redis: 'check, replay in Redis',
  http: 'check of an HTTP message signature, replay in memory',
  dpop: 'check of a DPoP proof, replay in memory',
  dpop_first: 'check of a DPoP proof with a new passport, replay in memory',
} as const;
type Subject = keyof typeof SUBJECTS;
const ALL = Object.keys(SUBJECTS) as readonly Subject[];

export const checkCost: Part = {
  name: 'check',
  title: `CPU of one check against floors, ${ROUNDS} rounds of ${SLICES} slices of ${REQUESTS_A_SLICE} requests`,
  run: () => inWorkspace((workspace) => measure(workspace, ALL)),
};

/** Its Node.js, its environment, and the collection of garbage that ends the start there. */
export const checkCostInImage: Part = {
  name: 'check-image',
  title: `the same, checks and floors with the image's Node.js 22 and its environment`,
  run: () =>
    inWorkspace((workspace) => {
      workspace.started(useImageNode());
      return measure(workspace, ['sodium', 'memory', 'sodium_set', 'redis']);
    }),
};

type Costs = ReadonlyMap<Subject, readonly Cost[]>;

async function measure(workspace: Workspace, subjects: readonly Subject[]): Promise<PartResult> {
  const site = await writeSite(workspace.directory, { routes: 10, keys: 100 }, FORMAT_ROUTES);
  const redis = workspace.started(await TestRedisServer.start('--maxmemory-policy', 'noeviction'));
  const starters = startersOf(workspace, site, redis.url);
  const costs = new Map<Subject, Cost[]>(subjects.map((subject) => [subject, []]));
  for (let round = 0; round < ROUNDS; round++) {
    const servers: [Subject, RunningServer][] = [];
    try {
      for (const subject of subjects) servers.push([subject, await starters[subject]()]);
      const measured = await measureRound(servers, site);
      for (const [subject, slices] of measured) costs.get(subject)?.push(...slices);
    } finally {
      for (const [, server] of servers) await server.stop();
    }
  }
  return report(costs);
}

function startersOf(
  { directory }: Workspace,
  site: BenchSite,
  redisUrl: string,
): { readonly [S in Subject]: () => Promise<RunningServer> } {
  const messageBytes = Buffer.from(signedTranscript(site).message, 'base64url').byteLength;
  const floor = (by: NonNullable<FloorJob['verify']>['by'], more: FloorJob = {}) =>
    startFloor({ verify: { by, messageBytes }, ...more });
  const verifier = (replay: string) =>
    startVerifier({ site, source: siteArguments(site), replay, workDirectory: directory });
  return {
    echo: () => startFloor({}),
    node: () => floor('node:crypto'),
    sodium: () => floor('libsodium'),
    memory: () => verifier('memory'),
    node_set: () => floor('node:crypto', { redisUrl }),
    sodium_set: () => floor('libsodium', { redisUrl }),
    redis: () => verifier(redisUrl),
    http: () => verifier('memory'),
    dpop: () => verifier('memory'),
    dpop_first: () => verifier('memory'),
  };
}

/** The cost of each in its slices; who goes first in one slice goes last in the next. */
async function measureRound(
  servers: readonly (readonly [Subject, RunningServer])[],
  site: BenchSite,
): Promise<Map<Subject, readonly Cost[]>> {
  for (const [subject, server] of servers) await costOf(server, requestsOf(subject, site, WARM_UP_REQUESTS));
  const slices = new Map<Subject, Cost[]>(servers.map(([subject]) => [subject, []]));
  for (let slice = 0; slice < SLICES; slice++) {
    for (const [subject, server] of slice % 2 === 0 ? servers : servers.toReversed()) {
      slices.get(subject)?.push(await costOf(server, requestsOf(subject, site, REQUESTS_A_SLICE)));
    }
  }
  return slices;
}

function requestsOf(subject: Subject, site: BenchSite, count: number): Buffer[] {
  return isOtherFormat(subject) ? requestsOfFormat(subject, site, count) : goodRequests(site, count);
}

function isOtherFormat(subject: Subject): subject is OtherFormat {
  return Object.hasOwn(MOST_RATIO_OF, subject);
}

function report(costs: Costs): PartResult {
  const values = (subject: Subject, value: (cost: Cost) => number) => (costs.get(subject) ?? []).map(value);
  const cpuUs = (subject: Subject) => values(subject, (cost) => cost.cpuUs);
  const comparisons = COMPARISONS.filter(({ base }) => costs.has(base));
  const figures = [...costs.keys()].flatMap((subject) => [
    figure(SUBJECTS[subject], 'µs CPU', cpuUs(subject)),
    figure(
      SUBJECTS[subject],
      'a second',
      values(subject, (cost) => cost.perSecond),
    ),
  ]);
  const bounds = comparisons.map(({ atMost, base, name, subject }) =>
    ratioBound(name, ratios(cpuUs(subject), cpuUs(base)), atMost),
  );
  return { figures, bounds };
}

interface Comparison {
  readonly name: string;
  readonly subject: Subject;
  readonly base: Subject;
  readonly atMost: number;
}

const COMPARISONS: readonly Comparison[] = [
  { name: 'memory over libsodium', subject: 'memory', base: 'sodium', atMost: MOST_RATIO },
  { name: 'memory over node:crypto', subject: 'memory', base: 'node', atMost: MOST_RATIO_TO_NODE_CRYPTO },
  { name: 'Redis over libsodium', subject: 'redis', base: 'sodium_set', atMost: MOST_RATIO },
  { name: 'Redis over node:crypto', subject: 'redis', base: 'node_set', atMost: MOST_RATIO_TO_NODE_CRYPTO },
  {
    name: 'HTTP message signature over transcript',
    subject: 'http',
    base: 'memory',
    atMost: MOST_RATIO_OF.http,
  },
  { name: 'DPoP over transcript', subject: 'dpop', base: 'memory', atMost: MOST_RATIO_OF.dpop },
  {
    name: 'first DPoP proof over transcript',
    subject: 'dpop_first',
    base: 'memory',
    atMost: MOST_RATIO_OF.dpop_first,
  },
];
