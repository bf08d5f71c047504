/**
 * HTTP Message Signatures and DPoP at the points that http-signatures.test.ts and dpop.test.ts leave out: each proxy that asks over
 * HTTP, and the middleware in each framework. The API sees no proof, no attack reaches it, and challenges reach the caller.
 */
import { beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import {
  type HeaderLine,
  headerValues,
  pairs,
  type WireClient,
  type WireRequest,
  type WireResponse,
} from '../../src/tools/conformance/wire/exchange.ts';
import { http1Client } from '../../src/tools/conformance/wire/http1.ts';
import { TestRedisServer } from '../support/harness/redis-server.ts';
import { byLane } from '../support/lane.ts';
import { KINDS, type Kind, startApp } from '../support/points/middleware-apps.ts';
import { openVerifier, untilReady, usualOptions } from '../support/points/open-middleware.ts';
import { startGuardedApi } from '../support/proxies/guarded-api.ts';
import type { ProxyKind } from '../support/proxies/proxy.ts';
import { AUTHORITY } from '../support/site/routes.ts';
import { AUTH_SITE } from '../support/site/site.ts';
import { useSite } from '../support/site/site-fixture.ts';
import { waitFor } from '../support/wait.ts';
import { attacksOf } from './dpop/dpop-attacks.ts';
import * as dpop from './dpop/dpop-requests.ts';
import { callWithLibrary } from './dpop/library-caller.ts';
import { describeProxies } from './forward-auth/proxies.ts';
import * as http from './http-signature-requests.ts';
import { startRecordedProxy } from './proxy/proxy-fixture.ts';

const fixture = useSite('suite');
let bundleDirectory = '';
let redis: TestRedisServer;
let requests: dpop.Requests;
/** Another point of the site. */
let elsewhere: WireClient;
beforeAll(async () => {
  requests = dpop.requestsOf(fixture.site);
  redis = await TestRedisServer.start('--maxmemory-policy', 'noeviction');
  fixture.stops.push(() => redis.stop());
  const moreRoutes = [http.READ, http.WRITE, dpop.READ, dpop.WRITE, dpop.EMPTY, dpop.NONCED, dpop.EITHER];
  bundleDirectory = await fixture.site.makeBundle({ moreRoutes });
  const options = { bundleDirectory, replay: redis.url, flags: ['--redis-timeout', '800ms'] };
  const { address, stop } = await startRecordedProxy(fixture.site, options);
  fixture.stops.push(stop);
  elsewhere = http1Client(address);
});

/** A request as the API receives it, or a handler sees it. */
interface Received {
  readonly target: string;
  /** Every view of the headers that the API has. */
  readonly views: readonly (readonly HeaderLine[])[];
  readonly body: Buffer;
}

interface Point {
  readonly clients: readonly WireClient[];
  /** Whether a body reaches the API. */
  readonly hasBodies: boolean;
  /** Whether the verifier gets fields with several members as they were sent. */
  readonly hasLists: boolean;
  /** Whether callers get the detail of a denial. */
  readonly showsDetail: boolean;
  /** Takes what has arrived since the last call. */
  received(): readonly Received[];
}

async function proxyPoint(kind: ProxyKind): Promise<Point> {
  const flags = ['--redis-timeout', '800ms'];
  const guarded = await startGuardedApi(kind, fixture.site, (listen) =>
    fixture.verifier({ bundleDirectory, replay: redis.url, flags: [...flags, ...listen] }),
  );
  fixture.stops.push(() => guarded.stop());
  return {
    clients: [guarded.proxy.http1, guarded.proxy.http2],
    hasBodies: kind.bodyMode === 'forwarded',
    hasLists: kind.profile !== 'envoy',
    showsDetail: kind.profile !== 'nginx',
    received: () => {
      const all = guarded.upstream.requests.map(({ body, headers, url }) => {
        return { target: url, views: [headers], body };
      });
      guarded.upstream.clear();
      return all;
    },
  };
}

async function appPoint(kind: Kind): Promise<Point> {
  const more = { replay: redis.url, redisTimeoutMs: 800 };
  const usual = await usualOptions(fixture.site, bundleDirectory);
  const { verifier } = await openVerifier({ ...usual, ...more });
  fixture.stops.push(() => verifier.close());
  const app = await startApp(kind, verifier);
  fixture.stops.push(() => app.close());
  await untilReady(verifier);
  return {
    clients: [http1Client(app.address)],
    hasBodies: true,
    hasLists: true,
    showsDetail: true,
    received: () =>
      app.handled.splice(0).map(({ body, distinct, headers, proof, raw, target }) => {
        const named: HeaderLine[] = [['x-proofgate-subject', proof.subject]];
        const linesOf = (view: object) => [
          ...named,
          ...Object.entries(view).map(([name, value]): HeaderLine => [name, String(value)]),
        ];
        const views = [linesOf(headers), linesOf(distinct), [...named, ...pairs(raw)]];
        return { target, views, body };
      }),
  };
}

const valuesOf = (lines: readonly HeaderLine[], ...names: readonly string[]) =>
  names.flatMap((name) => headerValues(lines, name));

const PROOF_NAMES = ['signature', 'signature-input', 'dpop'];

const ALGORITHMS = 'algs="ES256 Ed25519 EdDSA"';
/** Proxies refuse some attacks by themselves: another host, a body; Traefik an empty one over HTTP/2. */
const OWN_REFUSAL = /^(?:400|404|413|421|500) /;

function expectDenied(
  what: string,
  [request, response]: readonly [WireRequest, WireResponse],
  { showsDetail }: Point,
  usual: string,
): void {
  // The middleware serves one host.
  const answer = request.authority === AUTHORITY ? usual : '403 bundle_route_missing/origin';
  const { headers, status } = response;
  const [reason] = valuesOf(headers, 'x-proofgate-reason');
  const shown = showsDetail && reason !== undefined ? dpop.answerText(response) : `${status} ${reason}`;
  const expected = showsDetail ? answer : answer.split('/')[0];
  expect([what, shown]).toEqual([what, reason === undefined ? expect.stringMatching(OWN_REFUSAL) : expected]);
}

function suite(start: () => Promise<Point>): void {
  let point: Point;
  const send = (request: WireRequest, index = 0) => {
    const client = point.clients[index % point.clients.length];
    if (client === undefined) throw new Error('a point has clients');
    return client.send(request);
  };
  beforeAll(async () => {
    point = await start();
    await waitFor('an allowed request', async () => {
      const { headers, status } = await send(requests.dpopRequest());
      if (status !== 200) throw new Error(`${status} ${valuesOf(headers, 'x-proofgate-reason')}`);
      return true;
    });
  });

  async function expectAllowed(request: WireRequest, index: number): Promise<Received> {
    const { status } = await send(request, index);
    const [received, ...more] = point.received();
    expect([status, more]).toEqual([200, []]);
    if (received === undefined) throw new Error('nothing was received');
    for (const view of received.views)
      expect(valuesOf(view, 'x-proofgate-subject')).toEqual(['client:billing']);
    expect(received).toMatchObject({ target: request.target, body: request.body ?? Buffer.alloc(0) });
    return received;
  }

  beforeEach(() => void point.received());

  it('hands on what was signed, without the proof', async () => {
    const plans = [http.READ_PLAN, { ...http.READ_PLAN, target: '/v1/either/1' }, http.WRITE_PLAN];
    const write = { method: 'POST', target: '/v1/dpop?dry=1', body: Buffer.from('{}') };
    const proofs: readonly dpop.Plan[] = [{}, dpop.EITHER_TARGET, write];
    for (const index of point.clients.keys()) {
      const signed: readonly dpop.Sent[] = [
        ...(await Promise.all(plans.map((plan) => http.sign(fixture.site, plan)))),
        ...proofs.map((plan) => requests.dpopRequest(plan)),
      ];
      for (const request of signed.filter(({ body }) => body === undefined || point.hasBodies)) {
        const spelled = request.headers.map(
          ([name, value]): HeaderLine => [
            point.clients[index]?.protocol === 'HTTP/1.1' ? name.toUpperCase() : name,
            value,
          ],
        );
        const { views } = await expectAllowed({ ...request, headers: spelled }, index);
        for (const view of views) expect(valuesOf(view, 'authorization', ...PROOF_NAMES)).toEqual([]);
      }
    }
  });

  it('hands on signatures of others, beside ours and beside a transcript', async () => {
    const others = { 'signature-input': 'cdn=("@authority");created=1', signature: 'cdn=:AAAA:' };
    for (const index of point.clients.keys()) {
      const signed = await http.sign(fixture.site, http.READ_PLAN);
      const both = Object.entries(others).reduce(
        (request, [name, member]) => http.withHeader(request, name, (value) => `${member}, ${value}`),
        signed,
      );
      const transcript = requests.transcriptRequest();
      const beside = { ...transcript, headers: [...transcript.headers, ...Object.entries(others)] };
      if (!point.hasLists) expect((await send(both, index)).status).toBe(401);
      for (const request of point.hasLists ? [both, beside] : [beside]) {
        const { views } = await expectAllowed(request, index);
        for (const view of views)
          expect([...valuesOf(view, 'signature-input'), ...valuesOf(view, 'signature')]).toEqual(
            Object.values(others),
          );
      }
    }
  });

  it('lets a proof pass once at all points with one store', async () => {
    const proofs = [await http.sign(fixture.site, http.READ_PLAN), requests.dpopRequest()];
    for (const [index, request] of proofs.entries()) {
      const statuses = [
        await send(request, index),
        await send(request, index + 1),
        await elsewhere.send(request),
      ];
      expect(statuses.map(({ status }) => status)).toEqual([200, 403, 403]);
    }
  });

  it('tells callers what a proof must have', async () => {
    const challenges = ['www-authenticate', 'accept-signature', 'dpop-nonce'];
    const challengesOf = async (request: WireRequest, index: number) => {
      const { headers, status } = await send(request, index);
      return [status, ...challenges.map((name) => headerValues(headers, name))];
    };
    for (const index of point.clients.keys()) {
      const bare = { method: 'GET', authority: AUTHORITY, ...dpop.EITHER_TARGET };
      expect(await challengesOf(bare, index)).toEqual([
        401,
        [`Passport, DPoP ${ALGORITHMS}`],
        [`sig=("@method" "@target-uri");created;expires;nonce;keyid;tag="proofgate/${AUTH_SITE}"`],
        [],
      ]);
      const nonced = { target: '/v1/nonced/4711' };
      expect(await challengesOf(requests.dpopRequest(nonced), index)).toEqual([
        401,
        [`DPoP error="use_dpop_nonce", ${ALGORITHMS}`],
        [],
        [expect.stringMatching(/^[\w-]{30}$/)],
      ]);
    }
    const [client] = point.clients;
    if (client === undefined) throw new Error('a point has clients');
    expect(await callWithLibrary(requests, client, 'ES256', '/v1/nonced/4711')).toBe(200);
  });

  it('denies every change of a signed request', async () => {
    for (const index of point.clients.keys()) {
      for (const [what, change, answer] of http.ATTACKS) {
        const request = change(await http.sign(fixture.site, http.WRITE_PLAN));
        expectDenied(what, [request, await send(request, index)], point, answer);
      }
    }
    expect(point.received()).toEqual([]);
  });

  it('denies every attack on a DPoP proof', async () => {
    for (const index of point.clients.keys()) {
      for (const [what, make, answer] of attacksOf(fixture.site, requests)) {
        const request = await make();
        // Of such a request nginx drops the body, or answers 413 itself (decisions.test.ts).
        if ('body' in request && !point.hasBodies) continue;
        expectDenied(what, [request, await send(request, index)], point, answer);
      }
    }
    expect(point.received()).toEqual([]);
  });
}

const APPS = byLane<readonly Kind[]>({ fast: KINDS, extended: [] });
for (const kind of APPS) describe(`in ${kind}`, () => suite(() => appPoint(kind)));
describeProxies('standard proofs', (kind) => suite(() => proxyPoint(kind)));
