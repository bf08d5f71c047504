/** One RPC from start to end, as a grpc-js interceptor sees it. */
import { type Metadata, ServerInterceptingCall, status } from '@grpc/grpc-js';
import type { CallContext } from '../connections/call-context.ts';
import { closeStream, isCompressed } from '../node-internals/grpc-call.ts';
import type { Linked } from '../node-internals/linked-list.ts';
import type { DecisionTrace } from '../telemetry/decision-trace.ts';
import type { RpcMethodMetrics } from '../telemetry/ext-authz-server-metrics.ts';

type Inner = ConstructorParameters<typeof ServerInterceptingCall>[0];
type Listener = Parameters<Inner['start']>[0];
type Status = Parameters<Inner['sendStatus']>[0];

export interface OpenCallOptions {
  readonly inner: Inner;
  readonly isUnary: boolean;
  /** The client sends exactly one message, which must arrive within the transfer timeout. */
  readonly hasOneRequest: boolean;
  readonly metrics: RpcMethodMetrics;
  /** How long the request may have waited in the system's buffers. */
  readonly stalledMs: number;
  readonly registry: CallRegistry;
  /** For a Check: denies it without its message and passes the encoded denial to `send`. */
  readonly deny?: DenyCheck | undefined;
}

export type DenyCheck = (call: OpenCall, send: (denial: Buffer) => void) => void;

export interface CallRegistry {
  add(call: OpenCall): void;
  /** Sets the call whose handler is about to run, so that the handler can look it up. */
  setHandled(call: OpenCall | undefined): void;
  remove(call: OpenCall): void;
}

/** How long an RPC has been waiting for its peer. */
export interface TransferAge {
  readonly sweeps: number;
  /** Bytes received meanwhile over all connections. */
  readonly bytes: number;
}

/** RFC 9113 section 7 */
const NO_ERROR = 0;
const CANCEL = 8;

const OK: Status = { code: status.OK, details: 'OK' };

/** A request that waited this long before it was read is denied, regardless of its deadline. */
const MAX_QUEUE_MS = 1_000;

/**
 * Extends the library's class only for its type: no code of that class runs per message. Fields are plain properties
 * rather than private ones, because there is one instance for each Check.
 */
export class OpenCall extends ServerInterceptingCall implements CallContext, Linked<OpenCall>, Listener {
  readonly isUnary: boolean;
  trace: DecisionTrace | undefined;
  /** Links of the list of open calls. */
  next: OpenCall | undefined;
  previous: OpenCall | undefined;
  isListed = false;
  private readonly inner: Inner;
  private readonly hasOneRequest: boolean;
  private readonly metrics: RpcMethodMetrics;
  private readonly registry: CallRegistry;
  /** This and the following times are of `performance.now()`. */
  private readonly startedMs: number;
  private readonly deadlineMs: number;
  private readonly refuseAtMs: number;
  private completeMs: number | undefined;
  private listener: Listener | undefined;
  private metadata: Metadata | undefined;
  private readonly sendToPeer: Inner['sendStatus'];
  private readonly denyCheck: DenyCheck | undefined;
  private refusal: Status | undefined;
  private isOverLimit = false;
  /** Denied before its message arrived, which may still come. */
  private isDenied = false;
  private isAnswered = false;
  private isCounted = false;
  private isOver = false;
  private sweeps = 0;
  private bytesAtFirstSweep = 0;

  constructor({ deny, hasOneRequest, inner, isUnary, metrics, registry, stalledMs }: OpenCallOptions) {
    super(inner);
    this.isUnary = isUnary;
    this.inner = inner;
    this.hasOneRequest = hasOneRequest;
    this.metrics = metrics;
    this.registry = registry;
    this.denyCheck = deny;
    this.sendToPeer = inner.sendStatus;
    // Errors that the library detects, such as a message over its limit, are handled like our own.
    if (deny !== undefined) inner.sendStatus = (ended) => this.sendStatus(ended);
    this.startedMs = performance.now();
    const deadline = Number(inner.getDeadline());
    const patienceMs = deadline === Number.POSITIVE_INFINITY ? deadline : deadline - Date.now();
    this.deadlineMs = this.startedMs + patienceMs;
    // Half of the remaining time is reserved for the decision and the response. Without a deadline only our own delay
    // counts: a peer may pause between a request's headers and its message.
    const isLate = stalledMs >= MAX_QUEUE_MS;
    this.refuseAtMs = isLate ? this.startedMs : this.startedMs - stalledMs + patienceMs / 2;
  }

  get waitedTooLong(): boolean {
    return this.isOver || this.isOverLimit || performance.now() >= this.refuseAtMs;
  }

  isGone(): boolean {
    return this.isOver || performance.now() >= this.deadlineMs;
  }

  traceparent(): string | undefined {
    return this.metadata?.get('traceparent')[0]?.toString();
  }

