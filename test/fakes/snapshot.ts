/**
 * A site with everything that decisions depend on: brokers, clients, derived keys of both algorithms, and a route for each
 * rule. Its documents go through the real compiler.
 */

import { compileBundle } from '../../src/bundle/compile/compile.ts';
import type { Snapshot } from '../../src/bundle/compile/snapshot.ts';
import { BUNDLE_FORMAT } from '../../src/bundle/format/bundle-limits.ts';
import { headOf } from '../../src/bundle/format/chain.ts';
import type { BundleContent } from '../../src/bundle/format/schema.ts';
import { asContent } from '../../src/bundle/format/shape.ts';
import { importPublicKey } from '../../src/protocol/import-public-key.ts';
import type { PublicJwk, PublicKey } from '../../src/protocol/public-key.ts';
import { formatTime } from '../../src/protocol/rfc3339.ts';
import type { SigningKey } from '../../src/protocol/signing.ts';
import {
  AUTH_SITE,
  BROKER_ISSUER,
  CLIENT_ISSUER,
  NOW_SECONDS,
  newSigningKey,
  ORIGIN,
  TRUST_DOMAIN,
} from './bundle-content.ts';

export const AUTOMATION_ISSUER = 'https://automation.shop.example';
export const PARTNERS_ORIGIN = 'https://partners.shop.example:8443';
export const INTERNAL_ORIGIN = 'http://internal.shop.example';
export const SKEW_SECONDS = 5;
/** Of `bounded` routes. */
export const MAX_STALENESS_SECONDS = 300;
export const MAX_BROKER_PASSPORT_TTL_SECONDS = 600;
/** How old the bundle is at {@link NOW_SECONDS}. */
export const BUNDLE_AGE_SECONDS = 3;

export interface SiteKeys {
  /** Ed25519, `attested_workload`. */
  readonly broker: SigningKey;
  /** ES256, of the same broker. */
  readonly brokerEc: SigningKey;
  /** Ed25519, `software`. */
  readonly automation: SigningKey;
  /** Ed25519, derived for client `billing`. */
  readonly billing: SigningKey;
  /** ES256, derived for client `reporting`, which may only read. */
  readonly reporting: SigningKey;
  readonly revoked: SigningKey;
}

export function newSiteKeys(): SiteKeys {
  return {
    broker: newSigningKey(),
    brokerEc: newSigningKey('ES256'),
    automation: newSigningKey(),
    billing: newSigningKey(),
    reporting: newSigningKey('ES256'),
    revoked: newSigningKey(),
  };
}

export const KEY_ID = {
  broker: 'broker-ed',
  brokerEc: 'broker-ec',
  automation: 'automation-1',
  billing: 'dk_billing',
  reporting: 'dk_reporting',
  revoked: 'dk_revoked',
} as const satisfies { readonly [K in keyof SiteKeys]: string };

/** What the route `everything` requires, and every caller of the site has. */
export const PROVENANCE = { image: 'sha256:aaaa', zone: 'eu-1' };
export const CONTEXT = { environment: 'production', team: 'payments' };

type Mutable<T> = T extends readonly (infer Item)[]
  ? Mutable<Item>[]
  : T extends object
    ? { -readonly [Name in keyof T]: Mutable<T[Name]> }
    : T;

/** Content that a test may change before it is compiled. */
export type SiteContent = Mutable<BundleContent>;
type RouteContent = SiteContent['routes'][number];
type SourceContent = SiteContent['route_sources'][number]['allowed_sources'][number];

export function siteContent(keys: SiteKeys): SiteContent {
  const routes = siteRoutes();
  return {
    format: BUNDLE_FORMAT,
    auth_site: AUTH_SITE,
    revision: 7,
    issued_at: formatTime(NOW_SECONDS - BUNDLE_AGE_SECONDS),
    expires_at: formatTime(NOW_SECONDS + 86_400),
    skew_seconds: SKEW_SECONDS,
    origins: [ORIGIN, PARTNERS_ORIGIN, INTERNAL_ORIGIN],
    single_verifier: true,
    issuers: siteIssuers(keys),
    clients: siteClients(),
    derived_keys: siteDerivedKeys(keys),
    routes,
    route_sources: routes.map(({ route_id }) => ({
      route_id,
      allowed_sources: route_id === 'attested' ? siteSources().slice(2, 3) : siteSources(),
    })),
  };
}

