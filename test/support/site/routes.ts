/**
 * The routes of the site that the end-to-end suite protects, as entries of the bundle and as input of the callers' signatures.
 */

import type { ProofFormat, UnboundPart } from '../../../src/protocol/proof-format.ts';

export const AUTHORITY = 'api.shop.example';
export const IPV6_AUTHORITY = '[2001:db8::1]:8080';
export const ORIGINS = [`http://${AUTHORITY}`, `https://${AUTHORITY}`, `http://${IPV6_AUTHORITY}`];
const AUDIENCE = 'https://api.shop.example';

/** One entry of the bundle's `routes`; what is left out is the same for all of them. */
export interface SiteRoute {
  readonly route_id: string;
  readonly method: string;
  readonly path_template: string;
  readonly audience: string;
  readonly freshness_class: string;
  readonly max_staleness_seconds?: number;
  readonly resource: string;
  readonly signed_headers?: readonly string[];
  readonly body?: 'bound' | 'unbound';
  readonly required_provenance?: Readonly<Record<string, readonly string[]>>;
  readonly required_context?: Readonly<Record<string, readonly string[]>>;
  readonly forward_authorization?: boolean;
  readonly passport_header?: 'X-Proofgate-Passport';
  readonly accepted_proofs?: readonly ProofFormat[];
  readonly unbound?: readonly UnboundPart[];
  readonly dpop_nonce?: 'required';
}

const usual = {
  audience: AUDIENCE,
  freshness_class: 'bounded',
  max_staleness_seconds: 3600,
  resource: 'orders',
} as const;

export const ROUTES = {
  readOrder: {
    ...usual,
    route_id: 'orders-read',
    method: 'GET',
    path_template: '/v1/orders/{order_id}',
  },
  createOrder: { ...usual, route_id: 'orders-create', method: 'POST', path_template: '/v1/orders' },
  replaceOrder: {
    ...usual,
    route_id: 'orders-replace',
    method: 'PUT',
    path_template: '/v1/orders/{order_id}',
  },
  cancelOrder: {
    ...usual,
    route_id: 'orders-cancel',
    method: 'DELETE',
    path_template: '/v1/cancellations/{order_id}',
  },
  /** No client is granted its resource. */
  payroll: {
    ...usual,
    route_id: 'payroll-read',
    method: 'GET',
    path_template: '/v1/payroll',
    resource: 'payroll',
  },
  /** Every source must be an attested workload. */
  vault: { ...usual, route_id: 'vault-read', method: 'GET', path_template: '/v1/vault' },
  admin: {
    ...usual,
    route_id: 'admin-reload',
    method: 'POST',
    path_template: '/v1/admin/reload',
    audience: 'https://admin.shop.example',
  },
  livePrices: {
    route_id: 'prices-live',
    method: 'GET',
    path_template: '/v1/prices/live',
    audience: AUDIENCE,
    freshness_class: 'realtime',
    resource: 'orders',
  },
  recentPrices: {
    ...usual,
    route_id: 'prices-recent',
    method: 'GET',
    path_template: '/v1/prices/recent',
    max_staleness_seconds: 1,
  },
  forecast: {
    ...usual,
    route_id: 'forecast',
    method: 'GET',
    path_template: '/v1/forecast',
    freshness_class: 'eventual',
  },
  releases: {
    ...usual,
    route_id: 'releases',
    method: 'GET',
    path_template: '/v1/releases',
    required_provenance: { verified_issuer: ['https://oidc.shop.example'] },
  },
  ledger: {
    ...usual,
    route_id: 'ledger',
    method: 'GET',
    path_template: '/v1/ledger',
    required_context: { environment: ['production'] },
  },
  tenantOrders: {
    ...usual,
    route_id: 'orders-of-tenant',
    method: 'GET',
    path_template: '/v1/tenant/orders',
    signed_headers: ['x-tenant'],
  },
  whoAmI: {
    ...usual,
    route_id: 'who-am-i',
    method: 'GET',
    path_template: '/v1/whoami',
    forward_authorization: true,
  },
  /** `Authorization` belongs to the application. */
  bearer: {
    ...usual,
    route_id: 'bearer',
    method: 'GET',
    path_template: '/v1/bearer',
    passport_header: 'X-Proofgate-Passport',
  },
  files: { ...usual, route_id: 'files', method: 'GET', path_template: '/v1/files/{path*}' },
  upload: {
    ...usual,
    route_id: 'uploads',
    method: 'PUT',
    path_template: '/v1/uploads',
    body: 'unbound',
  },
  /** Bound routes for whose paths Envoy is wrongly configured to send no body to the verifier. */
  readUnseen: { ...usual, route_id: 'unseen-read', method: 'GET', path_template: '/v1/unseen' },
  createUnseen: { ...usual, route_id: 'unseen-create', method: 'POST', path_template: '/v1/unseen' },
} as const satisfies Record<string, SiteRoute>;

/** Path prefixes that Envoy does not buffer: the first as documented, the second against the documentation. */
export const UNBUFFERED_PREFIXES = ['/v1/uploads', '/v1/unseen'] as const;
