/**
 * Connects, and makes sure that Redis is on the other end before ioredis hears or says a word: the
 * password goes to nobody else, and nobody else's bytes reach the parser (ioredis 6.0 stops the process
 * or loops for ever on some that are nearly RESP).
 */
import { connect as connectTcp, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { AbstractConnector, type RedisOptions } from 'ioredis';
import type { RedisConnection } from './connection.ts';

export interface GreetingOptions extends RedisConnection {
  /** A connection that does not close by itself is cut off after this long. */
  readonly disconnectTimeoutMs: number;
}

const GREETING = 'PING\r\n';
const MAX_ANSWER_CHARACTERS = 512;
/** Also a server that wants a login first, or is busy, is Redis; what is wrong with it shows later. */
const REDIS_ANSWER = /^(?:\+PONG|-(?:NOAUTH|LOADING|MASTERDOWN|BUSY|NOPERM) [ -~]*)\r\n$/;

/** The class that ioredis makes a connector of. */
export function greetingConnector(options: GreetingOptions): NonNullable<RedisOptions['Connector']> {
  return class GreetingConnector extends AbstractConnector {
    constructor() {
      super(options.disconnectTimeoutMs);
    }

    /** Never rejects: ioredis would not try again. A failure is a destroyed stream and `firstError`. */
    override async connect(): Promise<Socket> {
      this.connecting = true;
      delete this.firstError;
      const stream = openStream(options);
      this.stream = stream;
      // A stream without a listener would stop the process with its error.
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