function siteIssuers(keys: SiteKeys): NonNullable<SiteContent['issuers']> {
  const issuerKey = (name: 'broker' | 'brokerEc' | 'automation') => {
    const { algorithm, jwk } = keys[name].publicKey;
    return { kid: KEY_ID[name], alg: algorithm, jwk };
  };
  return [
    {
      issuer: BROKER_ISSUER,
      trust_domain: TRUST_DOMAIN,
      subject_prefixes: [`spiffe://${TRUST_DOMAIN}/`],
      key_binding: 'attested_workload',
      max_passport_ttl_seconds: MAX_BROKER_PASSPORT_TTL_SECONDS,
      keys: [issuerKey('broker'), issuerKey('brokerEc')],
    },
    {
      issuer: AUTOMATION_ISSUER,
      trust_domain: TRUST_DOMAIN,
      subject_prefixes: ['ci:'],
      key_binding: 'software',
      keys: [issuerKey('automation')],
    },
  ];
}

function siteClients(): NonNullable<SiteContent['clients']> {
  const client = { issuer: CLIENT_ISSUER, trust_domain: TRUST_DOMAIN };
  const readable = ['catalog', 'tenants', 'forward', 'partners', 'internal'];
  const read = readable.map((resource) => ({ resource, access: 'read' as const }));
  const written = ['orders', 'uploads', 'everything'];
  const write = written.map((resource) => ({ resource, access: 'write' as const }));
  return [
    {
      ...client,
      client_id: 'billing',
      subject: 'client:billing',
      context: { ...CONTEXT },
      grants: [...read, ...write],
    },
    {
      ...client,
      client_id: 'reporting',
      subject: 'client:reporting',
      context: { ...CONTEXT },
      grants: [...read, { resource: 'orders', access: 'read' }],
    },
  ];
}

function siteDerivedKeys(keys: SiteKeys): NonNullable<SiteContent['derived_keys']> {
  const derivedKey = (name: 'billing' | 'reporting' | 'revoked', client_id: string) => ({
    key_id: KEY_ID[name],
    client_id,
    jwk: keys[name].publicKey.jwk,
    status: name === 'revoked' ? ('revoked' as const) : ('active' as const),
    expires_at: formatTime(NOW_SECONDS + 3600),
    provenance: { ...PROVENANCE },
  });
  return [
    derivedKey('billing', 'billing'),
    derivedKey('reporting', 'reporting'),
    derivedKey('revoked', 'billing'),
  ];
}

function siteSources(): SourceContent[] {
  const client = { issuer: CLIENT_ISSUER, trust_domain: TRUST_DOMAIN, required_key_binding: 'software' };
  return [
    { ...client, required_key_binding: 'software', subject_exact: 'client:billing' },
    { ...client, required_key_binding: 'software', subject_exact: 'client:reporting' },
    {
      issuer: BROKER_ISSUER,
      trust_domain: TRUST_DOMAIN,
      subject_prefix: `spiffe://${TRUST_DOMAIN}/ns/prod/`,
      required_key_binding: 'attested_workload',
    },
    {
      issuer: AUTOMATION_ISSUER,
      trust_domain: TRUST_DOMAIN,
      subject_prefix: 'ci:',
      required_key_binding: 'software',
    },
  ];
}

