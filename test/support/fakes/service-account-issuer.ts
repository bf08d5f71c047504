/**
 * A cluster's service-account issuer on this machine: a real HTTPS server with discovery and a key set, keys that rotate, and
 * tokens as a cluster's API server signs them. Faults can be injected into each document.
 *
 *     const issuer = await startServiceAccountIssuer({ certificate, hostname: '127.0.0.1' });
 *     issuer.token({ namespace: 'prod', serviceAccount: 'billing', audience: 'proofgate-shop' });
 *
 * Source: OpenID Connect Discovery 1.0 section 4; Kubernetes "Service Account Issuer Discovery" and the private claims of its
 * tokens.
 */
import { randomUUID } from 'node:crypto';
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import {
  type IssuerSigner,
  makeSigner,
  type SigningAlgorithm,
  signCompact,
} from '../fixtures/token-signer.ts';
import { answerWithFault, type IssuerFault } from './issuer-faults.ts';

export interface ServiceAccountIssuerOptions {
  /** PEM; good for the hostname. */
  readonly certificate: { readonly cert: string; readonly key: string };
  /** In the issuer's URL. Default: the address that it listens on. */
  readonly hostname?: string;
  /** Address of this machine. Default `127.0.0.1`. */
  readonly listenAddress?: string;
  /** Behind the host, such as `/id/4F2A`. Default none. */
  readonly path?: string;
  readonly algorithm?: SigningAlgorithm;
  /** 0, the default, takes any. */
  readonly port?: number;
}

export interface TokenRequest {
  readonly namespace?: string;
  readonly serviceAccount?: string;
  readonly audience?: string;
  /** Default 3600, as a cluster's. */
  readonly expiresInSeconds?: number;
  readonly pod?: string;
  readonly node?: string;
  /** Put over the claims; `undefined` removes one. */
  readonly claims?: { readonly [name: string]: unknown };
  /** Put over the header; `undefined` removes a member. */
  readonly header?: { readonly [name: string]: unknown };
  /** Default: the current key. */
  readonly signer?: IssuerSigner;
  readonly nowMs?: number;
}

/** `metadata`: of an OAuth authorization server (RFC 8414), with the same content as `discovery`. */
export type IssuerDocument = 'discovery' | 'metadata' | 'keys';

export class ServiceAccountIssuer {
  readonly issuer: string;
  readonly jwksUri: string;
  /** Requests so far, for each document, and for anything else. */
  readonly requests = { discovery: 0, metadata: 0, keys: 0, other: 0 };
  /** TCP connections so far. */
  connections = 0;
  lastRequestHeaders: IncomingHttpHeaders = {};
  /** Put over the discovery document; `undefined` removes a member. */
  discoveryOverrides: { readonly [name: string]: unknown } = {};
  /** Put into the key set as they are, beside the issuer's own keys. */
  extraKeys: readonly object[] = [];

  readonly #server: Server;
  readonly #faults = new Map<IssuerDocument, IssuerFault>();
  readonly #path: string;
  #signers: readonly IssuerSigner[];

  constructor(server: Server, options: ServiceAccountIssuerOptions) {
    this.#server = server;
    this.#path = options.path ?? '';
    this.#signers = [makeSigner(options.algorithm ?? 'RS256')];
    const { address, port } = server.address() as AddressInfo;
    this.issuer = `https://${options.hostname ?? address}:${port}${this.#path}`;
    this.jwksUri = `${this.issuer}/keys`;
    server.on('connection', () => {
      this.connections += 1;
    });
    server.on('request', (request, response) => this.#answer(request, response));
  }

  /** The key that tokens are signed with now. */
  get signer(): IssuerSigner {
    const [signer] = this.#signers;
    if (signer === undefined) throw new Error('every key was removed');
    return signer;
  }

  /** A new key signs from now on; the old ones stay published until `dropOldKeys`, as in a cluster. */
  rotate(algorithm: SigningAlgorithm = this.signer.algorithm): IssuerSigner {
    const signer = makeSigner(algorithm);
    this.#signers = [signer, ...this.#signers];
    return signer;
  }

  /** Ends the overlap: only the current key is published. */
  dropOldKeys(): void {
    this.#signers = [this.signer];
  }

  /** Publishes none at all. */
  dropAllKeys(): void {
    this.#signers = [];
  }

  /** From now on, until it is taken away with `undefined`. */
  setFault(document: IssuerDocument, fault: IssuerFault | undefined): void {
    if (fault === undefined) this.#faults.delete(document);
    else this.#faults.set(document, fault);
  }

  keySet(): { readonly keys: readonly object[] } {
    return { keys: [...this.#signers.map(({ jwk }) => jwk), ...this.extraKeys] };
  }

  /** A projected service-account token, a compact JWS. */
  token(request: TokenRequest = {}): string {
    const signer = request.signer ?? this.signer;
    const header = { alg: signer.algorithm, kid: signer.kid, ...request.header };
    return signCompact(header, { ...this.#claims(request), ...request.claims }, signer);
  }

  async close(): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve));
    this.#server.closeAllConnections();
    await closed;
  }

  #claims(request: TokenRequest): object {
    const { namespace = 'prod', serviceAccount = 'billing', audience = 'proofgate-shop' } = request;
    const nowSeconds = Math.floor((request.nowMs ?? Date.now()) / 1000);
    return {
      aud: [audience],
      exp: nowSeconds + (request.expiresInSeconds ?? 3600),
      iat: nowSeconds,
      iss: this.issuer,
      jti: randomUUID(),
      'kubernetes.io': {
        namespace,
        node: { name: request.node ?? 'node-1', uid: randomUUID() },
        pod: { name: request.pod ?? `${serviceAccount}-0`, uid: randomUUID() },
        serviceaccount: { name: serviceAccount, uid: randomUUID() },
      },
      nbf: nowSeconds,
      sub: `system:serviceaccount:${namespace}:${serviceAccount}`,
    };
  }

  #discovery(): object {
    return {
      issuer: this.issuer,
      jwks_uri: this.jwksUri,
      response_types_supported: ['id_token'],
      subject_types_supported: ['public'],
      id_token_signing_alg_values_supported: ['RS256'],
      ...this.discoveryOverrides,
    };
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    const document = this.#documentAt(request.url ?? '');
    this.requests[document ?? 'other'] += 1;
    this.lastRequestHeaders = request.headers;
    if (document === undefined) {
      response.writeHead(404, { 'content-type': 'application/json' }).end('{}');
      return;
    }
    const good = {
      type: document === 'keys' ? 'application/jwk-set+json' : 'application/json',
      body: JSON.stringify(document === 'keys' ? this.keySet() : this.#discovery()),
    };
    answerWithFault(response, good, this.#faults.get(document));
  }

  #documentAt(url: string): IssuerDocument | undefined {
    if (url === `${this.#path}/.well-known/openid-configuration`) return 'discovery';
    if (url === `/.well-known/oauth-authorization-server${this.#path}`) return 'metadata';
    return url === `${this.#path}/keys` ? 'keys' : undefined;
  }
}

/** Listens when it resolves. */
export async function startServiceAccountIssuer(
  options: ServiceAccountIssuerOptions,
): Promise<ServiceAccountIssuer> {
  const server = createServer({ cert: options.certificate.cert, key: options.certificate.key });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(options.port ?? 0, options.listenAddress ?? '127.0.0.1', resolve);
  });
  return new ServiceAccountIssuer(server, options);
}
