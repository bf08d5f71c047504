/** Routes for everyone: discovery, signing keys and challenges. */

import { formatMoment } from '../../protocol/rfc3339.ts';
import { BROKER_CHALLENGE, BROKER_DISCOVERY, BROKER_JWKS } from '../broker-contract.ts';
import { type BrokerSettings, MAX_PASSPORT_TTL_SECONDS, type SigningKeys } from '../broker-ports.ts';
import type { Challenges } from '../challenges.ts';
import type { BrokerApp } from './broker-http.ts';

export interface PublicRoutesOptions {
  readonly settings: BrokerSettings;
  readonly signingKeys: SigningKeys;
  readonly challenges: Challenges;
}

export function registerPublicRoutes(app: BrokerApp, options: PublicRoutesOptions): void {
  const { settings, signingKeys, challenges } = options;
  app.post(
    '/v1/challenges',
    { schema: { summary: 'Create a challenge', response: { 200: BROKER_CHALLENGE } } },
    async () => {
      const { challenge, expiresAtMs } = challenges.create();
      return { challenge, expires_at: formatMoment(expiresAtMs) };
    },
  );
  app.get(
    '/.well-known/proofgate-broker',
    { schema: { summary: 'Describe the broker', response: { 200: BROKER_DISCOVERY } } },
    async () => ({
      issuer: settings.issuer,
      jwks_uri: `${settings.publicUrl}/jwks.json`,
      trust_domains: [...signingKeys.trustDomains()],
      proofs: [
        'mtls' as const,
        'signed_form' as const,
        ...(settings.acceptsJwtSvids ? (['jwt_svid'] as const) : []),
        'software_key' as const,
      ],
      algorithms: ['Ed25519' as const, 'ES256' as const],
      max_passport_ttl_seconds: Math.min(settings.passportTtlSeconds, MAX_PASSPORT_TTL_SECONDS),
      serves_proofs: settings.servesProofs,
    }),
  );
  app.get(
    '/jwks.json',
    { schema: { summary: "The broker's public signing keys", response: { 200: BROKER_JWKS } } },
    async () => ({
      keys: signingKeys.published().map(({ keyId, trustDomain, publicKey }) => ({
        ...publicKey.jwk,
        kid: keyId,
        alg: publicKey.algorithm,
        use: 'sig' as const,
        trust_domain: trustDomain,
      })),
    }),
  );
}
