/** One RPC between its first and its last byte, as grpc-js lets an interceptor see it. */
import { type Metadata, ServerInterceptingCall, status } from '@grpc/grpc-js';
import { closeStream, isCompressed } from '../../runtime-internals/grpc-call.ts';
import type { Linked } from '../../runtime-internals/linked-list.ts';
import type { DecisionTrace } from '../../telemetry/decision-trace.ts';
import type { RpcMethodMetrics } from '../../telemetry/rpc-metrics.ts';
import type { CallContext } from '../../verifier/call-context.ts';

type Inner = ConstructorParameters<typeof ServerInterceptingCall>[0];
type Listener = Parameters<Inner['start']>[0];
type Status = Parameters<Inner['sendStatus']>[0];

export interface OpenCallOptions {
  readonly inner: Inner;
  readonly isUnary: boolean;
  /** Of one message; what it consists of must come soon. */
  readonly hasOneRequest: boolean;
  readonly metrics: RpcMethodMetrics;
  /** How long the request may have waited unseen. */
  readonly stalledMs: number;
  readonly registry: CallRegistry;
  /** For a Check: decides it without its message and hands over the encoded denial. */
  readonly deny?: DenyCheck | undefined;
}

export type DenyCheck = (call: OpenCall, send: (denial: Buffer) => void) => void;

export interface CallRegistry {
  began(call: OpenCall): void;
  /** Its handler is called now, and asks for it. */
  handled(call: OpenCall | undefined): void;
  ended(call: OpenCall): void;
}

/** How long an RPC has been waiting for its peer. */
export interface TransferAge {
  readonly sweeps: number;
  /** What has come in meanwhile, over all connections. */
  readonly bytes: number;
}

/** RFC 9113 section 7 */
const NO_ERROR = 0;
const CANCEL = 8;

const OK: Status = { code: status.OK, details: 'OK' };

/** A request that waited this long before it was read is denied, whatever deadline its caller set. */
const MAX_QUEUE_MS = 1_000;

/**
 * Extends the library's class for its type alone: nothing of it runs per message. Its fields are plain ones, for there is
 * one of these for each Check.
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
  /** All of `performance.now()`. */
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
  /** Without its message, which may still come. */
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
    // Errors that the library finds by itself, such as a message over its limit, are handled like ours.
    if (deny !== undefined) inner.sendStatus = (ended) => this.sendStatus(ended);
    this.startedMs = performance.now();
    const deadline = Number(inner.getDeadline());
    const patienceMs = deadline === Number.POSITIVE_INFINITY ? deadline : deadline - Date.now();
    this.deadlineMs = this.startedMs + patienceMs;
    // What is left of the time is needed to decide, and for the answer's way back. Without a deadline only our own
    // delay counts: a peer may take its time between a request's headers and its message.
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

  /** Before it has begun. */
  refuse(code: status, details: string): void {
    this.refusal = { code, details };
    this.isOverLimit = code === status.RESOURCE_EXHAUSTED;
  }

  get isCompressed(): boolean {
    return isCompressed(this.inner);
  }

  /** Ends a stream that is not at fault. */
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
   * Looked at again.
   * @param bytes that have come in over all connections
   * @returns undefined while it is not its peer that it waits for
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
    // From here on it is the peer's turn, to take the answer.
    if (this.isUnary) this.answered();
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
    // The library may report more errors in the bytes that follow.
    if (isError && this.isDenied) return;
    this.count(status[ended.code ?? status.UNKNOWN] ?? 'UNKNOWN');
    this.answered();
    this.sendToPeer.call(this.inner, ended);
  }

  private deny(denyCheck: DenyCheck): void {
    this.isDenied = true;
    denyCheck(this, (denial) => this.sendMessage(denial, () => this.sendStatus(OK)));
  }

  onReceiveMetadata(metadata: Metadata): void {
    this.metrics.started();
    this.metadata = metadata;
    // A denied Check too: its peer may not read the denial.
    if (this.refusal === undefined || this.denyCheck !== undefined) this.registry.began(this);
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
    this.registry.handled(this);
    this.listener?.onReceiveHalfClose();
    this.registry.handled(undefined);
  }

  /** Comes once when the RPC is over, well or not; also when its deadline has passed. */
  onCancel(): void {
    if (this.isOver) return;
    this.isOver = true;
    // The library's timer goes by another clock, and may be early by a part of a millisecond.
    const isLate = performance.now() + 2 >= this.deadlineMs;
    this.count(isLate ? 'DEADLINE_EXCEEDED' : 'CANCELLED');
    // Over for us, but the peer may still be sending, and what it sent would be kept (RFC 9113 section 8.1).
    // Its status is on its way and goes first.
    if (this.completeMs === undefined) setImmediate(() => closeStream(this.inner, NO_ERROR));
    this.registry.ended(this);
    this.listener?.onCancel();
  }

  private answered(): void {
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
