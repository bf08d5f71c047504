/** Tests signers in other languages, written from docs/design/protocol.md alone: the real Envoy and verifier allow their requests. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from '@jest/globals';
import {
  type HeaderLine,
  headerValues,
  type WireRequest,
} from '../../src/tools/conformance/wire/exchange.ts';
import { envoyVersions } from '../support/harness/envoy.ts';
import type { PassportToMake, SigningJob } from '../support/interop/job.ts';
import { foreignSigners, PREPARE_TIMEOUT_MS, saySkipped } from '../support/interop/signers.ts';
import { attestedCaller, type Caller, derivedKeyCaller } from '../support/site/callers.ts';
import { useEnvironment } from '../support/site/environment.ts';
import { PROTOCOLS } from '../support/site/gateway.ts';
import { expectAllowed, expectDenial, observe } from '../support/site/observe.ts';
import { AUTHORITY, IPV6_AUTHORITY, ROUTES, type SiteRoute } from '../support/site/routes.ts';
import { sign } from '../support/site/signed-request.ts';
import { AUTH_SITE } from '../support/site/site.ts';

const { cancelOrder, createOrder, files, readOrder, tenantOrders, upload } = ROUTES;
const environment = useEnvironment(['usual']);
const version = envoyVersions[envoyVersions.length - 1] ?? '';

interface ForeignRequest {
  readonly route: SiteRoute;
  readonly url: string;
  readonly headers?: readonly HeaderLine[];
  readonly alsoSigned?: readonly string[];
  readonly body?: Buffer;
}

const at = (target: string) => `http://${AUTHORITY}${target}`;
const everyByte = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte));

const REQUESTS: readonly (readonly [string, ForeignRequest])[] = [
  ['GET', { route: readOrder, url: at('/v1/orders/17') }],
  ['GET with a query', { route: readOrder, url: at('/v1/orders/17?b=2&a=1&&=&c') }],
  ['a query that nothing follows', { route: readOrder, url: at('/v1/orders/17?') }],
  ['escapes', { route: files, url: at('/v1/files/caf%C3%A9/a%20b?x=%2F..%2e//&y=%zz;') }],
  ['POST with a body', { route: createOrder, url: at('/v1/orders'), body: everyByte }],
  ['POST with an empty body', { route: createOrder, url: at('/v1/orders'), body: Buffer.alloc(0) }],
  ['POST with no body', { route: createOrder, url: at('/v1/orders') }],
  ['GET with a body', { route: readOrder, url: at('/v1/orders/17'), body: Buffer.from('{}') }],
  ['DELETE', { route: cancelOrder, url: at('/v1/cancellations/17') }],
  ['a body that is not bound', { route: upload, url: at('/v1/uploads'), body: everyByte }],
  [
    'signed headers',
    {
      route: tenantOrders,
      url: at('/v1/tenant/orders'),
      headers: [
        ['X-Tenant', '\t acme, inc '],
        ['Accept', 'application/json'],
        ['X-Not-Signed', 'free'],
      ],
      alsoSigned: ['accept'],
    },
  ],
  ['an IPv6 authority with a port', { route: readOrder, url: `http://${IPV6_AUTHORITY}/v1/orders/17` }],
  ['a URL in other capitals', { route: readOrder, url: `HTTP://API.Shop.Example:80/v1/orders/17#part` }],
];

describe.each(foreignSigners().map((signer) => [signer.language, signer] as const))('%s', (_, signer) => {
  if (signer.missing !== undefined) {
    saySkipped(signer);
    it.skip('is not here', () => undefined);
    return;
  }

  beforeAll(() => signer.prepare(), PREPARE_TIMEOUT_MS);

  async function keyFile(name: string, { holder }: Caller): Promise<string> {
    const path = join(environment.site.directory, `${name}.pem`);
    await writeFile(path, holder.privateKey.export({ format: 'pem', type: 'pkcs8' }), { mode: 0o600 });
    return path;
  }

  function jobOf(
    request: ForeignRequest,
    holderKeyFile: string,
    passport: SigningJob['passport'],
  ): SigningJob {
    const { body = Buffer.alloc(0), headers = [], route, url } = request;
    return {
      holder_key_file: holderKeyFile,
      passport,
      auth_site: AUTH_SITE,
      route: {
        route_id: route.route_id,
        audience: route.audience,
        body: route.body ?? 'bound',
        signed_headers: route.signed_headers ?? [],
      },
      request: { method: route.method, url, headers, body_base64: body.toString('base64') },
      also_signed: request.alsoSigned ?? [],
    };
  }

  /** Signed by the other program, with the time and the random numbers that it takes itself. */
  async function signedElsewhere(request: ForeignRequest): Promise<WireRequest> {
    const caller = derivedKeyCaller(environment.site);
    const holderKeyFile = await keyFile('billing', caller);
    return asSent(request, jobOf(request, holderKeyFile, ownPassport(caller, holderKeyFile)));
  }

  function ownPassport(caller: Caller, key_file: string): PassportToMake {
    const { issuer, keyBinding, keyId, subject, trustDomain } = caller;
    return { key_file, key_id: keyId, issuer, subject, trust_domain: trustDomain, key_binding: keyBinding };
  }

  async function asSent(
    { body, headers = [], route }: ForeignRequest,
    job: SigningJob,
  ): Promise<WireRequest> {
    const signed = await signer.sign(job);
    environment.site.secrets.add('a transcript', signed.headers['X-Proofgate-Transcript'] ?? '');
    environment.site.secrets.add('a passport', (signed.headers.Authorization ?? '').replace('Passport ', ''));
    return {
      method: route.method,
      target: signed.target,
      authority: signed.authority,
      headers: [...headers, ...Object.entries(signed.headers)],
      ...(body === undefined ? {} : { body, framing: 'length' }),
    };
  }

  describe.each(PROTOCOLS)('over %s', (protocol) => {
    /** HTTP/2 has no capitals in names (RFC 9113, section 8.2). */
    const onTheWire = (request: WireRequest): WireRequest => ({
      ...request,
      headers: (request.headers ?? []).map(([name, value]) =>
        protocol === 'HTTP/2' ? [name.toLowerCase(), value.trim()] : [name, value],
      ),
    });

    async function send(request: WireRequest) {
      const gateway = await environment.gateway(version);
      return { gateway, observed: await observe(gateway, gateway.client(protocol), onTheWire(request)) };
    }

    it.each(REQUESTS)('%s', async (_name, plan) => {
      const request = await signedElsewhere(plan);
      const { gateway, observed } = await send(request);
      const expected = { routeId: plan.route.route_id, subject: 'client:billing' };
      const arrived = await expectAllowed(gateway, observed, expected);
      expect([arrived.method, arrived.url]).toEqual([plan.route.method, request.target]);
      expect(arrived.body.equals(plan.body ?? Buffer.alloc(0))).toBe(true);
      for (const [name, value] of plan.headers ?? []) {
        expect(headerValues(arrived.headers, name)).toEqual([value.trim()]);
      }
    });

    it("a broker's passport", async () => {
      const caller = attestedCaller(environment.site);
      const plan: ForeignRequest = { route: readOrder, url: at('/v1/orders/17') };
      const { passport } = sign(environment.site, { caller, route: readOrder });
      const job = jobOf(plan, await keyFile('attested', caller), { jws: passport });
      const { gateway, observed } = await send(await asSent(plan, job));
      await expectAllowed(gateway, observed, { routeId: readOrder.route_id, subject: caller.subject });
    });

    it('the same request again is a replay', async () => {
      const request = await signedElsewhere({ route: readOrder, url: at('/v1/orders/17') });
      expect((await send(request)).observed.response.status).toBe(200);
      const { gateway, observed } = await send(request);
      await expectDenial(gateway, observed, {
        reason: 'jti_replay',
        routeId: readOrder.route_id,
        callerVerified: true,
      });
    });

    it.each<[string, ForeignRequest, Partial<WireRequest>, string]>([
      [
        'another target',
        { route: readOrder, url: at('/v1/orders/17') },
        { target: '/v1/orders/18' },
        'target',
      ],
      [
        'another body',
        { route: createOrder, url: at('/v1/orders'), body: Buffer.from('{"count":1}') },
        { body: Buffer.from('{"count":9}') },
        'content-sha256',
      ],
      [
        'another authority',
        { route: readOrder, url: at('/v1/orders/17') },
        { authority: IPV6_AUTHORITY },
        'authority',
      ],
    ])('tampered with, it is denied: %s', async (_name, plan, change, detail) => {
      const { gateway, observed } = await send({ ...(await signedElsewhere(plan)), ...change });
      await expectDenial(gateway, observed, {
        reason: 'request_binding_mismatch',
        detail,
        routeId: plan.route.route_id,
      });
    });
  });
});
