/**
 * Limits, counts and tracks every RPC from start to end. grpc-js limits neither the number of RPCs nor how long a
 * request may stay incomplete, and it retains an RPC whose deadline has passed.
 * Source: docs/operate/enforcement.md "Overload, limits and time-outs".
 */
import { type ServerInterceptor, status } from '@grpc/grpc-js';
import { LinkedList } from '../node-internals/linked-list.ts';
import type {
  ExtAuthzServerMetrics,
  RpcMethodMetrics,
  RpcMetrics,
  RpcType,
} from '../telemetry/ext-authz-server-metrics.ts';
import { type DenyCheck, OpenCall } from './open-call.ts';
import { CHECK_PATH } from './service.ts';

interface OpenCallsOptions {
  readonly rpc: RpcMetrics;
  readonly extAuthz: ExtAuthzServerMetrics;
  readonly limits: CallLimits;
  /** Bytes received so far over all connections. */
  readonly bytesReceived: () => number;
  /** Denial for a Check that is over a limit. */
  readonly deny: DenyCheck;
}

export interface CallLimits {
  /** Maximum number of concurrent RPCs in any state. One more is rejected; a Check gets a denial. */
  readonly maxCalls: number;
  /** Maximum number of concurrent streams, including those of health and reflection. */
  readonly maxStreams: number;
  /** Maximum time to receive a request that has begun, and to send its response. */
  readonly transferTimeoutMs: number;
  /**
   * Maximum number of bytes received while a request is incomplete. RPCs that exceed it for longer than an instant are
   * ended.
   */
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
  /** Open calls in the order in which they began. */
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

  /** Runs for every RPC to a known method when its headers have arrived. */
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

  /** The RPC whose handler is running; grpc-js calls the handler while it processes the end of the request. */
  current(): OpenCall | undefined {
    return this.#handled;
  }

  /** Only `OpenCall` calls this. */
  setHandled(call: OpenCall | undefined): void {
    this.#handled = call;
  }

  /** Only `OpenCall` calls this, when it begins. */
  add(call: OpenCall): void {
    this.#open.add(call);
    if (!call.isUnary) this.#streams += 1;
  }

  /** Only `OpenCall` calls this, when it has ended. */
  remove(call: OpenCall): void {
    if (this.#open.delete(call) && !call.isUnary) this.#streams -= 1;
  }

  /** Ends the streams, which would never end by themselves: a client that watches health must not delay shutdown. */
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
   * Counts time in sweeps, not by the clock: after the process was suspended, it must not end every RPC that arrived
   * meanwhile.
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
      // Calls are sorted by age, so the first match has waited for the most bytes.
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

/** Milliseconds; shorter stalls go unnoticed. */
const LOOK_EVERY_MS = 20;

interface LoopStall {
  /** Duration of the stall just before what is being read now, milliseconds; 0 when there was none. */
  lastMs(): number;
  close(): void;
}

/** The timer does not keep the process alive. */
function watchLoopStalls(): LoopStall {
  let lastMs = 0;
  let lookedMs = performance.now();
  const timer = setInterval(() => {
    const nowMs = performance.now();
    const heldUpMs = nowMs - lookedMs - LOOK_EVERY_MS;
    lookedMs = nowMs;
    if (heldUpMs < LOOK_EVERY_MS) return;
    lastMs = heldUpMs;
    // A turn of the event loop runs timers first, then I/O callbacks, then this.
    setImmediate(() => {
      lastMs = 0;
    });
  }, LOOK_EVERY_MS).unref();
  return { lastMs: () => lastMs, close: () => clearInterval(timer) };
}
