/** The inputs of the signers in `signing.json`; the first is the worked example of docs/design/protocol.md. */
import type { HeaderPair, SigningVector } from './format.ts';

export interface SigningCase
  extends Pick<
    SigningVector,
    'name' | 'passport_key' | 'holder_key' | 'auth_site' | 'route' | 'request' | 'also_signed' | 'jti'
  > {
  readonly kid: string;
  /** In the order of the page's table. */
  readonly claims: { readonly [claim: string]: unknown };
}

const ISSUED_AT = 1_800_000_000;
const AUDIENCE = 'https://api.shop.example';
const BROKER = {
  iss: 'https://broker.shop.example',
  sub: 'spiffe://shop.example/ns/prod/sa/billing',
  trust_domain: 'shop.example',
};
const CLIENT = { iss: 'https://control.shop.example', sub: 'client:reporting', trust_domain: 'shop.example' };
const TIMES = { iat: ISSUED_AT, exp: ISSUED_AT + 300 };

/** `cnf.jwk` is put in from the holder key. */
const attested = (jti: string, aud = AUDIENCE) => ({
  ...BROKER,
  aud,
  ...TIMES,
  key_binding: 'attested_workload',
  cnf: {},
  jti,
});
const ownKey = (jti: string) => ({
  ...CLIENT,
  aud: AUDIENCE,
  ...TIMES,
  key_binding: 'software',
  cnf: {},
  jti,
});

const bytes = (...values: readonly number[]) => Buffer.from(values).toString('base64url');
/** 16 bytes counting up. */
const jti = (first: number) => bytes(...Array.from({ length: 16 }, (_, index) => first + index));

const route = (route_id: string, changes: Partial<SigningVector['route']> = {}): SigningVector['route'] => ({
  route_id,
  audience: AUDIENCE,
  body: 'bound',
  signed_headers: [],
  ...changes,
});

const request = (
  method: string,
  target: string,
  changes: Partial<SigningVector['request']> = {},
): SigningVector['request'] => ({
  method,
  scheme: 'https',
  authority: 'api.shop.example',
  target,
  headers: [],
  body_base64: '',
  ...changes,
});

const base64 = (text: string) => Buffer.from(text).toString('base64');

const ownSite = {
  auth_site: 'shop-eu',
  passport_key: 'rfc8032-test-2',
  holder_key: 'rfc8032-test-2',
  kid: 'key-7f3a',
  also_signed: [],
};
const brokered = {
  auth_site: 'shop-eu',
  passport_key: 'rfc8032-test-1',
  holder_key: 'rfc8032-test-2',
  kid: 'broker-1',
  also_signed: [],
};

const json: HeaderPair = ['Content-Type', 'application/json'];

