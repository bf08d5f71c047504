/**
 * Every RPC between its first and its last byte: what is bounded, counted and known of it. grpc-js bounds neither how
 * many there are nor how long a request may stay incomplete, and it goes on holding one whose deadline has passed.
 * Source: docs/enforcement.md "Overload, limits and time-outs".
 */
import { type ServerInterceptor, status } from '@grpc/grpc-js';
import { LinkedList } from '../../runtime-internals/linked-list.ts';
import type { ExtAuthzServerMetrics } from '../../telemetry/ext-authz-server-metrics.ts';
import type { RpcMethodMetrics, RpcMetrics, RpcType } from '../../telemetry/rpc-metrics.ts';
import { watchLoopStalls } from './loop-stall.ts';
import { type DenyCheck, OpenCall } from './open-call.ts';
import { CHECK_PATH } from './service.ts';

export interface OpenCallsOptions {
  readonly rpc: RpcMetrics;
  readonly extAuthz: ExtAuthzServerMetrics;
  readonly limits: CallLimits;
  /** Bytes that have come in over all connections so far. */
  readonly bytesReceived: () => number;
  /** Denial for a Check that is over a limit. */
  readonly deny: DenyCheck;
}

export interface CallLimits {
  /** Maximum number of concurrent RPCs in any state. One more is rejected; a Check gets a denial. */
  readonly maxCalls: number;
  /** Streams of health and reflection among them. */
  readonly maxStreams: number;
  /** Within this a request is complete once it has begun, and its answer taken once it is given. */
  readonly transferTimeoutMs: number;
  /** What may come in while a request is incomplete; those that are then for longer than an instant are ended. */
  readonly maxIncompleteBytes: number;
}

export const CALL_LIMITS: CallLimits = {
  maxCalls: 8192,
  maxStreams: 64,
  transferTimeoutMs: 5_000,
  maxIncompleteBytes: 256 * 1024 * 1024,
};

const SWEEP_EVERY_MS = 250;

export class OpenCalls {
  readonly #options: OpenCallsOptions;
  /** In the order in which they began. */
  readonly #open = new LinkedList<OpenCall>();
  readonly #methods = new Map<string, RpcMethodMetrics>();
  readonly #stall = watchLoopStalls();
  readonly #sweeping: NodeJS.Timeout;
  #streams = 0;
  #handled: OpenCall | undefined;

  constructor(options: OpenCallsOptions) {
    this.#options = options;
    this.#sweeping = setInterval(() => this.#sweep(), SWEEP_EVERY_MS).unref();
  }

  /** Sees every RPC to a method that the server has, when its headers have come. */
  readonly interceptor: ServerInterceptor = ({ path, requestStream, responseStream }, inner) => {
    const isUnary = !requestStream && !responseStream;
    const call = new OpenCall({
      inner,
      isUnary,
      hasOneRequest: !requestStream,
      metrics: this.#metricsOf(path, rpcType(requestStream, responseStream)),
      stalledMs: this.#stall.lastMs(),
      registry: this,
      deny: path === CHECK_PATH ? this.#options.deny : undefined,
    });
    const { maxCalls, maxStreams } = this.#options.limits;
    if (this.#open.size >= maxCalls || (!isUnary && this.#streams >= maxStreams)) {
      this.#options.extAuthz.refused('calls');
      call.refuse(status.RESOURCE_EXHAUSTED, 'too many calls');
    } else if (call.isCompressed) {
      this.#options.extAuthz.refused('compressed');
      call.refuse(status.UNIMPLEMENTED, 'compression is not supported');
    }
    return call;
  };

  /** The RPC whose handler is running; it is called while the end of the request is told. */
  current(): OpenCall | undefined {
    return this.#handled;
  }

  /** For calls alone. */
  handled(call: OpenCall | undefined): void {
    this.#handled = call;
  }

  /** For calls alone: this one has begun. */
  began(call: OpenCall): void {
    this.#open.add(call);
    if (!call.isUnary) this.#streams += 1;
  }

  /** For calls alone: nothing of this one is left. */
  ended(call: OpenCall): void {
    if (this.#open.delete(call) && !call.isUnary) this.#streams -= 1;
  }

  /** Ends what would never end by itself: somebody who watches health must not delay the end of the process. */
  endStreams(): void {
    for (const call of [...this.#open]) if (!call.isUnary) call.leave();
  }

  close(): void {
    clearInterval(this.#sweeping);
    this.#stall.close();
  }

  #metricsOf(path: string, type: RpcType): RpcMethodMetrics {
    let metrics = this.#methods.get(path);
    if (metrics === undefined) {
      metrics = this.#options.rpc(path, type);
      this.#methods.set(path, metrics);
    }
    return metrics;
  }

  /**
   * Time is counted in sweeps, not by the clock: a process that was stopped and goes on must not end everything that came
   * in meanwhile.
   */
  #sweep(): void {
    const { bytesReceived, extAuthz, limits } = this.#options;
    extAuthz.calls(this.#open.size);
    if (this.#open.size === 0) return;
    const bytes = bytesReceived();
    const maxSweeps = limits.transferTimeoutMs / SWEEP_EVERY_MS;
    for (const call of [...this.#open]) {
      const age = call.sweep(bytes);
      if (age === undefined) continue;
      const isSlow = age.sweeps > maxSweeps;
      // The first that is met is the oldest, so it has seen the most come in.
      if (!isSlow && age.bytes <= limits.maxIncompleteBytes) continue;
      extAuthz.refused(isSlow ? 'slow' : 'bytes');
      call.abort();
    }
  }
}

function rpcType(requestStream: boolean, responseStream: boolean): RpcType {
  if (requestStream) return responseStream ? 'bidi_stream' : 'client_stream';
  return responseStream ? 'server_stream' : 'unary';
}
