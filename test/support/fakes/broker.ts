/**
 * A fake broker over real HTTP or TLS with the contract of `src/broker/broker-contract.ts`. It checks every signature
 * over its own spelling of the text, and no certificate path: the tests of the broker do that. It records its requests and
 * can fail on demand.
 */
import { hash, randomBytes, verify, X509Certificate } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { createServer as createTlsServer, type ServerOptions } from 'node:https';
import type { AddressInfo } from 'node:net';
import { TLSSocket } from 'node:tls';
import type { CallerProof } from '../../../src/broker/broker-contract.ts';
import type { KeyBinding } from '../../../src/protocol/identifiers.ts';
import { importPublicJwk } from '../../../src/protocol/import-public-key.ts';
import type { PublicKey } from '../../../src/protocol/public-key.ts';
import { generateSigningKey, type SigningKey, signPassport } from '../../../src/protocol/signing.ts';
import { verifySignature } from '../../../src/protocol/verify-signature.ts';
import { freePort } from '../harness/free-port.ts';

export const ISSUER = 'https://broker.shop.example';
export const TRUST_DOMAIN = 'shop.example';

interface Caller {
  readonly subject: string;
  readonly keyBinding: KeyBinding;
  readonly holder: PublicKey;
}

interface Failure {
  readonly status: number;
  readonly code?: string;
  readonly retryAfter?: number | string;
}

export class FakeBroker {
  /** In the bundle of a site that trusts this broker. */
  readonly signingKey: SigningKey = generateSigningKey('Ed25519');
  readonly keyId = 'broker-1';
  /** Subjects by thumbprint. */
  readonly softwareKeys = new Map<string, string>();
  readonly requests: { readonly path: string; readonly body: string; readonly atMs: number }[] = [];
  /** Thumbprints of the holder keys of the passports that it issued, in order. */
  readonly issuedTo: string[] = [];
  readonly secrets: string[] = [];
  passportTtlSeconds = 300;
  profiles: readonly unknown[] = [];
  /** A result replaces the normal answer. */
  interfere: ((path: string) => Failure | undefined) | undefined;
  /** Changes the claims of passports. */
  claims: Partial<{ audience: string; holderJwk: PublicKey['jwk'] }> = {};
  readonly #challenges = new Set<string>();
  readonly #server: Server;
  readonly #scheme: string;

  private constructor(tls: ServerOptions | undefined) {
    const listener = (request: IncomingMessage, response: ServerResponse) =>
      void this.#answer(request, response);
    this.#scheme = tls === undefined ? 'http' : 'https';
    this.#server =
      tls === undefined
        ? createServer(listener)
        : createTlsServer({ ...tls, requestCert: true, rejectUnauthorized: false }, listener);
  }

  /** @param port of an earlier broker, to be its successor */
  static async start(tls?: ServerOptions, port?: number): Promise<FakeBroker> {
    const broker = new FakeBroker(tls);
    const taken = port ?? (await freePort());
    await new Promise<void>((resolve) => broker.#server.listen(taken, '127.0.0.1', resolve));
    return broker;
  }

  get port(): number {
    const address: AddressInfo | string | null = this.#server.address();
    if (address === null || typeof address === 'string') throw new Error('not listening');
    return address.port;
  }

  get url(): string {
    return `${this.#scheme}://127.0.0.1:${this.port}`;
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(Buffer.from(chunk));
    const body = Buffer.concat(chunks).toString();
    const path = request.url ?? '';
    this.requests.push({ path, body, atMs: performance.now() });
    const failure = this.interfere?.(path) ?? this.#reply(path, body, request, response);
    if (failure === undefined) return;
    const { code, retryAfter, status } = failure;
    if (retryAfter !== undefined) response.setHeader('retry-after', retryAfter);
    response.writeHead(status, {
      'content-type': code === undefined ? 'text/html' : 'application/problem+json',
    });
    response.end(code === undefined ? '<p>gateway' : JSON.stringify({ code }));
  }

  #reply(
    path: string,
    body: string,
    request: IncomingMessage,
    response: ServerResponse,
  ): Failure | undefined {
    const send = (answer: object) => {
      response.writeHead(200, { 'content-type': 'application/json' });
      response.end(JSON.stringify(answer));
    };
    if (path === '/v1/challenges') {
      const challenge = randomBytes(48).toString('base64url');
      this.#challenges.add(challenge);
      this.secrets.push(challenge);
      return void send({ challenge, expires_at: moment(60) });
    }
    const { audience, proof }: { audience?: string; proof: CallerProof } = JSON.parse(body);
    const operation = path === '/v1/profiles' ? 'profiles' : 'passport';
    const caller = this.#caller(proof, operation, audience ?? '-', request);
    if (caller === undefined) return { status: 401, code: 'proof_invalid' };
    if (operation === 'profiles') return void send({ profiles: this.profiles });
    send(this.#passport(caller, audience ?? ''));
    return undefined;
  }

  #passport({ holder, keyBinding, subject }: Caller, audience: string): object {
    const nowSeconds = Math.floor(Date.now() / 1000);
    const passport = signPassport(
      {
        keyId: this.keyId,
        issuer: ISSUER,
        subject,
        trustDomain: TRUST_DOMAIN,
        audience,
        keyBinding,
        holderJwk: holder.jwk,
        issuedAtSeconds: nowSeconds,
        expiresAtSeconds: nowSeconds + this.passportTtlSeconds,
        ...this.claims,
      },
      this.signingKey,
    );
    this.issuedTo.push(holder.thumbprint);
    this.secrets.push(passport);
    const names = { issuer: ISSUER, trust_domain: TRUST_DOMAIN, subject, key_binding: keyBinding };
    const expires_at = moment(this.passportTtlSeconds);
    return { passport, expires_at, holder_thumbprint: holder.thumbprint, key_id: this.keyId, ...names };
  }

