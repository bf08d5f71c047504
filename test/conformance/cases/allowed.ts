/** Requests that the core allows: every kind of caller, route, target and body. What the upstream may see of them is checked. */

import { generateSigningKey } from '../../../src/protocol/signing.ts';
import { ALLOWED, type Protocol } from '../../../src/tools/conformance/wire/conformance-case.ts';
import type { WireRequest } from '../../../src/tools/conformance/wire/exchange.ts';
import type { ConformanceCase } from '../../support/points/conformance-case.ts';
import { attestedCaller, buildCaller, type Caller, derivedKeyCaller } from '../../support/site/callers.ts';
import { AUTHORITY, ROUTES } from '../../support/site/routes.ts';
import { type RequestPlan, signedRequest } from '../../support/site/signed-request.ts';
import { BROKER_ISSUER, OIDC_ISSUER, type Site } from '../../support/site/site.ts';

const {
  bearer,
  cancelOrder,
  createOrder,
  files,
  ledger,
  readOrder,
  releases,
  replaceOrder,
  tenantOrders,
  upload,
  vault,
  whoAmI,
} = ROUTES;
const billing = (site: Site) => derivedKeyCaller(site);
const order = Buffer.from('{"item":1,"count":2}');

/** @param sent what the caller changes after signing, to another form of the same request */
function allowed(
  name: string,
  plan: Omit<RequestPlan, 'caller'>,
  { caller = billing, sent = {}, protocols }: AllowedOptions = {},
): ConformanceCase {
  return {
    name: `allowed: ${name}`,
    expected: ALLOWED,
    make: (site) => ({ ...signedRequest(site, { caller: caller(site), ...plan }), ...sent }),
    ...(protocols && { protocols }),
  };
}

interface AllowedOptions {
  readonly caller?: (site: Site) => Caller;
  readonly sent?: Partial<WireRequest>;
  readonly protocols?: readonly Protocol[];
}

const by = (caller: (site: Site) => Caller): AllowedOptions => ({ caller });

/** A broker vouches for a holder key of the other algorithm. */
function p256Holder(site: Site): Caller {
  const holder = generateSigningKey('ES256');
  site.secrets.addPrivateKey('a holder key', holder.privateKey);
  return { ...attestedCaller(site), holder };
}

const CALLERS: readonly ConformanceCase[] = [
  allowed('a derived Ed25519 key', { route: readOrder }),
  allowed(
    'a derived P-256 key',
    { route: readOrder },
    by((site) => derivedKeyCaller(site, 'dk_billing_p256')),
  ),
  allowed(
    'a derived key that may only read',
    { route: readOrder },
    by((site) => derivedKeyCaller(site, 'dk_reporting')),
  ),
  allowed('an attested workload', { route: readOrder }, by(attestedCaller)),
  allowed('an attested workload with a P-256 key', { route: readOrder }, by(p256Holder)),
  allowed(
    'a broker with a P-256 key',
    { route: readOrder },
    by((site) => attestedCaller(site, 'broker-p256')),
  ),
  allowed('attestation where it is required', { route: vault }, by(attestedCaller)),
  allowed('an issuer of software keys', { route: readOrder }, by(buildCaller)),
  allowed(
    'a software passport of an issuer that may attest',
    { route: readOrder },
    by((site) => ({ ...attestedCaller(site), keyBinding: 'software' })),
  ),
  allowed('required provenance of a derived key', { route: releases }),
  allowed(
    'required provenance in a passport',
    { route: releases },
    by((site) => ({
      ...attestedCaller(site),
      provenance: { verified_issuer: OIDC_ISSUER },
    })),
  ),
  allowed('required context of a client', { route: ledger }),
  allowed(
    'required context in a passport',
    { route: ledger },
    by((site) => ({
      ...attestedCaller(site),
      context: { environment: 'production', issuer: BROKER_ISSUER },
    })),
  ),
  allowed('a route that keeps the passport', { route: whoAmI }),
  allowed('a passport in a header of its own', { route: bearer }),
  allowed("a passport beside the application's token", {
    route: bearer,
    otherHeaders: [['authorization', 'Bearer 1']],
  }),
  allowed("a passport beside the application's credentials with commas", {
    route: bearer,
    otherHeaders: [['authorization', 'Digest a="b", c="d"']],
  }),
];

const target = (text: string) => allowed(`target ${text}`, { route: readOrder, target: text });

