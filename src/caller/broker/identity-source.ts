/** Source of a caller's current identity. */
import type { ServiceConnection } from '../service/service-http.ts';
import type { CallerProver } from './caller-prover.ts';

export interface CallerIdentity {
  readonly prover: CallerProver;
  /** Undefined for a software key. */
  readonly svid: { readonly spiffeId: string; readonly expiresAtMs: number } | undefined;
  /** How to check the broker's certificate. */
  readonly trust: Pick<ServiceConnection, 'caPem' | 'checkServer'>;
}

export interface IdentitySource {
  /** Waits until there is an identity. @throws BrokerError, CliError */
  current(stop: AbortSignal): Promise<CallerIdentity>;
  /** Calls the listener when a new credential should replace the old one, until the returned function is called. */
  onChange(listener: () => void): () => void;
  close(): void;
}
