/** Requests with HTTP message signatures, the routes that accept them, and attacks on them with the answers that they must get. */
import { hash } from 'node:crypto';
import { expect } from '@jest/globals';
import {
  type HeaderLine,
  headerValues,
  type WireClient,
  type WireRequest,
} from '../../src/tools/conformance/wire/exchange.ts';
import { type HttpSigningOptions, newNonce, signHttp } from '../support/protocol/http-signer.ts';
import { AUTHORITY, IPV6_AUTHORITY, ROUTES, type SiteRoute } from '../support/site/routes.ts';
import { AUTH_SITE, nowSeconds, type Site } from '../support/site/site.ts';

export const READ: SiteRoute = {
  ...ROUTES.readOrder,
  route_id: 'signed-read',
  path_template: '/v1/signed/{order_id}',
  accepted_proofs: ['http-message-signatures'],
};
export const WRITE: SiteRoute = {
  ...READ,
  route_id: 'signed-write',
  method: 'POST',
  path_template: '/v1/signed',
  signed_headers: ['x-tenant'],
};
export const EITHER: SiteRoute = {
  ...READ,
  route_id: 'either-read',
  path_template: '/v1/either/{order_id}',
  accepted_proofs: ['transcript-v1', 'http-message-signatures'],
};

export const BODY = Buffer.from('{"item":"book"}');
export const FIELDS = ['@method', '@target-uri', 'content-digest', 'content-type', 'x-tenant'];

export interface Plan {
  readonly method?: string;
  readonly target?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Buffer;
  readonly sign?: Partial<HttpSigningOptions>;
}

export const READ_PLAN: Plan = { target: '/v1/signed/4711?fields=id' };
export const WRITE_PLAN: Plan = {
  method: 'POST',
  target: '/v1/signed?dry=1',
  headers: { 'content-type': 'application/json', 'x-tenant': 'acme' },
  body: BODY,
  sign: { fields: FIELDS },
};

export async function sign(
  site: Site,
  { body, headers = {}, method = 'GET', sign: options, target = '/' }: Plan,
) {
  const usual = { key: site.derivedKeys.dk_billing, keyId: 'dk_billing', authSite: AUTH_SITE };
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

export type Signed = Awaited<ReturnType<typeof sign>>;

export async function answerOf(client: WireClient, request: WireRequest): Promise<string> {
  const { body, headers, status } = await client.send(request);
  if (status === 200) return '200';
  const [reason] = headerValues(headers, 'x-proofgate-reason');
  const { detail } = JSON.parse(body.toString()) as { readonly detail?: string };
  return `${status} ${reason}${detail === undefined ? '' : `/${detail}`}`;
}

export function withHeader(request: Signed, name: string, change: (value: string) => string): Signed {
  const changed = request.headers.map(([key, value]) => [key, key === name ? change(value) : value] as const);
  expect(changed).not.toEqual(request.headers);
  return { ...request, headers: changed as [string, string][] };
}

export const withLine = (request: Signed, ...line: HeaderLine): Signed => ({
  ...request,
  headers: [...request.headers, [line[0], line[1]]],
});
export const withoutHeader = (request: Signed, name: string): Signed => ({
  ...request,
  headers: request.headers.filter(([key]) => key !== name),
});
const digestOf = (body: Buffer) => `sha-256=:${hash('sha256', body, 'base64')}:`;
const OTHER_BODY = Buffer.from('{"item":"cash"}');

/** Each changes one thing of a signed request for {@link WRITE}. */
export const ATTACKS: readonly (readonly [
  name: string,
  change: (request: Signed) => Signed,
  answer: string,
])[] = [
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
    'a malformed passport',
    (r) => withLine(r, 'authorization', 'Passport a.b.c'),
    '401 invalid_request_proof/passport_malformed',
  ],
  [
    'a bearer',
    (r) => withLine(r, 'authorization', 'Bearer x'),
    '401 invalid_request_proof/authorization_scheme',
  ],
];
