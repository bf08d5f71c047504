/** What a connection to one Redis server or Sentinel needs to be made. */
import type { RedisAddress, RedisLogin } from './endpoint.ts';

/** The same for all connections of one kind to one endpoint. */
export interface ConnectionSettings {
  readonly tls: boolean;
  readonly login: RedisLogin;
  readonly databaseNumber: number;
  /** For one command and its answer. */
  readonly commandTimeoutMs: number;
  /** For connection, TLS handshake and greeting together. */
  readonly connectTimeoutMs: number;
  /** Certificates (PEM) of the authorities to trust over TLS; default: the system's. */
  readonly certificateAuthorities: string | undefined;
}

export interface RedisConnection extends ConnectionSettings {
  readonly address: RedisAddress;
}
