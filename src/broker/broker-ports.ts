/**
 * Ports of the broker. The process (`src/broker/program/`) opens files, sockets and listeners; tests
 * give plain objects.
 */
import type { IncomingMessage } from 'node:http';
import type { BrokerEvent } from '../process/telemetry/broker-event.ts';
import type { PublicKey } from '../protocol/public-key.ts';
import type { TrustBundles } from '../spiffe/trust-bundles.ts';
import type { BrokerMetrics } from './broker-metrics.ts';

/** A public key of the broker. The key that signs next is published before its first use. */
export interface PublishedKey {
  /** Unique among all trust domains of the broker. */
  readonly keyId: string;
  readonly trustDomain: string;
  readonly publicKey: PublicKey;
}

/** `sign` is a separate port, so that the private key may be in a KMS or behind PKCS#11. */
export interface PassportSigningKey extends PublishedKey {
  /** Ed25519: R || S (RFC 8032). ES256: r || s (RFC 7518 section 3.4). If it rejects, no passport is issued. */
  sign(bytes: Uint8Array): Promise<Uint8Array>;
}

export interface SigningKeys {
  /** Undefined for a trust domain that the broker does not serve. */
  current(trustDomain: string): PassportSigningKey | undefined;
  /** Every key that a site should pin, including the next ones. */
  published(): readonly PublishedKey[];
  trustDomains(): readonly string[];
}

/** A registered software key. */
export interface SoftwareKey {
  readonly subject: string;
  readonly trustDomain: string;
  readonly maxPassportTtlSeconds: number;
}

export interface SoftwareKeys {
  readonly trustDomains: ReadonlySet<string>;
  /** @param thumbprint RFC 7638, base64url */
  find(thumbprint: string): SoftwareKey | undefined;
}

export interface DenyList {
  deniesSubject(subject: string): boolean;
  /** @param thumbprint RFC 7638, base64url: of a registered key, an SVID's key or a holder key */
  deniesThumbprint(thumbprint: string): boolean;
}

/** Signing profile files (docs/operate/cli.md "Signing profiles"). */
export interface SigningProfiles {
  /** The documents whose issuer, trust domain and subject are exactly these. */
  fitting(issuer: string, trustDomain: string, subject: string): readonly unknown[];
}

/** How a request reached the broker. Nothing in it comes from a header. */
export type Connection =
  | {
      readonly kind: 'tls';
      /** DER, leaf first, as presented; CertificateVerify (RFC 8446 section 4.4.3) proved the leaf's key. Empty: none. */
      readonly clientCertificates: readonly Uint8Array[];
      /** A resumed session proves no key, because neither the certificate nor CertificateVerify is sent again. */
      readonly isResumed: boolean;
    }
  | { readonly kind: 'unix_socket' }
  /** Plain HTTP on loopback. */
  | { readonly kind: 'plain' };

export type ConnectionOf = (request: IncomingMessage) => Connection;

export interface BrokerAudit {
  /** False: the event is lost, and the broker must refuse (`--audit required`). */
  record(event: BrokerEvent): boolean;
}

/** At least 32 bytes each. The first one makes challenges; all of them verify, so that replicas can change keys. */
export type ChallengeKeys = () => readonly [Uint8Array, ...Uint8Array[]];

/** Maximum lifetime of a passport; `--passport-ttl` and a registered key may set less. */
export const MAX_PASSPORT_TTL_SECONDS = 300;

export interface BrokerLimits {
  /** Per address (IPv6: per /64); no limit on a Unix socket. */
  readonly requestsPerSecondPerAddress: number;
  /** Verified requests, per trust domain and subject. */
  readonly requestsPerSecondPerIdentity: number;
  /** Distinct holder keys in five minutes, per trust domain and subject: each has a replay quota of its own. */
  readonly holderKeysPerIdentity: number;
}

export const DEFAULT_BROKER_LIMITS: BrokerLimits = {
  requestsPerSecondPerAddress: 100,
  requestsPerSecondPerIdentity: 20,
  holderKeysPerIdentity: 8,
};

export interface BrokerPorts {
  readonly signingKeys: SigningKeys;
  readonly trustBundles: TrustBundles;
  readonly softwareKeys: SoftwareKeys;
  readonly denyList: DenyList;
  readonly signingProfiles: SigningProfiles;
  readonly challengeKeys: ChallengeKeys;
  readonly connectionOf: ConnectionOf;
  readonly audit: BrokerAudit;
  readonly metrics: BrokerMetrics;
  readonly nowMs: () => number;
}

export interface BrokerSettings {
  /** `--public-url` without a trailing slash; never taken from a request. */
  readonly publicUrl: string;
  /** The passports' `iss`. */
  readonly issuer: string;
  /** 1 to 300. */
  readonly passportTtlSeconds: number;
  readonly acceptsJwtSvids: boolean;
  readonly servesProofs: boolean;
  readonly limits: BrokerLimits;
}
