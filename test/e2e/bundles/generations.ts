/**
 * A site whose every revision decides differently, so that tests notice a decision that mixes revisions: routes of one, keys of
 * another, or the revision number of a third.
 *
 * Each whole bundle is a generation. In each, one route requires a context that only this generation's client has, and another
 * route allows one of two clients, alternately. One key ID maps to one of two keys, alternately; deltas change it too.
 */
import type { BundleContent, ClientContent, DerivedKeyContent } from '../../../src/bundle/format/schema.ts';
import { formatTime } from '../../../src/protocol/rfc3339.ts';
import type { SigningKey } from '../../../src/protocol/signing.ts';
import { AUTH_SITE, newSigningKey, ORIGIN, TRUST_DOMAIN } from '../../support/fixtures/bundle-content.ts';

export const ISSUER = 'https://control.shop.example/sites/shop-eu-1';
export type Turn = 'odd' | 'even';

/** The state that a revision decides by. */
export interface Generation {
  readonly generation: number;
  /** The key that `dk_turn` maps to. */
  readonly turnKey: Turn;
}

export const turnOf = (number: number): Turn => (number % 2 === 1 ? 'odd' : 'even');

interface SiteSettings {
  readonly maxStalenessSeconds: number;
  readonly lifetimeSeconds: number;
}
const SETTINGS: SiteSettings = { maxStalenessSeconds: 3600, lifetimeSeconds: 86_400 };

export interface CallerKeys {
  readonly bundle: SigningKey;
  readonly pair: SigningKey;
  readonly odd: SigningKey;
  readonly even: SigningKey;
}

export function newCallerKeys(): CallerKeys {
  return { bundle: newSigningKey(), pair: newSigningKey(), odd: newSigningKey(), even: newSigningKey() };
}

export const nowSeconds = (): number => Math.floor(Date.now() / 1000);

/** A whole bundle's content, without its place in a chain. */
export function contentOf(
  keys: CallerKeys,
  { generation, turnKey }: Generation,
  { lifetimeSeconds, maxStalenessSeconds } = SETTINGS,
): Omit<BundleContent, 'revision' | 'previous_head'> {
  const issuedAtSeconds = nowSeconds();
  const route = { method: 'GET', audience: ORIGIN, freshness_class: 'bounded', resource: 'orders' } as const;
  const source = { issuer: ISSUER, trust_domain: TRUST_DOMAIN, required_key_binding: 'software' } as const;
  return {
    format: 'proofgate.bundle/v1',
    auth_site: AUTH_SITE,
    issued_at: formatTime(issuedAtSeconds),
    expires_at: formatTime(issuedAtSeconds + lifetimeSeconds),
    skew_seconds: 1,
    single_verifier: true,
    origins: [ORIGIN],
    clients: [
      clientNamed('pair', { generation: nameOf(generation) }),
      clientNamed('odd', { environment: 'production' }),
      clientNamed('even', { environment: 'production' }),
    ],
    derived_keys: [
      keyEntry('dk_pair', 'pair', keys.pair),
      keyEntry('dk_odd', 'odd', keys.odd),
      keyEntry('dk_even', 'even', keys.even),
      turnKeyEntry(keys, turnKey),
    ],
    routes: [
      {
        ...route,
        route_id: 'paired',
        path_template: '/v1/paired',
        max_staleness_seconds: maxStalenessSeconds,
        required_context: { generation: [nameOf(generation)] },
      },
      {
        ...route,
        route_id: 'turn',
        path_template: '/v1/turn',
        max_staleness_seconds: maxStalenessSeconds,
      },
    ],
    route_sources: [
      { route_id: 'paired', allowed_sources: [{ ...source, subject_exact: 'client:pair' }] },
      { route_id: 'turn', allowed_sources: [{ ...source, subject_exact: `client:${turnOf(generation)}` }] },
    ],
  };
}

const nameOf = (generation: number): string => `generation-${generation}`;

function clientNamed(name: string, context: Record<string, string>): ClientContent {
  return {
    client_id: name,
    issuer: ISSUER,
    trust_domain: TRUST_DOMAIN,
    subject: `client:${name}`,
    context,
    grants: [{ resource: 'orders', access: 'read' }],
  };
}

/** The entry of `dk_turn`, for a delta that changes its key. */
export function turnKeyEntry(keys: CallerKeys, turn: Turn): DerivedKeyContent {
  return keyEntry('dk_turn', 'pair', keys[turn]);
}

function keyEntry(keyId: string, clientId: string, key: SigningKey): DerivedKeyContent {
  const expires_at = formatTime(nowSeconds() + SETTINGS.lifetimeSeconds);
  return { key_id: keyId, client_id: clientId, jwk: key.publicKey.jwk, status: 'active', expires_at };
}
