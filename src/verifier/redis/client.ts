/**
 * Creates the ioredis client, configured so that it sends every command at most once and never late. Checked against
 * the source of ioredis 6.0: with these options a command is rejected at once when the connection is not ready, when
 * its timeout expires, or when the connection is lost while it waits.
 */

import { connect as connectTcp, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { AbstractConnector, Redis, type RedisOptions } from 'ioredis';
import { exponentialWaitMs } from '../../protocol/retry-wait.ts';
import type { RedisAddress, RedisLogin } from './endpoint.ts';

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
  const limits = { firstMs: FIRST_RECONNECT_DELAY_MS, maxMs: MAX_RECONNECT_DELAY_MS };
  return Math.ceil(exponentialWaitMs(attempt, limits));
}

/**
 * Connects and verifies that the peer is Redis before ioredis sends or reads a byte. The password goes only to Redis,
 * and only Redis' bytes reach the parser: ioredis 6.0 stops the process or loops for ever on some that are nearly RESP.
 */

export interface GreetingOptions extends RedisConnection {
  /** A connection that does not close by itself is destroyed after this long. */
  readonly disconnectTimeoutMs: number;
}

const GREETING = 'PING\r\n';
const MAX_ANSWER_CHARACTERS = 512;
/** A server that requires a login or is busy is Redis too; later commands show what is wrong with it. */
const REDIS_ANSWER = /^(?:\+PONG|-(?:NOAUTH|LOADING|MASTERDOWN|BUSY|NOPERM) [ -~]*)\r\n$/;

/** Returns the connector class for ioredis. */
export function greetingConnector(options: GreetingOptions): NonNullable<RedisOptions['Connector']> {
  return class GreetingConnector extends AbstractConnector {
    constructor() {
      super(options.disconnectTimeoutMs);
    }

    /** Never rejects, because ioredis would then not retry. A failure is a destroyed stream and `firstError`. */
    override async connect(): Promise<Socket> {
      this.connecting = true;
      delete this.firstError;
      const stream = openStream(options);
      this.stream = stream;
      // An `error` event without a listener would stop the process.
      stream.on('error', (error) => {
        this.firstError ??= error;
      });
      await greet(stream, options);
      return stream;
    }
  };
}

function openStream({ address: { host, port }, certificateAuthorities: ca, tls }: GreetingOptions): Socket {
  if (!tls) return connectTcp({ host, port });
  return connectTls({ host, port, rejectUnauthorized: true, ...(ca === undefined ? {} : { ca }) });
}

/** Resolves when Redis has answered, or when the stream is closed. */
function greet(stream: Socket, options: GreetingOptions): Promise<void> {
  return new Promise((resolve) => {
    let answer = '';
    const timer = setTimeout(
      () => stream.destroy(new Error('no greeting in time')),
      options.connectTimeoutMs,
    );
    const finish = () => {
      clearTimeout(timer);
      stream.off('data', handleData);
      stream.off('close', finish);
      stream.pause();
      resolve();
    };
    const handleData = (chunk: Buffer) => {
      answer += chunk.toString('latin1');
      if (REDIS_ANSWER.test(answer)) finish();
      else if (answer.includes('\n') || answer.length > MAX_ANSWER_CHARACTERS) {
        stream.destroy(new Error('not the greeting of Redis'));
      }
    };
    stream.setNoDelay(true);
    stream.on('data', handleData);
    stream.once('close', finish);
    stream.once(options.tls ? 'secureConnect' : 'connect', () => stream.write(GREETING));
  });
}

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
