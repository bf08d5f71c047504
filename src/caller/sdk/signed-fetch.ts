/** Signs requests of `fetch`, and follows redirects itself, because each request needs its own headers. */
import type { ClockCheck } from './clock-check.ts';
import { denialOf, noteSent } from './denial.ts';
import { type FollowPolicy, refuseOtherOrigin } from './follow-policy.ts';
import { headerLinesOf, isOfSigner } from './header-lines.ts';
import type { PreparedRequest, ReadAnswer, SignPrepared } from './prepared-request.ts';
import { signingRepetitions } from './repeated-dispatch.ts';
import { bytesOf, isAbsent, nonceForGoneBody } from './signable-body.ts';

/** `fetch`, as a `Signer` has it. */
export type FetchLike = (input: string | URL | Request, init?: RequestInit) => Promise<Response>;

export interface FetchParts {
  readonly sign: SignPrepared;
  readonly readAnswer: ReadAnswer;
  readonly clock: ClockCheck;
  readonly throwOnDenial: boolean;
  readonly follow: FollowPolicy;
}

/** The limit of `fetch` (Fetch standard, "HTTP-redirect fetch"). */
const MAX_REDIRECTS = 20;
const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);

interface Hop {
  readonly method: string;
  readonly url: URL;
  readonly headers: Headers;
  readonly body: PreparedRequest['body'];
}

export async function signedFetch(
  input: string | URL | Request,
  init: RequestInit | undefined,
  parts: FetchParts,
): Promise<Response> {
  const request = new Request(input, init);
  let hop: Hop = {
    method: request.method,
    url: withoutFragment(new URL(request.url)),
    headers: withoutSigner(request.headers),
    body: await bodyOf(request, init),
  };
  for (let redirects = 0; ; redirects++) {
    const response = await sendOnceMoreForNonce(hop, request, init, parts);
    const location = REDIRECTS.has(response.status) ? response.headers.get('location') : null;
    if (request.redirect !== 'follow' || location === null) return throwIfDenied(response, parts);
    if (redirects === MAX_REDIRECTS)
      throw new TypeError('fetch failed', { cause: new Error('too many redirects') });
    await response.body?.cancel();
    const next = nextHop(hop, response.status, location);
    refuseOtherOrigin(hop.url.origin, next.url.origin, parts.follow);
    hop = next;
  }
}

async function throwIfDenied(response: Response, { throwOnDenial }: FetchParts): Promise<Response> {
  const denial = throwOnDenial ? await denialOf(response) : undefined;
  if (denial !== undefined) throw denial;
  return response;
}

/** The bytes, or `stream` for a body that can be read only once. */
async function bodyOf(request: Request, init: RequestInit | undefined): Promise<PreparedRequest['body']> {
  if (request.body === null) return undefined;
  const given: unknown = init?.body;
  // `Request` chose the boundary of a form, and the body of a given `Request` may be of any kind, so both are read
  // here, once.
  const mustReadHere = isAbsent(given) || given instanceof FormData;
  if (mustReadHere) return new Uint8Array(await request.arrayBuffer());
  return (await bytesOf(given)) ?? 'stream';
}

/** @throws SignerError `body_not_replayable` */
async function sendOnceMoreForNonce(
  hop: Hop,
  request: Request,
  init: RequestInit | undefined,
  parts: FetchParts,
): Promise<Response> {
  const response = await send(hop, request, init, parts);
  if (!asksForNonce(hop, response, parts)) return response;
  await response.body?.cancel();
  if (hop.body === 'stream') throw nonceForGoneBody();
  const second = await send(hop, request, init, parts);
  asksForNonce(hop, second, parts);
  return second;
}

function asksForNonce({ url }: Hop, { headers, status }: Response, { readAnswer }: FetchParts): boolean {
  return readAnswer(url.href, status, headerLinesOf(headers));
}

async function send(
  { body, headers: ownHeaders, method, url }: Hop,
  request: Request,
  init: RequestInit | undefined,
  { clock, sign }: FetchParts,
): Promise<Response> {
  const headers = new Headers(ownHeaders);
  const signAttempt = () => sign({ method, url: url.href, headers: headerLinesOf(ownHeaders), body });
  for (const [name, value] of Object.entries(await signAttempt())) headers.set(name, value);
  const redirect = request.redirect === 'follow' ? 'manual' : request.redirect;
  const sentMs = Date.now();
  const response = await fetch(url, {
    ...init,
    ...signingRepetitions(init, signAttempt),
    method,
    headers,
    redirect,
    signal: request.signal,
    // With credentials, Node.js 24.14 and 24.15 turn a 401 into a network error, because they cannot send the body again.
    ...(body === 'stream' ? { credentials: 'omit' } : { body: body ?? null }),
  });
  clock.check(response.headers.get('date'), sentMs);
  noteSent(response, sentMs);
  return response;
}

/** @throws TypeError as `fetch` does */
function nextHop(hop: Hop, status: number, location: string): Hop {
  const url = withoutFragment(new URL(location, hop.url));
  if (url.protocol !== 'https:' && url.protocol !== 'http:') {
    throw new TypeError('fetch failed', { cause: new Error('a redirect to another scheme than HTTP') });
  }
  const headers = new Headers(hop.headers);
  if (url.origin !== hop.url.origin) for (const name of ORIGIN_HEADERS) headers.delete(name);
  const becomesGet =
    status === 303 ? hop.method !== 'HEAD' && hop.method !== 'GET' : status < 303 && hop.method === 'POST';
  if (!becomesGet) {
    if (hop.body !== 'stream') return { ...hop, url, headers };
    throw new TypeError('fetch failed', {
      cause: new Error('a redirect of a body that can be read only once'),
    });
  }
  for (const name of BODY_HEADERS) headers.delete(name);
  return { method: 'GET', url, headers, body: undefined };
}

const ORIGIN_HEADERS = ['authorization', 'proxy-authorization', 'cookie', 'host'];
const BODY_HEADERS = [
  'content-encoding',
  'content-language',
  'content-location',
  'content-type',
  'content-length',
];

function withoutSigner(headers: Headers): Headers {
  return new Headers([...headers].filter(([name, value]) => !isOfSigner(name, value)));
}

/** Removes the fragment, which is never sent. */
function withoutFragment(url: URL): URL {
  url.hash = '';
  return url;
}
