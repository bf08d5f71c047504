/**
 * HTTP Message Signatures through a real Envoy and the reverse proxy: a derived key, and the npm package
 * http-message-signatures at the caller. No changed request reaches the upstream, and no other enforcement point accepts
 * such a signature.
 */
import { hash } from 'node:crypto';
import { beforeAll, describe, expect, it } from '@jest/globals';
import {
  type HeaderLine,
  headerValues,
  type WireClient,
  type WireRequest,
} from '../../src/tools/conformance/wire/exchange.ts';
import { http1Client } from '../../src/tools/conformance/wire/http1.ts';
import { http2Client } from '../../src/tools/conformance/wire/http2.ts';
import { envoyVersions } from '../support/harness/envoy.ts';
import { startApp } from '../support/points/middleware-apps.ts';
import { openVerifier, untilReady, usualOptions } from '../support/points/open-middleware.ts';
import { type HttpSigningOptions, newNonce, signHttp } from '../support/protocol/http-signer.ts';
import { startGuardedApi } from '../support/proxies/guarded-api.ts';
import { nginx } from '../support/proxies/nginx.ts';
import { derivedKeyCaller } from '../support/site/callers.ts';
import { type Gateway, PROTOCOLS, type Protocol } from '../support/site/gateway.ts';
import { AUTHORITY, IPV6_AUTHORITY, ROUTES, type SiteRoute } from '../support/site/routes.ts';
import { signedRequest } from '../support/site/signed-request.ts';
import { AUTH_SITE, nowSeconds } from '../support/site/site.ts';
import { useSite } from '../support/site/site-fixture.ts';
import { waitFor } from '../support/wait.ts';
import { startRecordedProxy } from './proxy/proxy-fixture.ts';

const fixture = useSite('suite');
const READ: SiteRoute = {
  ...ROUTES.readOrder,
  route_id: 'signed-read',
  path_template: '/v1/signed/{order_id}',
  accepted_proofs: ['http-message-signatures'],
};
const WRITE: SiteRoute = {
  ...READ,
  route_id: 'signed-write',
  method: 'POST',
  path_template: '/v1/signed',
  signed_headers: ['x-tenant'],
};
const EITHER: SiteRoute = {
  ...READ,
  route_id: 'either-read',
  path_template: '/v1/either/{order_id}',
  accepted_proofs: ['transcript-v1', 'http-message-signatures'],
};
let bundleDirectory = '';
beforeAll(async () => {
  bundleDirectory = await fixture.site.makeBundle({ moreRoutes: [READ, WRITE, EITHER] });
});

const PROXY = 'the reverse proxy';
const BODY = Buffer.from('{"item":"book"}');
const FIELDS = ['@method', '@target-uri', 'content-digest', 'content-type', 'x-tenant'];

interface Plan {
  readonly method?: string;
  readonly target?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Buffer;
  readonly sign?: Partial<HttpSigningOptions>;
}

const READ_PLAN: Plan = { target: '/v1/signed/4711?fields=id' };
const WRITE_PLAN: Plan = {
  method: 'POST',
  target: '/v1/signed?dry=1',
  headers: { 'content-type': 'application/json', 'x-tenant': 'acme' },
  body: BODY,
  sign: { fields: FIELDS },
};

async function sign({ body, headers = {}, method = 'GET', sign: options, target = '/' }: Plan) {
  const usual = { key: fixture.site.derivedKeys.dk_billing, keyId: 'dk_billing', authSite: AUTH_SITE };
  const lines = await signHttp(
    { method, url: `http://${AUTHORITY}${target}`, headers, body },
    { ...usual, createdSeconds: nowSeconds(), ...options },
  );
  return {
    method,
    target,
    authority: AUTHORITY,
    headers: Object.entries(lines),
    ...(body === undefined ? {} : { body }),
  } satisfies WireRequest;
}

