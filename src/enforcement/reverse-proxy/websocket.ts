/**
 * WebSockets (RFC 6455): after the upstream has accepted the handshake, bytes pass in both directions. The proxy reads no
 * frames. It closes a connection whose key is no longer valid.
 */
import { createHash } from 'node:crypto';
import type { Duplex } from 'node:stream';
import type { ClientRequest, HeaderLines } from '../../process/http-proxy/client-exchange.ts';
import type { HeaderLine } from '../../process/http-proxy/raw-headers.ts';
import { DENIAL_HEADERS } from '../../process/http-proxy/response-lines.ts';
import type { ProxyMetrics } from './proxy-metrics.ts';

const GUID = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11';

/** Whether the upstream's 101 answers this client's handshake (RFC 6455 section 4.1). */
export function isMatchingAnswer(request: ClientRequest, answer: HeaderLines): boolean {
  const { rawHeaders } = request;
  const at = rawHeaders.findIndex((text, index) => index % 2 === 0 && isNamed(text, 'sec-websocket-key'));
  const key = rawHeaders[at + 1]?.trim() ?? '';
  const accept = createHash('sha1').update(`${key}${GUID}`).digest('base64');
  const values = (wanted: string) =>
    answer.filter(([name]) => isNamed(name, wanted)).map(([, value]) => value);
  return (
    values('upgrade').join().toLowerCase() === 'websocket' && values('sec-websocket-accept').join() === accept
  );
}

const isNamed = (name: string, wanted: string) => name.toLowerCase() === wanted;

const OF_THIS_HOP = /^(?:connection|upgrade|keep-alive|transfer-encoding)$/i;

/** Header lines of the 101 for the client. */
export function switchingLines(answer: HeaderLines): HeaderLines {
  const own: readonly HeaderLine[] = [
    ['Connection', 'Upgrade'],
    ['Upgrade', 'websocket'],
  ];
  return [
    ...own,
    ...answer.filter(([name]) => !OF_THIS_HOP.test(name) && !DENIAL_HEADERS.has(name.toLowerCase())),
  ];
}

const LOOK_EVERY_MS = 1_000;
const LAST_BYTES_MS = 1_000;

export interface TunnelOptions {
  readonly client: Duplex;
  readonly upstream: Duplex;
  /** Maximum time without a byte in either direction, milliseconds. */
  readonly idleTimeoutMs: number;
  readonly isStillAllowed: () => boolean;
}

/** Counts open connections and checks all of them every second. */
export class Tunnels {
  readonly #metrics: ProxyMetrics;
  readonly #open = new Set<() => void>();
  #timer: NodeJS.Timeout | undefined;

  constructor(metrics: ProxyMetrics) {
    this.#metrics = metrics;
  }

  /** Resolves when both sides are closed. */
  run({ client, idleTimeoutMs, isStillAllowed, upstream }: TunnelOptions): Promise<void> {
    return new Promise((resolve) => {
      const close = () => {
        client.destroy();
        upstream.destroy();
        if (!this.#open.delete(look)) return;
        clearTimeout(idle);
        this.#updateTimer();
        resolve();
      };
      const look = () => {
        if (!isStillAllowed()) close();
      };
      const idle = setTimeout(close, idleTimeoutMs);
      for (const [from, to] of [
        [client, upstream],
        [upstream, client],
      ] as const) {
        from.on('error', close);
        // The last bytes of one side, such as its close frame, still reach the other side.
        from.on('close', () => {
          to.end(close);
          setTimeout(close, LAST_BYTES_MS).unref();
        });
        from.on('data', () => idle.refresh());
        from.pipe(to);
      }
      this.#open.add(look);
      this.#updateTimer();
    });
  }

  #updateTimer(): void {
    this.#metrics.tunnels(this.#open.size);
    if (this.#open.size === 0) {
      clearInterval(this.#timer);
      this.#timer = undefined;
      return;
    }
    this.#timer ??= setInterval(() => {
      for (const look of this.#open) look();
    }, LOOK_EVERY_MS).unref();
  }
}
