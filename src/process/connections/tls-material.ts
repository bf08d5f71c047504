/** TLS of an enforcement point's listener: certificate, key, client CA and client names. */
import { constants, createPrivateKey, X509Certificate } from 'node:crypto';
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
  /** Requests a client certificate and accepts connections with any or none, because the program verifies it. */
  readonly leavesClientsUnverified?: boolean;
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

/** ALPN protocol IDs. */
export type ApplicationProtocol = 'h2' | 'http/1.1';

/**
 * For every listener that asks for client certificates: a resumed session has the certificate of an earlier handshake
 * without a proof of its key, even after the certificate or its CA has expired. These options disable tickets and
 * session IDs (TLS 1.2) and PSKs (TLS 1.3, whose tickets name a session that Node.js does not keep). They also disable
 * renegotiation (TLS 1.2), which could change the client's certificate within a connection.
 */
const ONE_HANDSHAKE_PER_CONNECTION = constants.SSL_OP_NO_TICKET | constants.SSL_OP_NO_RENEGOTIATION;

export function asksForCertificates({ leavesClientsUnverified = false, material }: ServerTls): boolean {
  return leavesClientsUnverified || material.clientCa !== undefined;
}

/** Options for `tls.createServer` and, for changed files, `setSecureContext`. @throws TlsMaterialError */
export function tlsOptions(
  { leavesClientsUnverified = false, material }: Omit<ServerTls, 'clientNames'>,
  protocols: readonly ApplicationProtocol[],
): TlsOptions {
  assertUsable(material);
  const { cert, clientCa, key } = material;
  const asked = { requestCert: true, secureOptions: ONE_HANDSHAKE_PER_CONNECTION };
  const verified = clientCa === undefined ? {} : { ...asked, ca: clientCa, rejectUnauthorized: true };
  const unverified = { ...asked, rejectUnauthorized: false };
  return {
    ...(leavesClientsUnverified ? unverified : verified),
    cert,
    key,
    ciphers: CIPHERS,
    minVersion: 'TLSv1.2',
    ALPNProtocols: [...protocols],
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

export function isSameMaterial(one: TlsMaterial, other: TlsMaterial): boolean {
  return one.cert === other.cert && one.key === other.key && one.clientCa === other.clientCa;
}

const CERTIFICATE = /-----BEGIN CERTIFICATE-----[\s\S]*?-----END CERTIFICATE-----/g;

function assertUsable({ cert, clientCa, key }: TlsMaterial): void {
  try {
    // OpenSSL's context rejects a key of another certificate only when both are of the same kind.
    if (!new X509Certificate(cert).checkPrivateKey(createPrivateKey(key))) throw new TlsMaterialError('pair');
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