function siteRoutes(): RouteContent[] {
  const bounded = { freshness_class: 'bounded', max_staleness_seconds: MAX_STALENESS_SECONDS };
  const get = (
    route_id: string,
    path_template: string,
    resource: string,
    changes: Partial<RouteContent>,
  ) => ({
    route_id,
    method: 'GET',
    path_template,
    audience: ORIGIN,
    freshness_class: 'realtime',
    resource,
    ...changes,
  });
  return [
    get('orders-read', '/v1/orders/{order_id}', 'orders', bounded),
    get('orders-write', '/v1/orders', 'orders', { ...bounded, method: 'POST' }),
    get('orders-cancel', '/v1/orders/{order_id}', 'orders', { ...bounded, method: 'DELETE' }),
    get('prices', '/v1/prices', 'catalog', {}),
    get('prices-capped', '/v1/prices/capped', 'catalog', { max_staleness_seconds: 4 }),
    get('future', '/v1/future', 'catalog', { freshness_class: 'eventual' }),
    get('uploads', '/v1/uploads/{name*}', 'uploads', { ...bounded, method: 'PUT', body: 'unbound' }),
    get('tenants', '/v1/tenants', 'tenants', { ...bounded, signed_headers: ['x-tenant', 'accept'] }),
    get('forward', '/v1/forward', 'forward', { ...bounded, forward_authorization: true }),
    get('partners', '/v1/partners', 'partners', { ...bounded, origins: [PARTNERS_ORIGIN] }),
    get('internal', '/v1/internal', 'internal', {
      ...bounded,
      audience: 'urn:internal',
      origins: [INTERNAL_ORIGIN],
    }),
    get('attested', '/v1/attested', 'catalog', bounded),
    get('everything', '/v1/everything/{id}', 'everything', {
      ...bounded,
      method: 'POST',
      origins: [ORIGIN, PARTNERS_ORIGIN],
      signed_headers: ['x-tenant'],
      required_provenance: { zone: [PROVENANCE.zone], image: [PROVENANCE.image, 'sha256:bbbb'] },
      required_context: { team: [CONTEXT.team], environment: [CONTEXT.environment] },
    }),
    get('bearer', '/v1/bearer', 'forward', { ...bounded, passport_header: 'X-Proofgate-Passport' }),
  ];
}

export type RouteId =
  | 'orders-read'
  | 'orders-write'
  | 'orders-cancel'
  | 'prices'
  | 'prices-capped'
  | 'future'
  | 'uploads'
  | 'tenants'
  | 'forward'
  | 'partners'
  | 'internal'
  | 'attested'
  | 'everything'
  | 'bearer';

/** The entries of a list that a test wants to change. Fails when there is none. */
export function entriesWhere<T>(list: readonly T[] | undefined, wanted: (entry: T) => boolean): T[] {
  const found = (list ?? []).filter(wanted);
  if (found.length === 0) throw new Error('the content has no such entry');
  return found;
}

export function routeContentOf(content: SiteContent, routeId: RouteId): RouteContent {
  return only(entriesWhere(content.routes, ({ route_id }) => route_id === routeId));
}

export function sourcesOf(content: SiteContent, routeId: RouteId): SourceContent[] {
  return only(entriesWhere(content.route_sources, ({ route_id }) => route_id === routeId)).allowed_sources;
}

function only<T>([entry]: readonly T[]): T {
  if (entry === undefined) throw new Error('the content has no such entry');
  return entry;
}

/** Checking an Ed25519 key costs as much as a verification, and tests compile the same keys thousands of times. */
const importedKeys = new Map<string, PublicKey>();

function importKeyOnce(jwk: PublicJwk): PublicKey | undefined {
  const id = JSON.stringify(jwk);
  const key = importedKeys.get(id) ?? importPublicKey(jwk);
  if (key !== undefined) importedKeys.set(id, key);
  return key;
}

/** Compiles as a load does; the head is that of a first document with this content. */
export async function compileSite(content: SiteContent): Promise<Snapshot> {
  const payload = JSON.stringify(content);
  const shaped = asContent('bundle', JSON.parse(payload), 'bundle.jws');
  const head = headOf(undefined, Buffer.from(payload)) ?? '';
  return compileBundle(shaped, { file: 'bundle.jws', head, importKey: importKeyOnce });
}
