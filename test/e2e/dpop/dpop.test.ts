/**
 * DPoP (RFC 9449) through a real Envoy and the reverse proxy, with a real Redis: our passports, and openid-client as a caller's
 * library. No attack reaches the upstream. standard-proofs.test.ts has the other points.
 */
import { beforeAll, describe, expect, it } from '@jest/globals';
import { newJti } from '../../../src/protocol/signing.ts';
import { headerValues, type WireRequest } from '../../../src/tools/conformance/wire/exchange.ts';
import { http1Client } from '../../../src/tools/conformance/wire/http1.ts';
import { http2Client } from '../../../src/tools/conformance/wire/http2.ts';
import { envoyVersions } from '../../support/harness/envoy.ts';
import { TestRedisServer } from '../../support/harness/redis-server.ts';
import { attestedCaller, derivedKeyCaller } from '../../support/site/callers.ts';
import { type Gateway, PROTOCOLS, type Protocol } from '../../support/site/gateway.ts';
import { AUTHORITY } from '../../support/site/routes.ts';
import { sign as signTranscript } from '../../support/site/signed-request.ts';
import { useSite } from '../../support/site/site-fixture.ts';
import { waitFor } from '../../support/wait.ts';
import { startRecordedProxy } from '../proxy/proxy-fixture.ts';
import { attacksOf } from './dpop-attacks.ts';
import {
  answerOf,
  changed,
  EITHER,
  EITHER_TARGET,
  EMPTY,
  otherSpelling,
  type Plan,
  READ,
  type Requests,
  requestsOf,
  type Sent,
  WRITE,
  withLine,
} from './dpop-requests.ts';
import { callWithLibrary } from './library-caller.ts';

const fixture = useSite('suite');
let bundleDirectory = '';
let redis: TestRedisServer;
let requests: Requests;
beforeAll(async () => {
  requests = requestsOf(fixture.site);
  redis = await TestRedisServer.start('--maxmemory-policy', 'noeviction');
  fixture.stops.push(() => redis.stop());
  bundleDirectory = await fixture.site.makeBundle({ moreRoutes: [READ, WRITE, EMPTY, EITHER] });
});

const PROXY = 'the reverse proxy';

/** A point with its upstream. */
type Point = Pick<Gateway, 'client' | 'upstream' | 'verifier'>;

async function startPoint(name: string): Promise<Point> {
  const options = { bundleDirectory, replay: redis.url, flags: ['--redis-timeout', '800ms'] };
  if (name !== PROXY) return fixture.gateway(name, await fixture.verifier(options));
  const { address, process, stop, upstream } = await startRecordedProxy(fixture.site, options);
  fixture.stops.push(stop);
  const client = (protocol: Protocol) =>
    protocol === 'HTTP/1.1' ? http1Client(address) : http2Client(address);
  return { client, upstream, verifier: process };
}

async function startUsual(name: string): Promise<Point> {
  const point = await startPoint(name);
  // A replay store that has just started refuses proofs of its past.
  await waitFor('an allowed request', async () => {
    const { status } = await point.client('HTTP/1.1').send(requests.dpopRequest());
    return status === 200 || undefined;
  });
  return point;
}

