/**
 * Makes `http-message-signatures.json` by the rules of docs/design/protocol.md and RFC 9421, step by step; the tests compare it
 * with `src/protocol/`.
 */
import { createHash } from 'node:crypto';
import { signSameEachTime } from '../../support/fixtures/deterministic.ts';
import { ALL_TEST_KEYS } from '../../support/fixtures/test-keys.ts';
import type { HeaderPair, HttpMessageVector } from './format.ts';

type Case = Omit<HttpMessageVector, 'created' | 'expires' | 'signature_base' | 'headers'>;

const CREATED = 1_800_000_010;
const EXPIRES = 1_800_000_070;

const nonce = (first: number) =>
  Buffer.from(Array.from({ length: 16 }, (_, index) => first + index)).toString('base64url');
const base64 = (text: string) => Buffer.from(text).toString('base64');

const usual = {
  key: 'rfc8032-test-2',
  key_id: 'key-7f3a',
  auth_site: 'shop-eu',
  also_signed: [],
};
const route = (changes: Partial<Case['route']> = {}): Case['route'] => ({
  route_id: 'orders',
  audience: 'https://api.shop.example',
  body: 'bound',
  signed_headers: [],
  ...changes,
});
const request = (
  method: string,
  target: string,
  changes: Partial<Case['request']> = {},
): Case['request'] => ({
  method,
  scheme: 'https',
  authority: 'api.shop.example',
  target,
  headers: [],
  body_base64: '',
  ...changes,
});
const json: HeaderPair = ['Content-Type', 'application/json'];

const CASES: readonly Case[] = [
  {
    ...usual,
    name: 'no body',
    route: route(),
    request: request('GET', '/v1/orders/17?fields=id'),
    nonce: nonce(0),
  },
  {
    ...usual,
    name: 'a body with its type, signed headers',
    route: route({ signed_headers: ['x-tenant'] }),
    request: request('POST', '/v1/orders?dry-run=1', {
      headers: [json, ['X-Tenant', 'acme'], ['X-Note', 'not signed']],
      body_base64: base64('{"item":"book","count":2}'),
    }),
    nonce: nonce(16),
  },
  {
    ...usual,
    name: 'an authority in capitals with the default port',
    route: route(),
    request: request('GET', '/', { authority: 'API.shop.example:443' }),
    nonce: nonce(32),
  },
  {
    ...usual,
    name: 'P-256; an empty body that is bound; IPv6 with a port, over http',
    key: 'rfc6979-p256',
    route: route(),
    request: request('PUT', '/flags/%E2%82%AC/a:b@c', { scheme: 'http', authority: '[2001:DB8::1]:8080' }),
    nonce: nonce(48),
  },
  {
    ...usual,
    name: 'a body that is not bound: the digest of the application stays as it is',
    route: route({ body: 'unbound' }),
    request: request('POST', '/v1/uploads/a%20b?x=%2F..//;%zz&y=\\', {
      headers: [json, ['Content-Digest', 'sha-512=:AAAA:']],
      body_base64: base64('not covered'),
    }),
    nonce: nonce(64),
  },
  {
    ...usual,
    name: 'DELETE with a body; names that sort by bytes, values with commas, quotes and spaces',
    route: route({ signed_headers: ['x-a'] }),
    also_signed: ['x-b', 'x-a_c', 'x-a-c', 'x0'],
    request: request('DELETE', '/v1/orders/17', {
      headers: [
        ['X-B', '\t b '],
        ['x-a_c', '1="2"'],
        ['X-A-C', 'one,  two'],
        ['x0', '"\\'],
        ['x-a', '-'],
      ],
      body_base64: Buffer.of(0, 255, 10).toString('base64'),
    }),
    nonce: nonce(80),
  },
  {
    ...usual,
    name: 'names with quotes and backslashes',
    key_id: 'key"\\7',
    auth_site: 'shop"\\eu',
    route: route(),
    request: request('HEAD', '/v1/orders'),
    nonce: '-'.repeat(86),
  },
  {
    ...usual,
    name: 'the Authorization of the application, signed',
    route: route({ passport_header: 'X-Proofgate-Passport', signed_headers: ['authorization'] }),
    request: request('GET', '/v1/orders/17', { headers: [['AUTHORIZATION', 'Bearer application']] }),
    nonce: nonce(96),
  },
  {
    ...usual,
    name: 'a digest of an earlier body, which is replaced',
    route: route(),
    request: request('GET', '/v1/orders?q=??', { headers: [['content-digest', 'sha-256=:AAAA:'], json] }),
    nonce: nonce(112),
  },
  {
    ...usual,
    name: 'an earlier signature of the signer, which is replaced',
    route: route(),
    request: request('GET', '/v1/orders/17', {
      headers: [
        ['signature-input', 'sig=("@method" "@target-uri");created=1;tag="proofgate/shop-eu"'],
        ['Signature', 'sig=:AAAA:'],
      ],
    }),
    nonce: nonce(128),
  },
];

