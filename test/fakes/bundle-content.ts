/** A small bundle with everything that most tests need, and ways to change one thing of it. */
import { BUNDLE_FORMAT } from '../../src/bundle/format/bundle-limits.ts';
import type { BundleContent } from '../../src/bundle/format/schema.ts';
import { formatTime } from '../../src/protocol/rfc3339.ts';
import { generateSigningKey, type SigningKey } from '../../src/protocol/signing.ts';

/** 2026-11-21T04:00:00Z */
export const NOW_SECONDS = 1_795_233_600;
export const AUTH_SITE = 'shop-eu-1';
export const ORIGIN = 'https://api.shop.example';
export const TRUST_DOMAIN = 'shop.example';
export const BROKER_ISSUER = 'https://broker.shop.example';
export const CLIENT_ISSUER = 'https://control.shop.example/sites/shop-eu-1';

export function newSigningKey(algorithm: 'Ed25519' | 'ES256' = 'Ed25519'): SigningKey {
  return generateSigningKey(algorithm);
}

export interface TestKeys {
  /** Signs documents. */
  readonly bundle: SigningKey;
  /** `broker-1`: signs passports for others. */
  readonly broker: SigningKey;
  /** `dk_billing`: signs its own. */
  readonly derived: SigningKey;
}

export function newTestKeys(): TestKeys {
  return { bundle: newSigningKey(), broker: newSigningKey(), derived: newSigningKey() };
}

/**
 * One broker, one client with one derived key, and a route to read and one to write orders, issued at
 * {@link NOW_SECONDS} for a day.
 */
export function bundleContent(keys: Pick<TestKeys, 'broker' | 'derived'>): BundleContent {
  return {
    format: BUNDLE_FORMAT,
    auth_site: AUTH_SITE,
    revision: 1,
    issued_at: formatTime(NOW_SECONDS),
    expires_at: formatTime(NOW_SECONDS + 86_400),
    origins: [ORIGIN],
    issuers: [
      {
        issuer: BROKER_ISSUER,
        trust_domain: TRUST_DOMAIN,
        subject_prefixes: [`spiffe://${TRUST_DOMAIN}/`],
        key_binding: 'attested_workload',
        keys: [
          {
            kid: 'broker-1',
            alg: keys.broker.publicKey.algorithm,
            jwk: keys.broker.publicKey.jwk,
          },
        ],
      },
    ],
    clients: [
      {
        client_id: 'billing',
        issuer: CLIENT_ISSUER,
        trust_domain: TRUST_DOMAIN,
        subject: 'client:billing',
        context: { environment: 'production' },
        grants: [{ resource: 'orders', access: 'write' }],
      },
    ],
    derived_keys: [
      {
        key_id: 'dk_billing',
        client_id: 'billing',
        jwk: keys.derived.publicKey.jwk,
        status: 'active',
        expires_at: formatTime(NOW_SECONDS + 3600),
        provenance: {
          verified_issuer: 'https://oidc.example',
          verified_subject: 'system:serviceaccount:prod:billing',
        },
      },
    ],
    routes: [
      {
        route_id: 'orders-read',
        method: 'GET',
        path_template: '/v1/orders/{order_id}',
        audience: ORIGIN,
        freshness_class: 'bounded',
        max_staleness_seconds: 300,
        resource: 'orders',
      },
      {
        route_id: 'orders-write',
        method: 'POST',
        path_template: '/v1/orders',
        audience: ORIGIN,
        freshness_class: 'realtime',
        resource: 'orders',
      },
    ],
    route_sources: [
      {
        route_id: 'orders-read',
        allowed_sources: [
          {
            issuer: CLIENT_ISSUER,
            trust_domain: TRUST_DOMAIN,
            subject_exact: 'client:billing',
            required_key_binding: 'software',
          },
          {
            issuer: BROKER_ISSUER,
            trust_domain: TRUST_DOMAIN,
            subject_prefix: `spiffe://${TRUST_DOMAIN}/ns/prod/`,
            required_key_binding: 'attested_workload',
          },
        ],
      },
      {
        route_id: 'orders-write',
        allowed_sources: [
          {
            issuer: CLIENT_ISSUER,
            trust_domain: TRUST_DOMAIN,
            subject_exact: 'client:billing',
            required_key_binding: 'software',
          },
        ],
      },
    ],
  };
}

/** A change of one place: a JSON Pointer and the value to put there; without a value the member is removed. */
export interface Edit {
  readonly at: string;
  readonly put?: unknown;
}

/** A copy of a JSON value with some places changed. `-` as the last step appends to an array. */
export function edited(document: unknown, ...edits: readonly Edit[]): unknown {
  const root: unknown = structuredClone(document);
  for (const edit of edits) applyEdit(root, edit);
  return root;
}

function applyEdit(root: unknown, edit: Edit): void {
  const steps = edit.at.split('/').slice(1);
  const last = steps.pop();
  const parent = steps.reduce<unknown>((value, step) => Reflect.get(asObject(value), step), root);
  if (last === undefined) throw new Error('cannot change the whole document');
  if (Array.isArray(parent) && last === '-') parent.push(edit.put);
  else if (Array.isArray(parent) && !('put' in edit)) parent.splice(Number(last), 1);
  else if (!('put' in edit)) Reflect.deleteProperty(asObject(parent), last);
  else {
    // Not assignment, which would set the prototype for `__proto__`.
    Object.defineProperty(asObject(parent), last, {
      value: edit.put,
      enumerable: true,
      configurable: true,
      writable: true,
    });
  }
}

function asObject(value: unknown): object {
  if (typeof value === 'object' && value !== null) return value;
  throw new Error('no such place');
}
