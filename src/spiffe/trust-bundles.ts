/**
 * Trust bundles: each contains the authoritative keys of one trust domain. Bundles are never merged, because one trust
 * domain could then forge identities of another.
 * Sources: SPIFFE_Trust_Domain_and_Bundle section 3; SPIFFE_Federation section 4.2.
 */
import type { KeyObject } from 'node:crypto';
import type { ParsedCertificate } from './certificate.ts';

export interface JwtAuthority {
  readonly kid: string;
  readonly jwk: Readonly<Record<string, unknown>>;
  readonly publicKey: KeyObject;
}

export interface TrustBundle {
  readonly trustDomain: string;
  readonly x509Authorities: readonly ParsedCertificate[];
  readonly jwtAuthorities: readonly JwtAuthority[];
}

/** The current bundles of all trust domains. */
export interface TrustBundles {
  bundleOf(trustDomain: string): TrustBundle | undefined;
  /** Grows with each change of any bundle. SVIDs that were verified under another generation must be verified again. */
  readonly generation: number;
  /** Calls the listener after each change, until the returned function is called. */
  onChange(listener: () => void): () => void;
}
