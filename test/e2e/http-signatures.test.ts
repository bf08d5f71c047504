/**
 * HTTP Message Signatures through a real Envoy and the reverse proxy: a derived key, and the npm package
 * http-message-signatures at the caller. No changed request reaches the upstream. standard-proofs.test.ts has the other points.
 */
import { beforeAll, describe, expect, it } from '@jest/globals';
import { headerValues } from '../../src/tools/conformance/wire/exchange.ts';
import { http1Client } from '../../src/tools/conformance/wire/http1.ts';
import { http2Client } from '../../src/tools/conformance/wire/http2.ts';
import { envoyVersions } from '../support/harness/envoy.ts';
import { type Gateway, PROTOCOLS, type Protocol } from '../support/site/gateway.ts';
import { AUTH_SITE } from '../support/site/site.ts';
import { useSite } from '../support/site/site-fixture.ts';
import { waitFor } from '../support/wait.ts';
import {
  ATTACKS,
  answerOf,
  EITHER,
  READ,
  READ_PLAN,
  sign,
  WRITE,
  WRITE_PLAN,
  withHeader,
  withLine,
} from './http-signature-requests.ts';
import { startRecordedProxy } from './proxy/proxy-fixture.ts';

const fixture = useSite('suite');
let bundleDirectory = '';
beforeAll(async () => {
  bundleDirectory = await fixture.site.makeBundle({ moreRoutes: [READ, WRITE, EITHER] });
});

const PROXY = 'the reverse proxy';

/** A point with its upstream. */
type Point = Pick<Gateway, 'client' | 'upstream' | 'verifier'>;

async function startPoint(name: string): Promise<Point> {
  if (name !== PROXY) return fixture.gateway(name, await fixture.verifier({ bundleDirectory }));
  const { address, process, stop, upstream } = await startRecordedProxy(fixture.site, { bundleDirectory });
  fixture.stops.push(stop);
  const client = (protocol: Protocol) =>
    protocol === 'HTTP/1.1' ? http1Client(address) : http2Client(address);
  return { client, upstream, verifier: process };
}

async function startUsual(name: string): Promise<Point> {
  const gateway = await startPoint(name);
  // A replay store that has just started refuses proofs of its past.
  await waitFor('an allowed request', async () => {
    const { status } = await gateway.client('HTTP/1.1').send(await sign(fixture.site, READ_PLAN));
    return status === 200 || undefined;
  });
  return gateway;
}

describe.each([...envoyVersions, PROXY])('%s', (name) => {
  let gateway: Point;
  beforeAll(async () => {
    gateway = await startUsual(name);
  });

  describe.each(PROTOCOLS)('%s', (protocol) => {
    it('forwards what a library signed, without the signature', async () => {
      for (const plan of [READ_PLAN, WRITE_PLAN, { ...READ_PLAN, target: '/v1/either/1' }]) {
        gateway.upstream.clear();
        const forged = withLine(await sign(fixture.site, plan), 'x-proofgate-proof', 'transcript-v1');
        expect(await answerOf(gateway.client(protocol), forged)).toBe('200');
        const [received] = gateway.upstream.requests;
        expect(received).toMatchObject({ url: plan.target, body: plan.body ?? Buffer.alloc(0) });
        const valuesOf = (line: string) => headerValues(received?.headers ?? [], line);
        expect([valuesOf('signature'), valuesOf('signature-input')]).toEqual([[], []]);
        expect(valuesOf('x-proofgate-proof')).toEqual(['http-message-signatures']);
        expect(valuesOf('x-proofgate-subject')).toEqual(['client:billing']);
      }
    });

    it('forwards the signatures of others', async () => {
      gateway.upstream.clear();
      const request = await sign(fixture.site, READ_PLAN);
      const both = withHeader(
        withHeader(request, 'signature-input', (value) => `cdn=("@authority");created=1, ${value}`),
        'signature',
        (value) => `${value}, cdn=:AAAA:`,
      );
      expect(await answerOf(gateway.client(protocol), both)).toBe('200');
      const valuesOf = (line: string) => headerValues(gateway.upstream.requests[0]?.headers ?? [], line);
      expect(valuesOf('signature-input')).toEqual(['cdn=("@authority");created=1']);
      expect(valuesOf('signature')).toEqual(['cdn=:AAAA:']);
    });

    it('denies every change of a signed request', async () => {
      gateway.upstream.clear();
      for (const [what, change, answer] of ATTACKS) {
        const request = change(await sign(fixture.site, WRITE_PLAN));
        expect([what, await answerOf(gateway.client(protocol), request)]).toEqual([what, answer]);
      }
      expect(gateway.upstream.requests).toEqual([]);
    });
  });

  it('lets each signature pass once, over either protocol', async () => {
    const request = await sign(fixture.site, WRITE_PLAN);
    const answers = [];
    for (const protocol of PROTOCOLS) answers.push(await answerOf(gateway.client(protocol), request));
    expect(answers).toEqual(['200', '403 jti_replay']);
  });

  it('compares the digest of a body that the proxy does not hold in memory', async () => {
    const large = { ...WRITE_PLAN, body: Buffer.alloc(300_000, 'x') };
    const client = gateway.client('HTTP/1.1');
    expect(await answerOf(client, await sign(fixture.site, large))).toBe('200');
    const changed = { ...(await sign(fixture.site, large)), body: Buffer.alloc(300_000, 'y') };
    expect(await answerOf(client, changed)).toBe('403 request_binding_mismatch/content-digest');
  });

  it('asks a caller without a proof for what its signature must cover', async () => {
    const { body, headers, method, target, authority } = await sign(fixture.site, WRITE_PLAN);
    const bare = headers.filter(([line]) => !line.startsWith('signature'));
    const answer = await gateway
      .client('HTTP/1.1')
      .send({ method, target, authority, headers: bare, body: body ?? '' });
    expect([answer.status, headerValues(answer.headers, 'accept-signature')]).toEqual([
      401,
      [
        `sig=("@method" "@target-uri" "x-tenant" "content-digest" "content-type");created;expires;nonce;keyid;tag="proofgate/${AUTH_SITE}"`,
      ],
    ]);
  });

  it('counts and records the format', async () => {
    const events = await gateway.verifier.auditEvents();
    const allowed = events.filter(({ outcome }) => outcome === 'allowed');
    expect(allowed[0]).toMatchObject({ key_id: 'dk_billing', proof_format: 'http-message-signatures' });
    const { text } = await gateway.verifier.probe('/metrics');
    expect(text).toContain(
      `proofgate_accepted_proofs_total{format="http-message-signatures"} ${allowed.length}`,
    );
  });
});
