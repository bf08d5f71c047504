/** Requests to a route with `passport_header`, and the resulting `Authorization` of the application. */
import { expect } from '@jest/globals';
import {
  headerValues,
  type WireRequest,
  type WireResponse,
} from '../../../src/tools/conformance/wire/exchange.ts';
import type { UpstreamRequest } from '../harness/upstream.ts';
import { derivedKeyCaller } from './callers.ts';
import { ROUTES, type SiteRoute } from './routes.ts';
import { type SignedRequest, sign, withHeader, withMoreHeaders } from './signed-request.ts';
import type { Site } from './site.ts';

interface OwnHeaderCase {
  readonly name: string;
  readonly route?: SiteRoute;
  readonly make: (signed: SignedRequest) => WireRequest;
  /** `Authorization` at the upstream, or the detail of the denial. */
  readonly expected: readonly string[] | string;
}

const AUTHORIZATION = 'authorization';
const PASSPORT = 'x-proofgate-passport';
const beside =
  (...values: readonly string[]) =>
  ({ request }: SignedRequest) =>
    withMoreHeaders(
      request,
      values.map((value) => [AUTHORIZATION, value] as const),
    );

export const OWN_HEADER_CASES: readonly OwnHeaderCase[] = [
  { name: 'a bearer token', make: beside('Bearer 1'), expected: ['Bearer 1'] },
  { name: 'commas', make: beside('Digest a="b", c="d"'), expected: ['Digest a="b", c="d"'] },
  { name: 'nothing', make: beside(), expected: [] },
  {
    name: 'the passport, too',
    make: ({ passport, request }) => withMoreHeaders(request, [[AUTHORIZATION, `Passport ${passport}`]]),
    expected: 'passport_repeated',
  },
  { name: 'a passport in a list', make: beside('Bearer 1, pASSPORT x'), expected: 'passport_repeated' },
  {
    name: 'a passport on a second line',
    make: beside('Bearer 1', 'Passport x'),
    expected: 'passport_repeated',
  },
  {
    name: 'the passport instead',
    make: ({ passport, request }) =>
      withMoreHeaders(withHeader(request, PASSPORT), [[AUTHORIZATION, `Passport ${passport}`]]),
    expected: 'authorization_missing',
  },
  {
    name: 'a second passport beside its own',
    make: ({ request }) => withMoreHeaders(request, [[PASSPORT, 'x']]),
    expected: 'passport_malformed',
  },
  {
    name: 'on another route, a passport header from outside',
    route: ROUTES.readOrder,
    make: ({ request }) => withMoreHeaders(request, [[PASSPORT, 'x']]),
    expected: [],
  },
];

/** @param send sends the request, and gives the answer and what arrived at the upstream */
export async function expectOwnHeader(
  site: Site,
  { expected, make, route = ROUTES.bearer }: OwnHeaderCase,
  send: (
    request: WireRequest,
  ) => Promise<{ readonly response: WireResponse; readonly arrived: readonly UpstreamRequest[] }>,
): Promise<void> {
  const { arrived, response } = await send(make(sign(site, { caller: derivedKeyCaller(site), route })));
  if (typeof expected === 'string') {
    // nginx itself refuses two lines of Authorization, and passes no detail on.
    expect(arrived).toEqual([]);
    expect([400, 401]).toContain(response.status);
    const detail = /"detail":"(\w+)"/.exec(response.body.toString())?.[1];
    expect([undefined, expected]).toContain(detail);
    return;
  }
  const headers = arrived[0]?.headers ?? [];
  expect([response.status, arrived.length]).toEqual([200, 1]);
  expect(headerValues(headers, AUTHORIZATION)).toEqual(expected);
  expect(headerValues(headers, PASSPORT)).toEqual([]);
}
