/**
 * Creates the ioredis client, configured so that it sends every command at most once and never late. Checked against
 * the source of ioredis 6.0: with these options a command is rejected at once when the connection is not ready, when
 * its timeout expires, or when the connection is lost while it waits.
 */
import { Redis, type RedisOptions } from 'ioredis';
import type { RedisConnection } from './connection.ts';
import { greetingConnector } from './greeting-connector.ts';

const DISCONNECT_TIMEOUT_MS = 50;
const FIRST_RECONNECT_DELAY_MS = 5;
const MAX_RECONNECT_DELAY_MS = 2_000;

/** Creates a client that connects on `connect()`, and from then on reconnects by itself. */
export function createRedisClient(connection: RedisConnection): Redis {
  const { username, revealPassword } = connection.login;
  const settings: Omit<RedisOptions, 'replyMapping'> = {
    db: connection.databaseNumber,
    connectionName: 'proofgate',
    commandTimeout: connection.commandTimeoutMs,
    Connector: greetingConnector({ ...connection, disconnectTimeoutMs: DISCONNECT_TIMEOUT_MS }),
    lazyConnect: true,
    enableOfflineQueue: false,
    // With 0, pending commands are rejected as soon as the connection is lost.
    maxRetriesPerRequest: 0,
    autoResendUnfulfilledCommands: false,
    autoResubscribe: false,
    reconnectOnError: null,
    // The link sends INFO itself, and checks more of it.
    enableReadyCheck: false,
    retryStrategy: reconnectDelayMs,
  };
  if (username !== undefined) settings.username = username;
  const password = revealPassword();
  if (password !== undefined) settings.password = password;
  return new Redis(settings);
}

/** Doubles from 5 ms to 2 s, with jitter, so that verifiers do not reconnect all at once. */
export function reconnectDelayMs(attempt: number): number {
  const ceilingMs = Math.min(MAX_RECONNECT_DELAY_MS, FIRST_RECONNECT_DELAY_MS * 2 ** (attempt - 1));
  return Math.ceil(ceilingMs * (0.5 + Math.random() / 2));
}
