/**
 * The operators' identity provider: a real OpenID provider (oidc-provider) on loopback HTTPS, with its own pages for signing in
 * and consent. The typed name becomes the signed-in user. Its key set can be falsified.
 *
 *     const provider = await startOidcProvider({ certificate, redirectUris: [`${control}/auth/callback`] });
 *     provider.accounts.set('ada', { name: 'Ada', groups: ['platform'] });
 */
import { generateKeyPairSync } from 'node:crypto';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import type Provider from 'oidc-provider';

export interface OidcProviderOptions {
  /** PEM; good for `localhost`. */
  readonly certificate: { readonly cert: string; readonly key: string };
  readonly redirectUris: readonly string[];
  /** Where it tells the claims of scopes: with the ID token, or at the userinfo endpoint alone, as is its default. */
  readonly claimsIn: 'id_token' | 'userinfo';
}

export const OIDC_CLIENT_ID = 'proofgate-control';
export const OIDC_CLIENT_SECRET = 'a-client-secret-that-only-tests-know';

type Claims = { readonly [claim: string]: unknown };

export class OidcProvider {
  readonly issuer: string;
  /** Claims by the name that signs in. */
  readonly accounts = new Map<string, Claims>();
  /** Requests to each path so far. */
  readonly requests = new Map<string, number>();
  /** Published instead of the key set that signs the tokens. */
  publishedKeys: object | undefined;
  /** Answers nothing any more: connections end. */
  isDown = false;
  readonly #server: Server;

  constructor(server: Server, make: typeof Provider, options: OidcProviderOptions) {
    this.#server = server;
    this.issuer = `https://localhost:${(server.address() as AddressInfo).port}`;
    const handle = new make(this.issuer, this.#configuration(options)).callback();
    server.on('request', (request, response) => {
      const path = request.url?.split('?', 1)[0] ?? '';
      this.requests.set(path, (this.requests.get(path) ?? 0) + 1);
      if (this.isDown) return request.socket.destroy();
      if (path === '/jwks' && this.publishedKeys !== undefined) {
        response.writeHead(200, { 'content-type': 'application/jwk-set+json' });
        return response.end(JSON.stringify(this.publishedKeys));
      }
      return void handle(request, response);
    });
  }

  #configuration({ claimsIn, redirectUris }: OidcProviderOptions) {
    return {
      clients: [
        {
          client_id: OIDC_CLIENT_ID,
          client_secret: OIDC_CLIENT_SECRET,
          redirect_uris: redirectUris,
          grant_types: ['authorization_code'],
          response_types: ['code'],
        },
      ],
      jwks: { keys: [newSigningJwk('provider-key')] },
      cookies: { keys: ['signs the cookies of a provider that lives for one test'] },
      claims: { openid: ['sub', 'groups'], profile: ['name'], email: ['email'] },
      conformIdTokenClaims: claimsIn === 'userinfo',
      pkce: { required: () => true },
      ttl: {
        AccessToken: 600,
        AuthorizationCode: 60,
        Grant: 600,
        IdToken: 600,
        Interaction: 600,
        Session: 600,
      },
      findAccount: async (_context: unknown, id: string) => ({
        accountId: id,
        claims: async () => ({ sub: id, ...this.accounts.get(id) }),
      }),
    };
  }

  close(): Promise<void> {
    return new Promise((resolve) => {
      this.#server.close(() => resolve());
      this.#server.closeAllConnections();
    });
  }
}

export async function startOidcProvider(options: OidcProviderOptions): Promise<OidcProvider> {
  const server = createServer(options.certificate);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return quietly(async () => new OidcProvider(server, (await import('oidc-provider')).default, options));
}

/** RSA, private. @param kid what it is called */
export function newSigningJwk(kid: string): object {
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  return { ...privateKey.export({ format: 'jwk' }), kid, use: 'sig', alg: 'RS256' };
}

/** It warns on the console about the pages for development, which are the ones wanted here, and about the runtime. */
export async function quietly<T>(work: () => Promise<T>): Promise<T> {
  const { info, warn } = console;
  Object.assign(console, { info: () => {}, warn: () => {} });
  try {
    return await work();
  } finally {
    Object.assign(console, { info, warn });
  }
}
