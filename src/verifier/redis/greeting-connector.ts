/**
 * Connects and verifies that the peer is Redis before ioredis sends or reads a byte. The password goes only to Redis,
 * and only Redis' bytes reach the parser: ioredis 6.0 stops the process or loops for ever on some that are nearly RESP.
 */
import { connect as connectTcp, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { AbstractConnector, type RedisOptions } from 'ioredis';
import type { RedisConnection } from './connection.ts';

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
