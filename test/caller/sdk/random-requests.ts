/** Makes random requests to sign, the same for the same seed. Most can be signed; some cannot, each for one reason. */
import { newRandom, type Random } from '../../support/bundle/byte-corruptions.ts';
import type { SdkJob } from './jobs.ts';

export interface CorpusRoute {
  readonly method: string;
  readonly path_template: string;
  readonly signed_headers: readonly string[];
}

export interface CorpusPlan {
  readonly seed: number;
  readonly count: number;
  readonly routes: readonly CorpusRoute[];
  readonly origins: readonly string[];
  /** Of the first request; the clock advances while the requests are made. */
  readonly nowSeconds: number;
}

/** Requests between two steps of the clock, each of which makes new passports. */
const BLOCK = 500;
/** More than the time for which a passport is reused. */
const STEP_SECONDS = 201;
/** Each block begins with a request to every route, so that all signers make its passports at the same requests. */
const UNSIGNABLE_SHARE = 0.05;

export function* randomRequests(plan: CorpusPlan): Generator<SdkJob> {
  const random = newRandom(plan.seed);
  // Of these, a request without its headers cannot be signed.
  const withHeaders = plan.routes.filter(({ signed_headers }) => signed_headers.length > 0);
  let faults = 0;
  for (let id = 0; id < plan.count; id++) {
    const place = id % BLOCK;
    const first = plan.routes[place];
    const isFaulty = first === undefined && random.int(1000) < UNSIGNABLE_SHARE * 1000;
    const route = first ?? random.pick(isFaulty ? withHeaders : plan.routes);
    const now = plan.nowSeconds + Math.floor(id / BLOCK) * STEP_SECONDS + (first === undefined ? 1 : 0);
    const job = signableRequest(random, plan, route);
    const fault = isFaulty ? (FAULTS[faults++ % FAULTS.length] ?? same) : same;
    yield { ...fault(job), id, now, jti: random.bytes(16).toString('base64url') };
  }
}

type RequestParts = Omit<SdkJob, 'id' | 'now' | 'jti'>;
type Fault = (request: RequestParts) => RequestParts;

const same: Fault = (request) => request;
const FAULTS: readonly Fault[] = [
  (request) => ({ ...request, url: request.url.replace(/^(https?:\/\/[^/]+)/i, 'https://evil.example') }),
  (request) => ({ ...request, url: `${request.url.split('?')[0]}/../x` }),
  (request) => ({ ...request, url: `${request.url}#part` }),
  (request) => ({ ...request, url: request.url.replace('://', '://user@') }),
  (request) => ({ ...request, method: 'PROPFIND' }),
  (request) => ({ ...request, method: 'G T' }),
  (request) => ({ ...request, headers: [] }),
  (request) => ({ ...request, headers: [...request.headers, ...request.headers] }),
  (request) => ({ ...request, headers: request.headers.map(([name]) => [name, '\u00e9'] as const) }),
];

function signableRequest(random: Random, { origins }: CorpusPlan, route: CorpusRoute): RequestParts {
  const path = route.path_template
    .split('/')
    .map((segment) => segmentFor(random, segment))
    .join('/');
  const query = random.int(2) === 0 ? '' : `?${text(random, QUERY, random.int(60))}`;
  return {
    method: route.method,
    url: `${spelled(random, random.pick(origins))}${path}${query}`,
    headers: headersFor(random, route),
    body_base64: random.int(3) === 0 ? null : random.bytes(size(random)).toString('base64'),
  };
}

/** Characters and escapes that a canonical path may have. */
const PATH = [
  ..."abcXYZ019-._~!$&'()*+,=:@",
  '%20',
  '%22',
  '%C3%A9',
  '%e2%82%ac',
  '%F0%9F%98%80',
  '%7B',
  '%3B',
];
const QUERY = Array.from({ length: 0x7e - 0x20 }, (_, i) => String.fromCharCode(0x21 + i)).filter(
  (character) => character !== '#',
);
const VALUE = [' ', ',', ...QUERY];

function segmentFor(random: Random, segment: string): string {
  if (!segment.startsWith('{')) return segment;
  const count = segment.endsWith('*}') ? 1 + random.int(4) : 1;
  // The "x" keeps it from being a dot segment, or a literal of the site.
  return Array.from({ length: count }, () => `x${text(random, PATH, random.int(12))}`).join('/');
}

/** The origin in another case, or with its default port. */
function spelled(random: Random, origin: string): string {
  const [scheme = '', authority = ''] = origin.split('://');
  const port = scheme === 'https' ? ':443' : ':80';
  switch (random.int(4)) {
    case 0:
      return origin.toUpperCase();
    case 1:
      return /:\d+$/.test(authority) ? origin : `${origin}${port}`;
    default:
      return origin;
  }
}

function headersFor(random: Random, { signed_headers }: CorpusRoute): SdkJob['headers'] {
  const others = Array.from({ length: random.int(4) }, (_, i) => `X-Other-${i}`);
  return [...signed_headers, ...others].map((name) => {
    const spelling = random.int(2) === 0 ? name.toUpperCase() : name;
    const spaces = text(random, [' ', '\t'], random.int(3));
    return [spelling, `${spaces}v${text(random, VALUE, random.int(40))}v${spaces}`] as const;
  });
}

function text(random: Random, alphabet: readonly string[], length: number): string {
  return Array.from({ length }, () => random.pick(alphabet)).join('');
}

/** Of a body: often empty or small, sometimes large. */
function size(random: Random): number {
  return random.pick([0, 1, random.int(64), random.int(2048), random.int(32) === 0 ? 40_000 : 16]);
}