export const SIGNING_CASES: readonly SigningCase[] = [
  {
    ...brokered,
    name: "the worked example: a broker's passport, a body, signed headers",
    claims: { ...attested('passport-0001'), provenance: { cluster: 'eu-1' }, context: { team: 'billing' } },
    route: route('orders-create', { signed_headers: ['content-type', 'x-tenant'] }),
    request: request('POST', '/v1/orders?dry-run=1', {
      headers: [json, ['X-Tenant', 'acme']],
      body_base64: base64('{"item":"book","count":2}'),
    }),
    jti: jti(0),
  },
  {
    ...ownSite,
    name: 'a derived key signs its own passport; no body, nothing optional; the authority is given in capitals and with the default port',
    claims: ownKey('p-2'),
    route: route('orders-read'),
    request: request('GET', '/v1/orders/17', { authority: 'API.shop.example:443' }),
    jti: jti(16),
  },
  {
    ...brokered,
    name: 'P-256 on both sides; an empty body that is bound; IPv6 with a port, over http',
    passport_key: 'rfc6979-p256',
    holder_key: 'rfc6979-p256',
    kid: 'broker-2',
    claims: attested('p-3', 'urn:flags'),
    route: route('flags-set', { audience: 'urn:flags' }),
    request: request('PUT', '/flags/%E2%82%AC/a:b@c?', { scheme: 'http', authority: '[2001:DB8::1]:8080' }),
    jti: jti(32),
  },
  {
    ...ownSite,
    name: 'a route whose body is not bound; a query that is not decoded',
    claims: ownKey('p-4'),
    route: route('uploads', { body: 'unbound' }),
    request: request('POST', '/v1/uploads/a%20b?x=%2F..//;%zz&y=\\', {
      authority: 'api.shop.example:8443',
      body_base64: base64('not covered'),
    }),
    jti: jti(48),
  },
  {
    ...brokered,
    name: 'DELETE with a body; every optional claim; names that sort by bytes, values with commas and spaces',
    claims: {
      ...BROKER,
      aud: AUDIENCE,
      ...TIMES,
      nbf: ISSUED_AT + 1,
      key_binding: 'attested_workload',
      cnf: {},
      jti: 'p-5',
      provenance: {},
      context: { team: '~' },
    },
    route: route('orders-cancel', { signed_headers: ['x-a'] }),
    also_signed: ['x-b', 'x-a_c', 'x-a-c', 'x0'],
    request: request('DELETE', '/', {
      headers: [
        ['X-B', '\t b '],
        ['x-a_c', '1=2'],
        ['X-A-C', 'one,  two'],
        ['x-not-signed', 'caf\xe9'],
        ['x0', '"'],
        ['x-a', '-'],
      ],
      body_base64: Buffer.of(0, 255, 10).toString('base64'),
    }),
    jti: '-'.repeat(128),
  },
  {
    ...ownSite,
    name: 'POST with an empty body: the hash of nothing, not -',
    claims: ownKey('p-6'),
    route: route('orders-create'),
    request: request('POST', '/v1/orders'),
    jti: jti(64),
  },
  {
    ...ownSite,
    name: 'GET with a body: its hash',
    claims: ownKey('p-7'),
    route: route('orders-search'),
    request: request('GET', '/v1/orders?q=', { body_base64: base64('{"q":"book"}') }),
    jti: jti(80),
  },
  {
    ...ownSite,
    name: 'PATCH, http, the default port of http, a query of escapes as it is',
    claims: ownKey('p-8'),
    route: route('orders-change'),
    request: request('PATCH', '/v1/orders/caf%C3%A9?a=%C3%A9&b=%2e%2E&&=', {
      scheme: 'http',
      authority: 'API.SHOP.EXAMPLE:80',
      body_base64: base64('[]'),
    }),
    jti: jti(96),
  },
  {
    ...ownSite,
    name: 'a name beyond ASCII as its A-label; the port of the other scheme stays',
    claims: ownKey('p-9'),
    route: route('orders-read'),
    request: request('GET', '/v1/orders/17', { authority: 'XN--bcher-kva.example:80' }),
    jti: jti(112),
  },
  {
    ...brokered,
    name: 'an Ed25519 passport for a P-256 holder',
    holder_key: 'rfc6979-p256',
    claims: attested('p-10'),
    route: route('orders-read'),
    request: request('GET', '/v1/orders/17?'),
    jti: jti(128),
  },
  {
    ...ownSite,
    name: 'HEAD with signed headers that the caller chooses',
    claims: ownKey('p-11'),
    route: route('orders-head'),
    also_signed: ['x-request-purpose', 'accept'],
    request: request('HEAD', '/v1/orders', {
      headers: [
        ['Accept', 'application/json'],
        ['X-Request-Purpose', 'monthly report; part=1'],
      ],
    }),
    jti: jti(144),
  },
  {
    ...ownSite,
    name: 'a body that is not text',
    claims: ownKey('p-12'),
    route: route('blobs-put'),
    request: request('PUT', '/v1/blobs/0', {
      body_base64: Buffer.from(Array.from({ length: 256 }, (_, byte) => byte)).toString('base64'),
    }),
    jti: jti(160),
  },
  {
    ...ownSite,
    name: 'claims with characters that some JSON writers escape',
    claims: { ...ownKey('p-<13>&/'), context: { 'a/b': '<&>', quote: '\\"' } },
    route: route('orders-read'),
    request: request('GET', '/v1/orders/17'),
    jti: jti(176),
  },
  {
    ...ownSite,
    name: 'a passport beside the Authorization of the application',
    claims: ownKey('p-14'),
    route: route('orders-read', { passport_header: 'X-Proofgate-Passport' }),
    request: request('GET', '/v1/orders/17', { headers: [['Authorization', 'Bearer application']] }),
    jti: jti(192),
  },
  {
    ...ownSite,
    name: 'the Authorization of the application, signed',
    claims: ownKey('p-15'),
    route: route('orders-read', {
      passport_header: 'X-Proofgate-Passport',
      signed_headers: ['authorization'],
    }),
    request: request('GET', '/v1/orders/17', { headers: [['AUTHORIZATION', 'Bearer application']] }),
    jti: jti(208),
  },
];

export const PROOF_ISSUED_AT = ISSUED_AT + 10;
export const PROOF_EXPIRES_AT = ISSUED_AT + 70;