  /** Marks the call as rejected before it begins. */
  refuse(code: status, details: string): void {
    this.refusal = { code, details };
    this.isOverLimit = code === status.RESOURCE_EXHAUSTED;
  }

  get isCompressed(): boolean {
    return isCompressed(this.inner);
  }

  /** Ends a stream because the server drains. */
  leave(): void {
    this.sendStatus({ code: status.UNAVAILABLE, details: 'draining' });
  }

  /** Denies a Check first. The next sweep aborts it if the peer has not read the denial. */
  abort(): void {
    if (this.denyCheck !== undefined && !this.isAnswered) {
      const { sweeps } = this;
      this.isOverLimit = true;
      this.deny(this.denyCheck);
      this.sweeps = sweeps;
      return;
    }
    if (!closeStream(this.inner, CANCEL)) {
      this.sendStatus({ code: status.RESOURCE_EXHAUSTED, details: 'not complete in time' });
    }
    this.onCancel();
  }

  /**
   * Checks the call's age.
   * @param bytes received so far over all connections
   * @returns undefined while the call is not waiting for its peer
   */
  sweep(bytes: number): TransferAge | undefined {
    const isReceiving = this.hasOneRequest && this.completeMs === undefined;
    if (!isReceiving && !this.isAnswered) return undefined;
    if (this.sweeps === 0) this.bytesAtFirstSweep = bytes;
    this.sweeps += 1;
    return { sweeps: this.sweeps, bytes: isReceiving ? bytes - this.bytesAtFirstSweep : 0 };
  }

  override start(listener: Listener): void {
    this.listener = listener;
    this.inner.start(this);
  }

  override startRead(): void {
    this.inner.startRead();
  }

  override sendMetadata(metadata: Metadata): void {
    this.inner.sendMetadata(metadata);
  }

  override sendMessage(message: unknown, callback: () => void): void {
    this.metrics.sent();
    // From here on the call waits for the peer to read the response.
    if (this.isUnary) this.markAnswered();
    this.inner.sendMessage(message, callback);
  }

  /**
   * Envoy turns an RPC error into an allow under `failure_mode_allow`, so a Check gets a denial instead. At the
   * deadline Envoy has stopped listening, so that error stays an error.
   */
  override sendStatus(ended: Status): void {
    const isError = ended.code !== status.OK && ended.code !== status.DEADLINE_EXCEEDED;
    if (isError && this.denyCheck !== undefined && !this.isAnswered) {
      this.deny(this.denyCheck);
      return;
    }
    // The library may report more errors for the bytes that follow.
    if (isError && this.isDenied) return;
    this.count(status[ended.code ?? status.UNKNOWN] ?? 'UNKNOWN');
    this.markAnswered();
    this.sendToPeer.call(this.inner, ended);
  }

  private deny(denyCheck: DenyCheck): void {
    this.isDenied = true;
    denyCheck(this, (denial) => this.sendMessage(denial, () => this.sendStatus(OK)));
  }

  onReceiveMetadata(metadata: Metadata): void {
    this.metrics.started();
    this.metadata = metadata;
    // A denied Check is registered too: its peer may not read the denial.
    if (this.refusal === undefined || this.denyCheck !== undefined) this.registry.add(this);
    if (this.refusal !== undefined) {
      this.sendStatus(this.refusal);
      return;
    }
    this.listener?.onReceiveMetadata(metadata);
  }

  onReceiveMessage(message: unknown): void {
    if (this.isDenied) return;
    this.metrics.received();
    this.listener?.onReceiveMessage(message);
  }

  onReceiveHalfClose(): void {
    if (this.isDenied) return;
    this.completeMs = performance.now();
    this.sweeps = 0;
    this.registry.setHandled(this);
    this.listener?.onReceiveHalfClose();
    this.registry.setHandled(undefined);
  }

  /** grpc-js calls this once when the RPC ends, successfully or not, and also when its deadline has passed. */
  onCancel(): void {
    if (this.isOver) return;
    this.isOver = true;
    // The library's timer uses another clock and may fire a fraction of a millisecond early.
    const isLate = performance.now() + 2 >= this.deadlineMs;
    this.count(isLate ? 'DEADLINE_EXCEEDED' : 'CANCELLED');
    // The peer may still be sending, and grpc-js would keep what it sends (RFC 9113 section 8.1). The status is already
    // queued and goes first.
    if (this.completeMs === undefined) setImmediate(() => closeStream(this.inner, NO_ERROR));
    this.registry.remove(this);
    this.listener?.onCancel();
  }

  private markAnswered(): void {
    if (this.isAnswered) return;
    this.isAnswered = true;
    this.sweeps = 0;
  }

  private count(code: string): void {
    if (this.isCounted) return;
    this.isCounted = true;
    this.metrics.handled(code, (performance.now() - (this.completeMs ?? this.startedMs)) / 1000);
  }
}