type Signed = Awaited<ReturnType<typeof sign>>;

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
    const { status } = await gateway.client('HTTP/1.1').send(await sign(READ_PLAN));
    return status === 200 || undefined;
  });
  return gateway;
}

async function answerOf(client: WireClient, request: WireRequest): Promise<string> {
  const { body, headers, status } = await client.send(request);
  if (status === 200) return '200';
  const [reason] = headerValues(headers, 'x-proofgate-reason');
  const { detail } = JSON.parse(body.toString()) as { readonly detail?: string };
  return `${status} ${reason}${detail === undefined ? '' : `/${detail}`}`;
}

function withHeader(request: Signed, name: string, change: (value: string) => string): Signed {
  const changed = request.headers.map(([key, value]) => [key, key === name ? change(value) : value] as const);
  expect(changed).not.toEqual(request.headers);
  return { ...request, headers: changed as [string, string][] };
}

const withLine = (request: Signed, ...line: HeaderLine): Signed => ({
  ...request,
  headers: [...request.headers, [line[0], line[1]]],
});
const withoutHeader = (request: Signed, name: string): Signed => ({
  ...request,
  headers: request.headers.filter(([key]) => key !== name),
});
const digestOf = (body: Buffer) => `sha-256=:${hash('sha256', body, 'base64')}:`;
const OTHER_BODY = Buffer.from('{"item":"cash"}');

/** Each changes one thing of a signed request for {@link WRITE}. */
const ATTACKS: readonly (readonly [name: string, change: (request: Signed) => Signed, answer: string])[] = [
  ['the path', (r) => ({ ...r, target: '/v1/signed/x?dry=1' }), '403 bundle_route_missing/no_match'],
  ['the query', (r) => ({ ...r, target: '/v1/signed?dry=0' }), '401 invalid_request_proof/proof_signature'],
  ['no query', (r) => ({ ...r, target: '/v1/signed' }), '401 invalid_request_proof/proof_signature'],
  ['the method', (r) => ({ ...r, method: 'PUT' }), '403 bundle_route_missing/no_match'],
  ['the origin', (r) => ({ ...r, authority: IPV6_AUTHORITY }), '401 invalid_request_proof/proof_signature'],
  ['the body', (r) => ({ ...r, body: OTHER_BODY }), '403 request_binding_mismatch/content-digest'],
  [
    'body and digest',
    (r) => ({ ...withHeader(r, 'content-digest', () => digestOf(OTHER_BODY)), body: OTHER_BODY }),
    '401 invalid_request_proof/proof_signature',
  ],
  ['no body', (r) => ({ ...r, body: Buffer.alloc(0) }), '403 request_binding_mismatch/content-digest'],
  ['a header', (r) => withHeader(r, 'x-tenant', () => 'evil'), '401 invalid_request_proof/proof_signature'],
  ['no header', (r) => withoutHeader(r, 'x-tenant'), '403 request_binding_mismatch/header.x-tenant'],
  ['a second header', (r) => withLine(r, 'x-tenant', 'evil'), '403 request_binding_mismatch/header.x-tenant'],
  [
    'the type',
    (r) => withHeader(r, 'content-type', () => 'text/plain'),
    '401 invalid_request_proof/proof_signature',
  ],
  ...(
    [
      ['the time', /created=\d+/, () => `created=${nowSeconds() - 1}`],
      ['the end', /expires=\d+/, () => `expires=${nowSeconds() + 90}`],
      ['the nonce', /nonce="[^"]+"/, () => `nonce="${newNonce()}"`],
      ['the key', 'dk_billing', () => 'dk_plain'],
      ['the components', ' "x-tenant"', () => ''],
    ] as const
  ).map(
    ([name, from, to]) =>
      [
        name,
        (r: Signed) => withHeader(r, 'signature-input', (value) => value.replace(from, to())),
        '401 invalid_request_proof/proof_signature',
      ] as const,
  ),
  [
    'the site',
    (r) => withHeader(r, 'signature-input', (value) => value.replace(AUTH_SITE, 'shop-us')),
    '401 invalid_request_proof/proof_missing',
  ],
  [
    'the signature',
    (r) => withHeader(r, 'signature', () => `sig=:${Buffer.alloc(64, 7).toString('base64')}:`),
    '401 invalid_request_proof/proof_signature',
  ],
  ['no signature', (r) => withoutHeader(r, 'signature'), '401 invalid_request_proof/proof_malformed'],
  [
    'a second line',
    (r) => withLine(r, 'signature-input', 'cdn=("@authority");created=1'),
    '401 invalid_request_proof/proof_malformed',
  ],
  [
    'a passport',
    (r) => withLine(r, 'authorization', 'Passport a.b.c'),
    '401 invalid_request_proof/proof_ambiguous',
  ],
  [
    'a bearer',
    (r) => withLine(r, 'authorization', 'Bearer x'),
    '401 invalid_request_proof/authorization_scheme',
  ],
];