export function httpMessageVectors(): readonly HttpMessageVector[] {
  return CASES.map((given) => {
    const { also_signed, auth_site, key, key_id, name, request: sent, route: its } = given;
    const digest = digestOf(its.body, sent);
    const headers =
      digest === undefined ? sent.headers : [...without(sent.headers, 'content-digest'), digest];
    const names = new Set([...its.signed_headers, ...also_signed]);
    if (digest !== undefined) {
      names.add('content-digest');
      if (has(headers, 'content-type')) names.add('content-type');
    }
    const fields = [...names].sort();
    const params = [
      `(${['@method', '@target-uri', ...fields].map(quoted).join(' ')})`,
      `created=${CREATED};expires=${EXPIRES};nonce=${quoted(given.nonce)}`,
      `keyid=${quoted(key_id)};tag=${quoted(`proofgate/${auth_site}`)}`,
    ].join(';');
    const signature_base = [
      `"@method": ${sent.method}`,
      `"@target-uri": ${sent.scheme}://${authorityOf(sent)}${sent.target}`,
      ...fields.map((field) => `"${field}": ${fieldValue(headers, field)}`),
      `"@signature-params": ${params}`,
    ].join('\n');
    const signature = signSameEachTime(keyNamed(key), Buffer.from(signature_base)).toString('base64');
    return {
      name,
      ...{ key, key_id, auth_site, route: its, request: sent, also_signed, nonce: given.nonce },
      ...{ created: CREATED, expires: EXPIRES, signature_base },
      headers: {
        ...(digest && { 'Content-Digest': digest[1] }),
        'Signature-Input': `sig=${params}`,
        Signature: `sig=:${signature}:`,
      },
    };
  });
}

function keyNamed(name: string) {
  const key = ALL_TEST_KEYS.get(name);
  if (key === undefined) throw new Error(`no key ${name}`);
  return key;
}

/** A bound body's, and in place of another that the request has. */
function digestOf(
  rule: 'bound' | 'unbound',
  { body_base64, headers, method }: Case['request'],
): HeaderPair | undefined {
  const body = Buffer.from(body_base64, 'base64');
  const isNeeded =
    body.length > 0 || ['POST', 'PUT', 'PATCH'].includes(method) || has(headers, 'content-digest');
  if (rule === 'unbound' || !isNeeded) return undefined;
  return ['Content-Digest', `sha-256=:${createHash('sha256').update(body).digest('base64')}:`];
}

function authorityOf({ authority, scheme }: Case['request']): string {
  return authority.toLowerCase().replace(scheme === 'https' ? /:443$/ : /:80$/, '');
}

const quoted = (text: string) => `"${text.replace(/["\\]/g, '\\$&')}"`;
const isNamed =
  (wanted: string) =>
  ([name]: HeaderPair) =>
    name.toLowerCase() === wanted;
const has = (headers: readonly HeaderPair[], name: string) => headers.some(isNamed(name));
const without = (headers: readonly HeaderPair[], name: string) =>
  headers.filter((header) => !isNamed(name)(header));

function fieldValue(headers: readonly HeaderPair[], name: string): string {
  const [found, ...others] = headers.filter(isNamed(name));
  if (found === undefined || others.length > 0) throw new Error(`${name} is not there once`);
  return found[1].replace(/^[ \t]+|[ \t]+$/g, '');
}
