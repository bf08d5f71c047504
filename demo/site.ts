/** The Auth Site of the demo: who calls, with which key, and what they may do. What a user would write by hand. */
import { stringify } from 'yaml';

export const authSite = 'demo';
const audience = 'https://orders.demo.example';
const issuer = 'https://control.demo.example/sites/demo';
const trustDomain = 'demo.example';
/** Short, so that the demo depends on statements that keep coming. */
const maxStalenessSeconds = 30;
const skewSeconds = 1;
const hourMs = 3_600_000;
/** Longer than anybody leaves the demo running. */
const keyLifeMs = 7 * 24 * hourMs;

export interface Caller {
  /** Names its files, and its key as `dk_<name>`. */
  readonly name: string;
  readonly clientId: string;
  readonly subject: string;
  readonly expiresInMs: number;
}

const caller = (name: string, clientId: string, expiresInMs = keyLifeMs): Caller => ({
  name,
  clientId,
  subject: `client:${clientId}`,
  expiresInMs,
});

export const callers = {
  /** May read and write orders. */
  billing: caller('billing', 'billing'),
  /** May read orders. */
  reporting: caller('reporting', 'reporting'),
  /** A second key of billing, which gets revoked. */
  laptop: caller('laptop', 'billing'),
  /** A third key of billing, which nobody replaced; out of date by far more than clocks may differ. */
  forgotten: caller('forgotten', 'billing', -hourMs),
} as const;

const routes = [
  { route_id: 'orders-read', method: 'GET', path_template: '/orders/{order_id}', resource: 'orders' },
  { route_id: 'orders-write', method: 'POST', path_template: '/orders', resource: 'orders' },
  { route_id: 'payouts-read', method: 'GET', path_template: '/payouts/{payout_id}', resource: 'payouts' },
];

const clients = [
  { client_id: 'billing', grants: [{ resource: 'orders', access: 'write' }] },
  { client_id: 'reporting', grants: [{ resource: 'orders', access: 'read' }] },
  { client_id: 'treasury', grants: [{ resource: 'payouts', access: 'read' }] },
];

export interface BundleInputs {
  /** Scheme and authority that requests are signed for. */
  readonly origin: string;
  /** The public key of each caller, by name: the JWK of its `keygen --public-out` file. */
  readonly publicKeys: ReadonlyMap<string, unknown>;
  readonly revoked: readonly Caller[];
  /** Key expirations are reckoned from here, so that every revision says the same. */
  readonly startedAtMs: number;
}

/** `bundle.yaml`, for `proofgate bundle sign`. */
export function bundleYaml({ origin, publicKeys, revoked, startedAtMs }: BundleInputs): string {
  return stringify({
    format: 'proofgate.bundle/v1',
    auth_site: authSite,
    skew_seconds: skewSeconds,
    single_verifier: true,
    origins: [origin],
    clients: clients.map(({ client_id, grants }) => ({
      client_id,
      issuer,
      trust_domain: trustDomain,
      subject: `client:${client_id}`,
      grants,
    })),
    derived_keys: Object.values(callers).map((key) => ({
      key_id: keyId(key),
      client_id: key.clientId,
      jwk: publicKeys.get(key.name),
      status: revoked.includes(key) ? 'revoked' : 'active',
      expires_at: timeText(startedAtMs + key.expiresInMs),
    })),
    routes: routes.map((route) => ({
      ...route,
      audience,
      freshness_class: 'bounded',
      max_staleness_seconds: maxStalenessSeconds,
    })),
    // Every client may present itself on every route; the grants say who gets through.
    route_sources: routes.map(({ route_id }) => ({
      route_id,
      allowed_sources: [
        { issuer, trust_domain: trustDomain, subject_prefix: 'client:', required_key_binding: 'software' },
      ],
    })),
  });
}

/** The signing profile file of one caller. It names routes that the caller has no grant for, too. */
export function profileYaml(key: Caller, origin: string): string {
  return stringify({
    format: 'proofgate.signing-profile/v1',
    auth_site: authSite,
    key_id: keyId(key),
    issuer,
    trust_domain: trustDomain,
    subject: key.subject,
    key_binding: 'software',
    profiles: routes.map(({ route_id, method, path_template }) => ({
      route_id,
      method,
      path_template,
      audience,
      origins: [origin],
    })),
  });
}

function keyId(key: Caller): string {
  return `dk_${key.name}`;
}

/** RFC 3339 with whole seconds. */
function timeText(timeMs: number): string {
  return new Date(timeMs).toISOString().replace(/\.\d+Z$/, 'Z');
}