describe.each([...envoyVersions, PROXY])('%s', (name) => {
  let point: Point;
  beforeAll(async () => {
    point = await startUsual(name);
  });

  describe.each(PROTOCOLS)('%s', (protocol) => {
    it('forwards without token and proof', async () => {
      const write = { method: 'POST', target: '/v1/dpop?dry=1', body: Buffer.from('{}') };
      const p256 = { caller: derivedKeyCaller(fixture.site, 'dk_billing_p256') };
      const plans = [{}, EITHER_TARGET, { caller: attestedCaller(fixture.site) }, p256, write];
      for (const plan of plans as readonly Plan[]) {
        point.upstream.clear();
        const request = withLine(requests.dpopRequest(plan), 'x-proofgate-proof', 'transcript-v1');
        expect(await answerOf(point.client(protocol), request)).toBe('200');
        const [received] = point.upstream.requests;
        expect(received).toMatchObject({ url: request.target, body: plan.body ?? Buffer.alloc(0) });
        const valuesOf = (line: string) => headerValues(received?.headers ?? [], line);
        expect([valuesOf('authorization'), valuesOf('dpop')]).toEqual([[], []]);
        expect(valuesOf('x-proofgate-proof')).toEqual(['dpop']);
      }
    });

    it('says transcript-v1 of a transcript with the same passport', async () => {
      point.upstream.clear();
      const { passport, request } = signTranscript(fixture.site, {
        caller: requests.billing(),
        route: EITHER,
      });
      const clients = [requests.dpopRequest({ ...EITHER_TARGET, token: passport }), request];
      for (const sent of clients) expect(await answerOf(point.client(protocol), sent)).toBe('200');
      const formats = point.upstream.requests.flatMap(({ headers }) =>
        headerValues(headers, 'x-proofgate-proof'),
      );
      expect(formats).toEqual(['dpop', 'transcript-v1']);
    });

    it('denies every attack', async () => {
      point.upstream.clear();
      for (const [what, make, answer] of attacksOf(fixture.site, requests)) {
        expect([what, await answerOf(point.client(protocol), await make())]).toEqual([what, answer]);
      }
      expect(point.upstream.requests).toEqual([]);
    });
  });

  it('lets each proof pass once, over either protocol', async () => {
    const request = requests.dpopRequest();
    const answers = [];
    for (const protocol of PROTOCOLS) answers.push(await answerOf(point.client(protocol), request));
    expect(answers).toEqual(['200', '403 jti_replay']);
  });

  it('lets a key use one jti once, whatever the format and however ES256 spells the signature', async () => {
    const client = point.client('HTTP/1.1');
    const jti = newJti();
    expect(
      await answerOf(client, requests.dpopRequest({ ...EITHER_TARGET, proof: { claims: { jti } } })),
    ).toBe('200');
    const signed = await requests.httpSignature(jti);
    const http: Sent = { method: 'GET', target: EITHER_TARGET.target, authority: AUTHORITY, headers: signed };
    expect(await answerOf(client, http)).toBe('403 jti_replay');
    const p256 = requests.dpopRequest({ caller: derivedKeyCaller(fixture.site, 'dk_billing_p256') });
    expect(await answerOf(client, p256)).toBe('200');
    expect(await answerOf(client, changed(p256, 'dpop', otherSpelling))).toBe('403 jti_replay');
  });

  it('allows one of many copies at once', async () => {
    const request = requests.dpopRequest();
    const clients = Array.from({ length: 20 }, (_, index) =>
      point.client(PROTOCOLS[index % 2] ?? 'HTTP/1.1'),
    );
    const answers = await Promise.all(clients.map((client) => answerOf(client, request)));
    expect(answers.filter((answer) => answer === '200')).toHaveLength(1);
    expect(new Set(answers)).toEqual(new Set(['200', '403 jti_replay']));
  });

  it('challenges in the format of RFC 9449', async () => {
    const challengeOf = async (request: WireRequest) => {
      const { headers, status } = await point.client('HTTP/1.1').send(request);
      return [status, ...headerValues(headers, 'www-authenticate')];
    };
    const algs = 'algs="ES256 Ed25519 EdDSA"';
    const bare: WireRequest = { method: 'GET', target: '/v1/dpop/4711', authority: AUTHORITY };
    expect(await challengeOf(bare)).toEqual([401, `DPoP ${algs}`]);
    expect(await challengeOf({ ...bare, ...EITHER_TARGET })).toEqual([401, `Passport, DPoP ${algs}`]);
    const wrong = requests.dpopRequest({ proof: { key: fixture.site.derivedKeys.dk_plain } });
    expect(await challengeOf(wrong)).toEqual([401, `DPoP error="invalid_dpop_proof", ${algs}`]);
  });

  it('accepts the proofs of openid-client', async () => {
    for (const algorithm of ['Ed25519', 'ES256'] as const) {
      expect(await callWithLibrary(requests, point.client('HTTP/1.1'), algorithm)).toBe(200);
    }
  });

  it('counts and records the format', async () => {
    const events = await point.verifier.auditEvents();
    const allowed = events.filter(
      ({ outcome, proof_format }) => outcome === 'allowed' && proof_format === 'dpop',
    );
    expect(allowed[0]).toMatchObject({ key_id: 'dk_billing', dpop_proof_sha256: expect.any(String) });
    const { text } = await point.verifier.probe('/metrics');
    expect(text).toContain(`proofgate_accepted_proofs_total{format="dpop"} ${allowed.length}`);
  });
});
