/** A real OAuth authorization server (oidc-provider) on loopback HTTPS: DPoP-bound JWT access tokens by client credentials. */
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { newSigningJwk, quietly } from '../../support/fakes/oidc-provider.ts';
import type { TestCertificates } from '../../support/harness/certificates.ts';

export const CLIENT_ID = 'billing';
export const CLIENT_SECRET = 'a-client-secret-that-only-tests-know';

export interface TokenServer {
  readonly issuer: string;
  /** Keys as a bundle lists them. */
  readonly keys: readonly object[];
  stop(): Promise<void>;
}

/** @param certificates good for `localhost` @param audience of the API, as resource indicator (RFC 8707) and in tokens */
export async function startTokenServer(
  { server: certificate }: Pick<TestCertificates, 'server'>,
  audience: string,
): Promise<TokenServer> {
  const server = createServer({ cert: certificate.cert, key: certificate.key });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const issuer = `https://localhost:${(server.address() as AddressInfo).port}`;
  const signingKey = newSigningJwk('token-key');
  const client = {
    ...{ client_id: CLIENT_ID, client_secret: CLIENT_SECRET, dpop_bound_access_tokens: true },
    ...{ grant_types: ['client_credentials'], response_types: [], redirect_uris: [] },
  };
  const resource = { scope: '', audience, accessTokenTTL: 300, accessTokenFormat: 'jwt' };
  const provider = await quietly(async () => {
    const { default: Provider } = await import('oidc-provider');
    return new Provider(issuer, {
      clients: [client],
      jwks: { keys: [signingKey] },
      ttl: { ClientCredentials: 300 },
      features: {
        clientCredentials: { enabled: true },
        devInteractions: { enabled: false },
        dPoP: { enabled: true },
        resourceIndicators: { enabled: true, getResourceServerInfo: async () => resource },
      },
    });
  });
  server.on('request', provider.callback());
  // A bundle has a key's own members alone.
  const jwk = Object.entries(signingKey).filter(([name]) => ['kty', 'n', 'e'].includes(name));
  return {
    issuer,
    keys: [{ kid: 'token-key', alg: 'RS256', jwk: Object.fromEntries(jwk) }],
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
