/**
 * Measures the most expensive requests that a caller without credentials can send through Envoy, and scrapes of `/metrics`,
 * each in turns with valid requests: the cost to the deciding thread of one such request as a multiple of an allowed one.
 */
import { cpuUsOf, keepOnCore, keepThisOnCore, MEASURED_CORE, OTHERS_CORE } from '../machine.ts';
import { type Figure, figure, type Part, type PartResult } from '../report.ts';
import { median } from '../statistics.ts';
import { ratios } from './cost-in-turns.ts';
import { costOf, type GrpcTarget } from './load.ts';
import { encodeRequest, fieldsOf, goodPlan, goodRequests, type HttpFields } from './requests.ts';
import { refusing, startSiteVerifier } from './servers.ts';
import { type BenchSite, writeSite } from './site.ts';
import { inWorkspace, type Workspace } from './workspace.ts';

const WARM_UP_REQUESTS = 5_000;
const GOOD_REQUESTS = 1_000;
const SCRAPES = 100;
const ROUNDS = 5;
/** As much as Envoy buffers with the shipped configuration. */
const BODY = Buffer.alloc(1_048_576, 'b');

interface Flood {
  readonly expected: readonly string[];
  readonly count: number;
  readonly request: (site: BenchSite) => HttpFields;
}

function without(credentials: boolean, site: BenchSite, path?: string): HttpFields {
  const good = goodPlan(site, 1);
  const headers = credentials ? {} : { authorization: () => undefined };
  return fieldsOf({ ...good, headers, ...(path && { sentPath: path }) });
}

function withBody({ lines, path }: HttpFields): HttpFields {
  return { path, lines: [...lines, ['x-envoy-auth-partial-body', 'false']], body: BODY };
}

function withLines({ lines, path }: HttpFields, count: number): HttpFields {
  const more = Array.from({ length: count }, (_, at) => [`x-extra-${at}`, 'value'] as const);
  return { path, lines: [...more, ...lines] };
}

const MISSING = ['invalid_request_proof', 'authorization_missing'];

const FLOODS: { readonly [name: string]: Flood } = {
  'no credentials': { expected: MISSING, count: GOOD_REQUESTS, request: (site) => without(false, site) },
  'no credentials, a body of 1 MiB': {
    expected: MISSING,
    count: 100,
    request: (site) => withBody(without(false, site)),
  },
  'no route, a body of 1 MiB': {
    expected: ['bundle_route_missing', 'no_match'],
    count: 100,
    request: (site) => withBody(without(true, site, '/nowhere')),
  },
  'no credentials, 100 more header lines': {
    expected: MISSING,
    count: GOOD_REQUESTS,
    request: (site) => withLines(without(false, site), 100),
  },
  'no credentials, 900 more header lines': {
    expected: MISSING,
    count: 500,
    request: (site) => withLines(without(false, site), 900),
  },
  'a Check of 5 MiB': {
    expected: ['bundle_route_missing', 'path_not_canonical'],
    count: 100,
    request: (site) => ({ ...without(true, site), body: Buffer.alloc(5 * BODY.byteLength) }),
  },
  'no credentials, 9,000 more header lines': {
    expected: ['bundle_route_missing', 'path_not_canonical'],
    count: 500,
    request: (site) => withLines(without(false, site), 9_000),
  },
};

export const hostileInput: Part = {
  name: 'hostile',
  title: `CPU of the dearest requests without credentials, and of scrapes, ${ROUNDS} rounds in turns with good requests`,
  run: () => inWorkspace(measure),
};

async function measure(workspace: Workspace): Promise<PartResult> {
  const site = await writeSite(workspace.directory, { routes: 10, keys: 100 }, []);
  const verifier = await startSiteVerifier(workspace, site);
  keepOnCore(verifier.pid, MEASURED_CORE);
  workspace.started(keepThisOnCore(OTHERS_CORE));
  await costOf(verifier, goodRequests(site, WARM_UP_REQUESTS));
  const figures: Figure[] = [];
  for (const [name, { count, expected, request }] of Object.entries(FLOODS)) {
    const one = encodeRequest(request(site));
    const floodUs: number[] = [];
    const goodUs: number[] = [];
    for (let round = 0; round < ROUNDS; round += 1) {
      goodUs.push((await costOf(verifier, goodRequests(site, GOOD_REQUESTS))).cpuUs);
      floodUs.push((await costOf(refusing(verifier, expected), Array(count).fill(one))).cpuUs);
    }
    const ratio = median(ratios(floodUs, goodUs));
    figures.push(figure(name, 'µs CPU', floodUs), figure(`${name}, over a good request`, 'x', [ratio]));
  }
  return { figures: [...figures, ...(await scrapes(verifier, site))], bounds: [] };
}

async function scrapes(verifier: GrpcTarget & { readonly adminUrl: string }, site: BenchSite) {
  const kinds = [
    { name: 'a scrape of /metrics, one after the other', headers: {} },
    { name: 'the same, each a new rendering', headers: { 'cache-control': 'no-cache' } },
  ];
  const figures: Figure[] = [];
  for (const { headers, name } of kinds) {
    const scrapesUs: number[] = [];
    const goodUs: number[] = [];
    for (let round = 0; round < ROUNDS; round += 1) {
      goodUs.push((await costOf(verifier, goodRequests(site, GOOD_REQUESTS))).cpuUs);
      const startUs = cpuUsOf(verifier.pid);
      for (let scrape = 0; scrape < SCRAPES; scrape += 1) {
        await (await fetch(`${verifier.adminUrl}/metrics`, { headers })).text();
      }
      scrapesUs.push((cpuUsOf(verifier.pid) - startUs) / SCRAPES);
    }
    figures.push(
      figure(name, 'µs CPU', scrapesUs),
      figure(`${name}, over a good request`, 'x', [median(ratios(scrapesUs, goodUs))]),
    );
  }
  return figures;
}
