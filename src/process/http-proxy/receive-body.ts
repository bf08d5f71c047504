/** Receives a bound body in full, within its limits, before the upstream sees anything of the request. */
import { BodySpool, type SpoolOptions } from './body-spool.ts';
import type { StreamedBody } from './client-exchange.ts';
import type { ProxyFaultCode } from './proxy-faults.ts';

export type ReceivedBody =
  | { readonly kind: 'received'; readonly spool: BodySpool }
  | { readonly kind: 'fault'; readonly code: ProxyFaultCode }
  /** The client left before the end. */
  | { readonly kind: 'gone' };

export interface ReceiveOptions {
  readonly body: StreamedBody;
  readonly spool: SpoolOptions;
  readonly maxBodyBytes: number;
  /** Maximum time for the whole body, milliseconds. */
  readonly timeoutMs: number;
}

export function receiveBody(options: ReceiveOptions): Promise<ReceivedBody> {
  return new Promise((resolve) => new BodyReceiver(options, resolve));
}

class BodyReceiver {
  readonly #options: ReceiveOptions;
  readonly #resolve: (received: ReceivedBody) => void;
  readonly #spool: BodySpool;
  readonly #timer: NodeJS.Timeout;
  #writing: Promise<void> | undefined;
  #isSettled = false;

  constructor(options: ReceiveOptions, resolve: (received: ReceivedBody) => void) {
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
    body.stream.pause();
    this.#writing = this.#spool.spill(chunk).then(
      () => {
        this.#writing = undefined;
        if (!this.#isSettled) body.stream.resume();
      },
      // No caller awaits this promise, so every error ends here.
      () => {
        this.#writing = undefined;
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

  #fail(received: ReceivedBody): void {
    if (this.#isSettled) return;
    this.#settle(received);
    void (this.#writing ?? Promise.resolve()).then(() => this.#spool.discard());
  }

  #settle(received: ReceivedBody): void {
    if (this.#isSettled) return;
    this.#isSettled = true;
    clearTimeout(this.#timer);
    const { stream } = this.#options.body;
    stream.off('data', this.#take);
    stream.off('end', this.#finish);
    stream.off('close', this.#finish);
    // The rest of the body is read only when the response determines how to continue.
    if (received.kind !== 'received') stream.pause();
    this.#resolve(received);
  }
}
