/**
 * Interfaces between parts of Control, which the composition root implements.
 */
import type { HeldRole } from './domain/roles.ts';
import type { Transaction } from './store/port.ts';

/** An authenticated operator or automation. */
export interface Principal {
  /** The name in audit rows: `oidc:<issuer>|<subject>`, `token:<id>`, `bootstrap`. */
  readonly actor: string;
  readonly displayName: string;
  readonly via: 'bootstrap' | 'access_token' | 'session';
  readonly roles: readonly HeldRole[];
  /** When these credentials expire; undefined when they do not. */
  readonly expiresAtMs?: number | undefined;
}

/** A request's credentials, not verified yet. */
export interface Credentials {
  readonly authorization: string | undefined;
  readonly sessionCookie: string | undefined;
}

export interface Operators {
  /** @throws ApiProblem `authentication_required` */
  authenticate(credentials: Credentials): Promise<Principal>;
}

/**
 * Checks, inside the transaction of a change, that verifiers would accept the site's content.
 * @throws ApiProblem `definition_invalid` with each fault's place and reason
 */
export type SiteCheck = (tx: Transaction, siteId: string) => Promise<void>;
