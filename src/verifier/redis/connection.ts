/** Settings of a connection to one Redis server or Sentinel. */
import type { RedisAddress, RedisLogin } from './endpoint.ts';

/** The same for all connections of one kind to one endpoint. */
export interface ConnectionSettings {
  readonly tls: boolean;
  readonly login: RedisLogin;
  readonly databaseNumber: number;
  /** Timeout for one command and its reply. */
  readonly commandTimeoutMs: number;
  /** Timeout for connection, TLS handshake and greeting together. */
  readonly connectTimeoutMs: number;
  /** CA certificates (PEM) for TLS; default: the system's. */
  readonly certificateAuthorities: string | undefined;
}

export interface RedisConnection extends ConnectionSettings {
  readonly address: RedisAddress;
}