describe.each([...envoyVersions, PROXY])('%s', (name) => {
  let gateway: Point;
  beforeAll(async () => {
    gateway = await startUsual(name);
  });

  describe.each(PROTOCOLS)('%s', (protocol) => {
    it('forwards what a library signed, without the signature', async () => {
      for (const plan of [READ_PLAN, WRITE_PLAN, { ...READ_PLAN, target: '/v1/either/1' }]) {
        gateway.upstream.clear();
        const forged = withLine(await sign(plan), 'x-proofgate-proof', 'transcript-v1');
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
      const request = await sign(READ_PLAN);
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
        const request = change(await sign(WRITE_PLAN));
        expect([what, await answerOf(gateway.client(protocol), request)]).toEqual([what, answer]);
      }
      expect(gateway.upstream.requests).toEqual([]);
    });
  });

  it('lets each signature pass once, over either protocol', async () => {
    const request = await sign(WRITE_PLAN);
    const answers = [];
    for (const protocol of PROTOCOLS) answers.push(await answerOf(gateway.client(protocol), request));
    expect(answers).toEqual(['200', '403 jti_replay']);
  });

  it('compares the digest of a body that the proxy does not hold in memory', async () => {
    const large = { ...WRITE_PLAN, body: Buffer.alloc(300_000, 'x') };
    const client = gateway.client('HTTP/1.1');
    expect(await answerOf(client, await sign(large))).toBe('200');
    const changed = { ...(await sign(large)), body: Buffer.alloc(300_000, 'y') };
    expect(await answerOf(client, changed)).toBe('403 request_binding_mismatch/content-digest');
  });

  it('asks a caller without a proof for what its signature must cover', async () => {
    const { body, headers, method, target, authority } = await sign(WRITE_PLAN);
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

it('is no proof at the other enforcement points, where transcripts go on', async () => {
  const guarded = await startGuardedApi(nginx, fixture.site, (listen) =>
    fixture.verifier({ bundleDirectory, flags: listen }),
  );
  fixture.stops.push(() => guarded.stop());
  const { verifier } = await openVerifier(await usualOptions(fixture.site, bundleDirectory));
  fixture.stops.push(() => verifier.close());
  const app = await startApp('node', verifier);
  fixture.stops.push(() => app.close());
  await untilReady(verifier);
  const clients = [guarded.proxy.http1, http1Client(app.address)];
  const answersTo = (makeRequest: () => WireRequest | Promise<WireRequest>) =>
    Promise.all(clients.map(async (client) => (await client.send(await makeRequest())).status));
  const transcript = () =>
    signedRequest(fixture.site, { caller: derivedKeyCaller(fixture.site), route: EITHER });
  await waitFor('all to allow', async () => {
    const statuses = await answersTo(transcript);
    return statuses.every((status) => status === 200) || undefined;
  });
  expect(await answersTo(() => sign(READ_PLAN))).toEqual([401, 401]);
  expect(await answersTo(() => sign({ ...READ_PLAN, target: '/v1/either/1' }))).toEqual([401, 401]);
});
