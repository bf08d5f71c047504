/**
 * Ports between parts of Control, which the composition root fills.
 */
import type { HeldRole } from './domain/roles.ts';
import type { Transaction } from './store/port.ts';

/** Somebody whom a request's credentials name. */
export interface Principal {
  /** As audit rows name them: `oidc:<issuer>|<subject>`, `token:<id>`, `bootstrap`. */
  readonly actor: string;
  readonly displayName: string;
  readonly via: 'bootstrap' | 'access_token' | 'session';
  readonly roles: readonly HeldRole[];
  /** When these credentials end; undefined when they do not. */
  readonly expiresAtMs?: number | undefined;
}

/** A request's credentials, as they came. */
export interface Credentials {
  readonly authorization: string | undefined;
  readonly sessionCookie: string | undefined;
}

export interface Operators {
  /** @throws Refusal `authentication_required` */
  authenticate(credentials: Credentials): Promise<Principal>;
}

/**
 * Whether a verifier would take what the site holds now, asked inside the transaction that changes it.
 * @throws Refusal `definition_invalid`, saying what and where
 */
export type SiteCheck = (tx: Transaction, siteId: string) => Promise<void>;