  #caller(
    proof: CallerProof,
    operation: string,
    audience: string,
    request: IncomingMessage,
  ): Caller | undefined {
    if (proof.kind === 'mtls') return mtlsCaller(request);
    if (!this.#challenges.has(proof.challenge)) return undefined;
    const text = (credential: Uint8Array | string, holderThumbprint: string) =>
      Buffer.from(
        `proofgate-broker-v1\noperation=${operation}\nbroker-url=${this.url}\nchallenge=${proof.challenge}\n` +
          `credential-sha256=${hash('sha256', credential, 'base64url')}\nholder-thumbprint=${holderThumbprint}\naudience=${audience}\n`,
      );
    switch (proof.kind) {
      case 'software_key': {
        const key = importPublicJwk(proof.registered_jwk);
        const subject = this.softwareKeys.get(key?.thumbprint ?? '');
        if (key === undefined || subject === undefined) return undefined;
        const isSigned = verifySignature(
          key,
          text(key.thumbprint, key.thumbprint),
          Buffer.from(proof.registered_signature, 'base64url'),
        );
        return isSigned ? { subject, keyBinding: 'software', holder: key } : undefined;
      }
      case 'signed_form': {
        const [leaf] = proof.certificates.map((der) => Buffer.from(der, 'base64'));
        const holder = importPublicJwk(proof.holder_jwk);
        if (leaf === undefined || holder === undefined) return undefined;
        const signed = text(leaf, holder.thumbprint);
        const certificate = new X509Certificate(leaf);
        const isSvids = isSignedBy(certificate, signed, Buffer.from(proof.svid_signature, 'base64url'));
        const isHolders = verifySignature(holder, signed, Buffer.from(proof.holder_signature, 'base64url'));
        const subject = subjectOf(certificate);
        return isSvids && isHolders && subject !== undefined
          ? { subject, keyBinding: 'attested_workload', holder }
          : undefined;
      }
      case 'jwt_svid': {
        const holder = importPublicJwk(proof.holder_jwk);
        const claims = JSON.parse(Buffer.from(proof.token.split('.')[1] ?? '', 'base64url').toString());
        if (holder === undefined || String(claims.aud) !== `${this.url}#jkt=${holder.thumbprint}`)
          return undefined;
        const signature = Buffer.from(proof.holder_signature, 'base64url');
        return verifySignature(holder, text(proof.token, holder.thumbprint), signature)
          ? { subject: claims.sub, keyBinding: 'attested_workload', holder }
          : undefined;
      }
    }
  }
}

function mtlsCaller({ socket }: IncomingMessage): Caller | undefined {
  const der = socket instanceof TLSSocket ? socket.getPeerCertificate().raw : undefined;
  if (der === undefined || (socket instanceof TLSSocket && socket.isSessionReused())) return undefined;
  const certificate = new X509Certificate(der);
  const holder = importPublicJwk(certificate.publicKey.export({ format: 'jwk' }));
  const subject = subjectOf(certificate);
  if (holder === undefined || subject === undefined) return undefined;
  return { subject, keyBinding: 'attested_workload', holder };
}

function subjectOf({ subjectAltName }: X509Certificate): string | undefined {
  return /^URI:(spiffe:[^,]+)$/.exec(subjectAltName ?? '')?.[1];
}

/** Algorithms of RFC 7518: the curve or key type decides. */
function isSignedBy({ publicKey: key }: X509Certificate, text: Buffer, signature: Buffer): boolean {
  const { asymmetricKeyDetails, asymmetricKeyType } = key;
  if (asymmetricKeyType === 'ed25519') return verify(null, text, key, signature);
  if (asymmetricKeyType === 'rsa') {
    return verify('sha256', text, { key, padding: 6, saltLength: 32 }, signature);
  }
  const digest = asymmetricKeyDetails?.namedCurve === 'secp384r1' ? 'sha384' : 'sha256';
  return verify(digest, text, { key, dsaEncoding: 'ieee-p1363' }, signature);
}

function moment(inSeconds: number): string {
  return new Date(Date.now() + inSeconds * 1000).toISOString();
}
