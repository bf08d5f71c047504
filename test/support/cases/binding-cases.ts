/** Cases about the binding of a proof: body, headers, place. */
import {
  type HeaderLine,
  type RequestEdits,
  type RequestPlan,
  withHeader,
  withoutHeader,
} from '../fixtures/signed-request.ts';
import { type CaseGroup, everything, read, received, write } from './request-cases.ts';

const NO_HASH = Buffer.alloc(32).toString('base64url');
const tenants: RequestPlan = { caller: 'billing', route: 'tenants' };
const addedLine = (...lines: readonly HeaderLine[]): RequestEdits => ({
  received: (request) => ({ ...request, headers: [...request.headers, ...lines] }),
});

export const BINDING_CASES: readonly CaseGroup[] = [
  {
    title: 'the body',
    cases: [
      {
        name: 'one byte more',
        plan: write,
        edits: received({ body: { kind: 'exact', bytes: Buffer.from('{"amount":1} ') } }),
        outcome: 'request_binding_mismatch/content-sha256 403',
      },
      {
        name: 'gone',
        plan: write,
        edits: received({ body: { kind: 'none' } }),
        outcome: 'request_binding_mismatch/content-sha256 403',
      },
      { name: 'empty, hashed', plan: { ...write, body: Buffer.alloc(0) }, outcome: 'allowed' },
      {
        name: 'empty, hashed, and the door saw none',
        plan: { ...write, body: Buffer.alloc(0) },
        edits: received({ body: { kind: 'none' } }),
        outcome: 'allowed',
      },
      {
        name: 'empty, not hashed',
        plan: { ...write, body: Buffer.alloc(0) },
        edits: { transcript: (draft) => void Object.assign(draft, { contentSha256: '-' }) },
        outcome: 'request_binding_mismatch/content-sha256 403',
      },
      { name: 'of a GET', plan: { ...read, body: Buffer.from('x') }, outcome: 'allowed' },
      {
        name: 'of a GET, not signed',
        plan: read,
        edits: received({ body: { kind: 'exact', bytes: Buffer.from('x') } }),
        outcome: 'request_binding_mismatch/content-sha256 403',
      },
      {
        name: 'empty, of a GET, hashed',
        plan: { ...read, body: Buffer.alloc(0) },
        outcome: 'request_binding_mismatch/content-sha256 403',
      },
      {
        name: 'unknown, of a GET',
        plan: read,
        edits: received({ body: { kind: 'unknown' } }),
        outcome: 'request_binding_mismatch/body_unavailable 403',
      },
      {
        name: 'unknown, unbound',
        plan: { caller: 'billing', route: 'uploads' },
        edits: received({ body: { kind: 'unknown' } }),
        outcome: 'allowed',
      },
      {
        name: 'hashed, unbound',
        plan: { caller: 'billing', route: 'uploads' },
        edits: { transcript: (draft) => void Object.assign(draft, { contentSha256: NO_HASH }) },
        outcome: 'request_binding_mismatch/content-sha256 403',
      },
    ],
  },
  {
    title: 'signed headers',
    cases: [
      { name: 'all there', plan: tenants, outcome: 'allowed' },
      {
        name: 'missing',
        plan: tenants,
        edits: { received: (request) => withoutHeader(request, 'x-tenant') },
        outcome: 'request_binding_mismatch/header.x-tenant 403',
        onWire: { what: 'a header that the route requires, taken away' },
      },
      {
        name: 'empty',
        plan: tenants,
        edits: { received: (request) => withHeader(request, 'x-tenant', () => '') },
        outcome: 'request_binding_mismatch/header.x-tenant 403',
      },
      {
        name: 'twice',
        plan: tenants,
        edits: addedLine({ name: 'x-tenant', value: 'acme' }),
        outcome: 'request_binding_mismatch/header.x-tenant 403',
      },
      {
        name: 'twice, in other capitals',
        plan: tenants,
        edits: addedLine({ name: 'X-Tenant', value: 'other' }),
        outcome: 'request_binding_mismatch/header.x-tenant 403',
      },
      {
        name: 'both changed: the first in order',
        plan: tenants,
        edits: {
          received: (request) =>
            withHeader(
              withHeader(request, 'x-tenant', () => 'b'),
              'accept',
              () => 'a',
            ),
        },
        outcome: 'request_binding_mismatch/header.accept 403',
      },
      {
        name: 'one of two not signed',
        plan: tenants,
        edits: { transcript: (draft) => void draft.headers.pop() },
        outcome: 'request_binding_mismatch/headers 403',
        onWire: { what: 'a header that the route requires, unsigned' },
      },
      {
        name: 'white space around the value',
        plan: tenants,
        edits: { received: (request) => withHeader(request, 'x-tenant', (value) => `\t ${value} `) },
        outcome: 'allowed',
      },
      {
        name: 'a value that ends the line and adds another',
        plan: tenants,
        edits: {
          received: (request) => withHeader(request, 'accept', (value) => `${value}\nheader.x-tenant=acme`),
        },
        outcome: 'request_binding_mismatch/header.accept 403',
      },
      {
        name: 'more than the route asks for',
        plan: read,
        edits: {
          transcript: (draft) => void draft.headers.push({ name: 'x-mine', value: 'v' }),
          ...addedLine({ name: 'x-mine', value: 'v' }),
        },
        outcome: 'allowed',
      },
      {
        name: 'more than the route asks for, and not there',
        plan: read,
        edits: { transcript: (draft) => void draft.headers.push({ name: 'x-mine', value: 'v' }) },
        outcome: 'request_binding_mismatch/header.x-mine 403',
      },
    ],
  },
  {
    title: 'where it goes',
    cases: [
      {
        name: 'the same authority in capitals, with the default port',
        plan: read,
        edits: received({ authority: 'API.Shop.Example:443' }),
        outcome: 'allowed',
      },
      {
        name: 'with the default port of the other scheme',
        plan: read,
        edits: received({ authority: 'api.shop.example:80' }),
        outcome: 'bundle_route_missing/origin 403',
      },
      {
        name: 'a trailing dot',
        plan: read,
        edits: received({ authority: 'api.shop.example.' }),
        outcome: 'bundle_route_missing/origin 403',
        onWire: { what: 'a trailing dot' },
      },
      {
        name: "an origin of the site's, not of the route's",
        plan: { caller: 'billing', route: 'partners' },
        edits: received({ authority: 'api.shop.example' }),
        outcome: 'bundle_route_missing/origin 403',
      },
      {
        name: "another origin of the route's than the one that was signed",
        plan: everything,
        edits: received({ authority: 'partners.shop.example:8443' }),
        outcome: 'request_binding_mismatch/authority 403',
      },
      {
        name: 'another scheme',
        plan: read,
        edits: received({ scheme: 'http' }),
        outcome: 'bundle_route_missing/origin 403',
      },
      {
        name: 'a scheme that swallows the authority',
        plan: read,
        edits: received({ scheme: 'https://api.shop.example', authority: '' }),
        outcome: 'bundle_route_missing/origin 403',
      },
      {
        name: 'another query',
        plan: read,
        edits: { received: (request) => ({ ...request, target: `${request.target}&fields=secret` }) },
        outcome: 'request_binding_mismatch/target 403',
      },
      {
        name: 'another item',
        plan: read,
        edits: received({ target: '/v1/orders/18?fields=id&fields=total' }),
        outcome: 'request_binding_mismatch/target 403',
        onWire: { what: 'another resource' },
      },
      {
        name: "another route's method",
        plan: read,
        edits: received({ method: 'DELETE' }),
        outcome: 'request_binding_mismatch/route-id 403',
      },
      {
        name: 'the scheme of the header in other capitals',
        plan: read,
        edits: {
          received: (request) =>
            withHeader(request, 'authorization', (value) => value.replace('Passport', 'pASSPORT')),
        },
        outcome: 'allowed',
      },
    ],
  },
];
