/** Receives a bound body in full, within its limits, before the upstream sees anything of the request. */
import { BodySpool, SpoolError, type SpoolOptions } from './body-spool.ts';
import type { StreamedBody } from './client-exchange.ts';
import type { ProxyFaultCode } from './proxy-faults.ts';

export type ReceivedBody<Denied> =
  | { readonly kind: 'received'; readonly spool: BodySpool }
  | { readonly kind: 'denied'; readonly decision: Denied }
  | { readonly kind: 'fault'; readonly code: ProxyFaultCode }
  /** The client left before the end. */
  | { readonly kind: 'gone' };

export interface ReceiveOptions<Denied> {
  readonly body: StreamedBody;
  readonly spool: SpoolOptions;
  readonly maxBodyBytes: number;
  /** Maximum time for the whole body, milliseconds. */
  readonly timeoutMs: number;
  /** Asked before the first byte goes to disk: the denial that the request gets whatever its body is. */
  readonly denyBeforeSpill: () => Denied | undefined;
}

export function receiveBody<Denied>(options: ReceiveOptions<Denied>): Promise<ReceivedBody<Denied>> {
  return new Promise((resolve) => new BodyReceiver(options, resolve));
}

class BodyReceiver<Denied> {
  readonly #options: ReceiveOptions<Denied>;
  readonly #resolve: (received: ReceivedBody<Denied>) => void;
  readonly #spool: BodySpool;
  readonly #timer: NodeJS.Timeout;
  #hasSpilled = false;
  #writing: Promise<void> | undefined;
  #isSettled = false;

  constructor(options: ReceiveOptions<Denied>, resolve: (received: ReceivedBody<Denied>) => void) {
    this.#options = options;
    this.#resolve = resolve;
    this.#spool = new BodySpool(options.spool);
    this.#timer = setTimeout(() => this.#fail({ kind: 'fault', code: 'body_timeout' }), options.timeoutMs);
    const { stream } = options.body;
    stream.on('data', this.#take);
    stream.once('end', this.#finish);
    stream.once('close', this.#finish);
    stream.once('error', this.#finish);
  }

  readonly #take = (chunk: Buffer): void => {
    const { body, maxBodyBytes } = this.#options;
    if (this.#spool.lengthBytes + chunk.length > maxBodyBytes) {
      this.#fail({ kind: 'fault', code: 'body_too_large' });
      return;
    }
    if (this.#spool.keep(chunk)) return;
    if (!this.#hasSpilled) {
      const decision = this.#options.denyBeforeSpill();
      if (decision !== undefined) {
        this.#fail({ kind: 'denied', decision });
        return;
      }
      this.#hasSpilled = true;
    }
    body.stream.pause();
    this.#writing = this.#spool.spill(chunk).then(
      () => {
        this.#writing = undefined;
        if (!this.#isSettled) body.stream.resume();
      },
      (error: unknown) => {
        this.#writing = undefined;
        if (!(error instanceof SpoolError)) throw error;
        this.#fail({ kind: 'fault', code: 'spool_unavailable' });
      },
    );
  };

  readonly #finish = (): void => {
    if (!this.#options.body.isComplete()) {
      this.#fail({ kind: 'gone' });
      return;
    }
    // The stream may end while its last part is being written, and that can still fail.
    if (this.#writing !== undefined) void this.#writing.then(this.#finish);
    else this.#settle({ kind: 'received', spool: this.#spool });
  };

  #fail(received: ReceivedBody<Denied>): void {
    if (this.#isSettled) return;
    this.#settle(received);
    void (this.#writing ?? Promise.resolve()).then(() => this.#spool.discard());
  }

  #settle(received: ReceivedBody<Denied>): void {
    if (this.#isSettled) return;
    this.#isSettled = true;
    clearTimeout(this.#timer);
    const { stream } = this.#options.body;
    stream.off('data', this.#take);
    stream.off('end', this.#finish);
    stream.off('close', this.#finish);
    // What is left of the body is read only when the response says how to go on.
    if (received.kind !== 'received') stream.pause();
    this.#resolve(received);
  }
}