const TARGETS: readonly ConformanceCase[] = [
  ...[
    '/v1/orders/4711?',
    '/v1/orders/4711??',
    '/v1/orders/4711?a=1&b=2',
    '/v1/orders/4711?b=2&a=1&b=3',
    '/v1/orders/4711?q=%2F%2f/../..//;%00%zz',
    '/v1/orders/4711?next=https://api.other.example/a?b=c',
    '/v1/orders/4711?q=a+b%20c',
    '/v1/orders/4711?q=a!b,c"<>[]{}|^`\\',
    '/v1/orders/%C3%A9',
    '/v1/orders/%c3%a9',
    '/v1/orders/a%20b',
    "/v1/orders/a+b!$&'()*,=:@~-._",
    '/v1/orders/...',
    '/v1/orders/.hidden',
    '/v1/orders/a..b',
  ].map(target),
  allowed('target of 4 KiB', { route: readOrder, target: `/v1/orders/4711?q=${'a'.repeat(4000)}` }),
  allowed('a rest of a path', { route: files, target: '/v1/files/a/b/c.txt' }),
  allowed('an authority in capitals', { route: readOrder }, { sent: { authority: 'API.Shop.Example' } }),
  allowed(
    'an authority with the default port',
    { route: readOrder },
    { sent: { authority: `${AUTHORITY}:80` } },
  ),
  allowed(
    'an absolute target',
    { route: readOrder },
    {
      sent: { authority: AUTHORITY, target: `http://${AUTHORITY}/v1/orders/4711` },
      protocols: ['HTTP/1.1'],
    },
  ),
  allowed(
    'an absolute target, and another Host',
    { route: readOrder },
    {
      sent: { authority: 'api.other.example', target: `http://${AUTHORITY}/v1/orders/4711` },
      protocols: ['HTTP/1.1'],
    },
  ),
  allowed(
    'another :scheme than the connection has',
    { route: readOrder },
    {
      sent: { scheme: 'https' },
      protocols: ['HTTP/2'],
    },
  ),
];

const everyByte = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte));
const large = Buffer.alloc(200_000, everyByte);

const BODIES: readonly ConformanceCase[] = [
  allowed('GET with a length of 0', { route: readOrder, framing: 'length' }),
  allowed('GET with an empty body of no length', { route: readOrder, framing: 'open' }),
  allowed('GET with a body', { route: readOrder, body: order, framing: 'length' }),
  allowed('GET with a body of no length', { route: readOrder, body: order, framing: 'open' }),
  allowed('POST without a body', { route: createOrder }),
  allowed('POST with a length of 0', { route: createOrder, framing: 'length' }),
  allowed('POST with an empty body of no length', { route: createOrder, framing: 'open' }),
  allowed('POST with a length', { route: createOrder, body: order, framing: 'length' }),
  allowed('POST without a length', { route: createOrder, body: order, framing: 'open' }),
  allowed('PUT with a length', { route: replaceOrder, body: order, framing: 'length' }),
  allowed('PUT without a length', { route: replaceOrder, body: order, framing: 'open' }),
  allowed('DELETE without a body', { route: cancelOrder }),
  allowed('DELETE with a body', { route: cancelOrder, body: order, framing: 'length' }),
  allowed('DELETE with a body of no length', { route: cancelOrder, body: order, framing: 'open' }),
  allowed('a body of every byte', { route: createOrder, body: everyByte, framing: 'length' }),
  allowed('a body of one NUL', { route: createOrder, body: Buffer.of(0), framing: 'length' }),
  allowed('a body that is not UTF-8', {
    route: createOrder,
    body: Buffer.of(0x7b, 0xff, 0xc0, 0x7d),
    framing: 'open',
  }),
  allowed('a body of 200,000 bytes', { route: createOrder, body: large, framing: 'length' }),
  allowed('a body of 200,000 bytes without a length', { route: replaceOrder, body: large, framing: 'open' }),
  allowed('a body that is not bound', { route: upload, body: large, framing: 'length' }),
  allowed('a body that is not bound, without a length', { route: upload, body: large, framing: 'open' }),
  allowed('no body where none is bound', { route: upload }),
  allowed(
    'a trailer behind a body',
    { route: createOrder, body: order },
    { sent: { trailers: [['x-checksum', '1']] } },
  ),
  allowed(
    'trailers that may only come from the verifier',
    { route: createOrder, body: order },
    {
      sent: {
        trailers: [
          ['x-proofgate-subject', 'smuggled'],
          ['x-original-url', 'smuggled'],
        ],
      },
    },
  ),
];

const north = { name: 'x-tenant', value: 'north' };
const signing = (name: string, value: string) =>
  allowed(`signed header ${name}: ${JSON.stringify(value)}`, {
    route: readOrder,
    signedHeaders: [{ name, value }],
  });

const SIGNED_HEADERS: readonly ConformanceCase[] = [
  allowed('a header that the route requires', { route: tenantOrders, signedHeaders: [north] }),
  allowed('a header that the route requires, and another', {
    route: tenantOrders,
    signedHeaders: [north, { name: 'content-type', value: 'application/json' }],
  }),
  allowed("the application's token, signed", {
    route: bearer,
    signedHeaders: [{ name: 'authorization', value: 'Bearer 1' }],
  }),
  signing('x-tenant', 'north, south'),
  signing('x-tenant', 'north  south'),
  signing('x-tenant', '"north; a=1"'),
  signing('content-type', 'text/plain'),
  signing('accept', 'text/html, */*'),
  signing('cookie', 'a=1; b=2'),
  signing('user-agent', 'a test'),
  signing('if-match', '"etag"'),
  signing('x-request-id', '4711'),
  signing('x-forwarded-for', '192.0.2.1'),
  signing('x-forwarded-proto', 'http'),
  signing('x-forwarded-host', AUTHORITY),
  signing('forwarded', 'for=192.0.2.1'),
  signing('via', '1.1 proxy'),
  signing('traceparent', '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'),
];

export const ALLOWED_CASES: readonly ConformanceCase[] = [
  ...CALLERS,
  ...TARGETS,
  ...BODIES,
  ...SIGNED_HEADERS,
];
