/** The site that the end-to-end tests declare to Control with `ctl apply`. */
import { stringify } from 'yaml';

export const SITE_ID = 'shop-control';
const TRUST_DOMAIN = 'shop.example';
const ISSUER_URL = 'https://control.shop.example/sites/shop-control';
export const AUDIENCE = 'proofgate-shop-control';
const SOURCE_NAME = 'test cluster';
export const TARGET_NAME = 'gateway';
const API_AUDIENCE = 'https://api.shop.example';

/** Whose token becomes whose key, by the policy's name. */
export const POLICIES = {
  billing: { client: 'billing', serviceAccount: 'billing', approval: 'automatic', lifetimeSeconds: 3600 },
  reviewed: { client: 'billing', serviceAccount: 'reviewed', approval: 'manual', lifetimeSeconds: 3600 },
  reporting: {
    client: 'reporting',
    serviceAccount: 'reporting',
    approval: 'automatic',
    lifetimeSeconds: 3600,
  },
  brief: { client: 'billing', serviceAccount: 'brief', approval: 'automatic', lifetimeSeconds: 60 },
  single: { client: 'billing', serviceAccount: 'single', approval: 'automatic', lifetimeSeconds: 3600 },
} as const;
export type PolicyName = keyof typeof POLICIES;

export interface SiteInputs {
  /** Scheme and authority that requests are signed for. */
  readonly origin: string;
  readonly issuer: { readonly issuer: string; readonly jwksUri: string };
  /** Names of verifiers; none is created without them. */
  readonly targets?: readonly string[];
  readonly sourceCapacity?: number;
  /** Freshness limit of each route. Default 30. */
  readonly maxStalenessSeconds?: number;
}

const ROUTES = {
  read: {
    route_id: 'orders-read',
    method: 'GET',
    path_template: '/v1/orders/{order_id}',
    resource: 'orders',
  },
  write: { route_id: 'orders-write', method: 'POST', path_template: '/v1/orders', resource: 'orders' },
  payouts: {
    route_id: 'payouts-read',
    method: 'GET',
    path_template: '/v1/payouts/{id}',
    resource: 'payouts',
  },
} as const;

export function siteYaml({
  origin,
  issuer,
  targets = [TARGET_NAME],
  sourceCapacity,
  maxStalenessSeconds = 30,
}: SiteInputs): string {
  return stringify({
    format: 'proofgate.site/v1',
    environment: 'test',
    fleet: 'one',
    site: {
      site_id: SITE_ID,
      trust_domain: TRUST_DOMAIN,
      issuer_url: ISSUER_URL,
      origins: [origin],
      skew_seconds: 1,
      single_verifier: true,
      ...(sourceCapacity === undefined ? {} : { source_capacity: sourceCapacity }),
    },
    clients: [
      { client_id: 'billing', subject: 'client:billing', grants: [{ resource: 'orders', access: 'write' }] },
      {
        client_id: 'reporting',
        subject: 'client:reporting',
        grants: [{ resource: 'orders', access: 'read' }],
      },
    ],
    routes: Object.values(ROUTES).map((route) => ({
      ...route,
      audience: API_AUDIENCE,
      freshness_class: 'bounded',
      max_staleness_seconds: maxStalenessSeconds,
      allowed_sources: [
        {
          issuer: ISSUER_URL,
          trust_domain: TRUST_DOMAIN,
          subject_prefix: 'client:',
          required_key_binding: 'software',
        },
      ],
    })),
    sources: [
      {
        name: SOURCE_NAME,
        issuer: issuer.issuer,
        jwks_uri: issuer.jwksUri,
        audience: AUDIENCE,
        expected_scope: issuer.issuer.slice('https://'.length),
      },
    ],
    enrollment_policies: Object.entries(POLICIES).map(([name, policy]) => ({
      name,
      source: SOURCE_NAME,
      client: policy.client,
      approval: policy.approval,
      max_key_lifetime_seconds: policy.lifetimeSeconds,
      verified_subject: `system:serviceaccount:prod:${policy.serviceAccount}`,
      ...(name === 'single' ? { max_keys_per_token: 1 } : {}),
    })),
    targets,
  });
}
