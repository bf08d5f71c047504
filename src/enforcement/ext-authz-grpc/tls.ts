/** TLS of the ext_authz server: certificate, key, client CA and client names. */
import { X509Certificate } from 'node:crypto';
import { createSecureContext, type TLSSocket, type TlsOptions } from 'node:tls';

/** PEM. Contains a secret. */
export interface TlsMaterial {
  /** The server's certificate, followed by its chain. */
  readonly cert: string;
  readonly key: string;
  /** CA that must have issued client certificates; undefined disables client authentication. */
  readonly clientCa: string | undefined;
}

export interface ServerTls {
  readonly material: TlsMaterial;
  /** URIs or DNS names, one of which a client's certificate must have. When empty, any certificate of the CA is accepted. */
  readonly clientNames: readonly string[];
}

/** Thrown for unusable material; `member` names the faulty part. */
export class TlsMaterialError extends Error {
  override readonly name = 'TlsMaterialError';
  readonly member: 'pair' | 'client_ca';

  constructor(member: 'pair' | 'client_ca') {
    super(member === 'pair' ? 'not a certificate and its private key' : 'not certificates');
    this.member = member;
  }
}

/** Handshake timeout, milliseconds. */
const HANDSHAKE_TIMEOUT_MS = 10_000;

/**
 * Cipher suites of TLS 1.3, and those of TLS 1.2 that HTTP/2 does not prohibit (RFC 9113 appendix A). Envoy's upstream
 * TLS speaks 1.2 by default.
 */
const CIPHERS = [
  'TLS_AES_128_GCM_SHA256',
  'TLS_AES_256_GCM_SHA384',
  'TLS_CHACHA20_POLY1305_SHA256',
  'ECDHE-ECDSA-AES128-GCM-SHA256',
  'ECDHE-RSA-AES128-GCM-SHA256',
  'ECDHE-ECDSA-AES256-GCM-SHA384',
  'ECDHE-RSA-AES256-GCM-SHA384',
  'ECDHE-ECDSA-CHACHA20-POLY1305',
  'ECDHE-RSA-CHACHA20-POLY1305',
].join(':');

/** Options for `tls.createServer` and, for changed files, `setSecureContext`. @throws TlsMaterialError */
export function tlsOptions(material: TlsMaterial): TlsOptions {
  assertUsable(material);
  const { cert, clientCa, key } = material;
  const clients = clientCa === undefined ? {} : { ca: clientCa, requestCert: true, rejectUnauthorized: true };
  return {
    ...clients,
    cert,
    key,
    ciphers: CIPHERS,
    minVersion: 'TLSv1.2',
    ALPNProtocols: ['h2'],
    handshakeTimeout: HANDSHAKE_TIMEOUT_MS,
  };
}

/** Seconds since the epoch. @throws TlsMaterialError */
export function certificateExpirySeconds({ cert }: Pick<TlsMaterial, 'cert'>): number {
  try {
    return Math.floor(Date.parse(new X509Certificate(cert).validTo) / 1000);
  } catch {
    throw new TlsMaterialError('pair');
  }
}

const CERTIFICATE = /-----BEGIN CERTIFICATE-----[\s\S]*?-----END CERTIFICATE-----/g;

function assertUsable({ cert, clientCa, key }: TlsMaterial): void {
  try {
    new X509Certificate(cert);
    // Rejects a key that belongs to another certificate.
    createSecureContext({ cert, key });
  } catch {
    throw new TlsMaterialError('pair');
  }
  if (clientCa === undefined) return;
  // OpenSSL would skip certificates that it cannot read, and then trust fewer CAs than configured, or none.
  const certificates = clientCa.match(CERTIFICATE) ?? [];
  if (certificates.length === 0) throw new TlsMaterialError('client_ca');
  try {
    for (const certificate of certificates) new X509Certificate(certificate);
  } catch {
    throw new TlsMaterialError('client_ca');
  }
}

/** Node.js writes alternative names as `URI:spiffe://…, DNS:…`, and quotes those with unusual characters. */
const ALTERNATIVE_NAME = /(?:[^,"]|"(?:[^"\\]|\\.)*")+/g;

/** Whether the client's certificate, which has been verified against the CA, has one of the names. */
export function isNamedClient(socket: TLSSocket, clientNames: readonly string[]): boolean {
  if (clientNames.length === 0) return true;
  const names = socket.getPeerX509Certificate()?.subjectAltName?.match(ALTERNATIVE_NAME) ?? [];
  const wanted = new Set(clientNames.map((name) => `${name.includes('://') ? 'URI' : 'DNS'}:${name}`));
  return names.some((name) => wanted.has(name.trim()));
}
