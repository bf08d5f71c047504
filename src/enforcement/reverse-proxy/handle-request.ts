/** Handles one request: checks its head, receives the body, verifies, and forwards the response. */
import type { Readable } from 'node:stream';
import { type BodySpool, MEMORY_BYTES } from '../../process/http-proxy/body-spool.ts';
import { bodyStream } from '../../process/http-proxy/body-stream.ts';
import type {
  ClientExchange,
  ClientRequest,
  ClientResponse,
  StreamedBody,
} from '../../process/http-proxy/client-exchange.ts';
import { ExchangeRunner } from '../../process/http-proxy/exchange-runner.ts';
import { type ForwardOutcome, forward } from '../../process/http-proxy/forward.ts';
import { type ProxyFaultCode, problemOfProxyFault } from '../../process/http-proxy/proxy-faults.ts';
import { receiveBody } from '../../process/http-proxy/receive-body.ts';
import { headFaultOf } from '../../process/http-proxy/request-head.ts';
import { acceptsTrailers } from '../../process/http-proxy/request-lines.ts';
import { breakOff, respond, type Served } from '../../process/http-proxy/respond.ts';
import { DENIAL_HEADERS } from '../../process/http-proxy/response-lines.ts';
import type { UpstreamPool } from '../../process/http-proxy/upstream-pool.ts';
import { BodySpace, UNVERIFIED } from '../../process/request-body/body-space.ts';
import type { DecisionTracer } from '../../process/telemetry/decision-trace.ts';
import { normalizeAuthority, type Origin } from '../../protocol/request-target.ts';
import type {
  AllowedDecision,
  Decision,
  DeniedDecision,
  ObservedDecision,
} from '../../verifier/decision/decide.ts';
import type { RequestFacts } from '../../verifier/decision/facts/request-facts.ts';
import type { Verifier } from '../../verifier/verifier.ts';
import { problemOfDenial } from '../answers/denial-problem.ts';
import { httpCall } from '../http/http-call.ts';
import { headersForUpstream } from '../http/upstream-request.ts';
import type { ProxyMetrics } from './proxy-metrics.ts';
import { linesForUpstream, verifiableHeadersOf } from './request-lines.ts';
import { isMatchingAnswer, switchingLines, Tunnels } from './websocket.ts';

export interface ProxyLimits {
  /** Maximum number of requests in progress; further ones are rejected. */
  readonly maxRequests: number;
  readonly maxBodyBytes: number;
  /** Directory of temporary files for bodies. */
  readonly spoolDirectory: string;
  /** Maximum size of those files together. */
  readonly maxSpoolBytes: number;
  /** Maximum time to receive a bound body, milliseconds. */
  readonly bodyTimeoutMs: number;
  /** Maximum time without progress of a stream, in each direction, milliseconds. */
  readonly idleTimeoutMs: number;
  /** Maximum time to wait for a free connection to the upstream, milliseconds. */
  readonly queueTimeoutMs: number;
}

export interface ProxyParts {
  readonly verifier: Verifier;
  readonly pool: UpstreamPool;
  readonly metrics: ProxyMetrics;
  readonly limits: ProxyLimits;
  /** The origin that is verified instead of the request's own; undefined for the request's own. */
  readonly externalOrigin: Origin | undefined;
  /** `Host` for the upstream; undefined for the authority that was verified. */
  readonly upstreamHost: string | undefined;
  readonly tracer: DecisionTracer | undefined;
  readonly onInternalError: (error: unknown) => void;
}

/** Answers a request. Never rejects. */
export class RequestHandler {
  readonly #parts: ProxyParts;
  readonly #tunnels: Tunnels;
  /** Space for bodies that are being received. A body on disk counts as {@link MEMORY_BYTES}. */
  readonly #memory: BodySpace;
  readonly #disk: BodySpace;
  readonly #runner: ExchangeRunner;

  constructor(parts: ProxyParts) {
    const { limits, metrics, onInternalError } = parts;
    this.#parts = parts;
    this.#tunnels = new Tunnels(metrics);
    this.#memory = new BodySpace({
      maxBytes: limits.maxRequests * MEMORY_BYTES,
      maxBodyBytes: MEMORY_BYTES,
    });
    this.#disk = new BodySpace({
      maxBytes: limits.maxSpoolBytes,
      maxBodyBytes: limits.maxBodyBytes,
      onChange: metrics.spooled,
    });
    this.#runner = new ExchangeRunner({
      ...limits,
      metrics,
      onInternalError,
      serve: (exchange) => this.#serve(exchange),
    });
  }

  /** Resolves when every client has its response. */
  untilIdle(): Promise<void> {
    return this.#runner.untilIdle();
  }

  handle(exchange: ClientExchange): Promise<void> {
    return this.#runner.run(exchange);
  }

  async #serve(exchange: ClientExchange): Promise<Served> {
    const { metrics } = this.#parts;
    const { request, response } = exchange;
    const fault = headFaultOf(exchange);
    if (fault !== undefined) {
      metrics.refused(fault.code);
      return respond(response, fault.problem);
    }
    const facts = factsOf(exchange, this.#hostsOf(request).host);
    if (exchange.upgrade !== undefined && !this.#parts.verifier.allowsWebSocket(facts)) {
      return this.#refuse(response, 'upgrade_refused');
    }
    const { body } = request;
    if (body.kind === 'none') return this.#decide(exchange, { ...facts, body: NO_BODY }, undefined);
    if (this.#parts.verifier.bindsBody(facts)) return this.#serveBound(exchange, facts, body);
    return this.#decide(exchange, facts, body);
  }

  /** Nothing is sent upstream before the whole body has arrived and is verified. */
  async #serveBound(exchange: ClientExchange, facts: RequestFacts, body: StreamedBody): Promise<Served> {
    const { limits } = this.#parts;
    const { response } = exchange;
    if ((body.lengthBytes ?? 0) > limits.maxBodyBytes) return this.#refuse(response, 'body_too_large');
    const admitted = this.#admitBody(exchange.request, facts, body);
    switch (admitted.kind) {
      case 'denied':
        return respond(response, problemOfDenial(admitted));
      case 'fault':
        return this.#refuse(response, admitted.code);
      case 'admitted':
        try {
          return await this.#receiveBound(exchange, facts, body, admitted);
        } finally {
          admitted.end();
        }
    }
  }

  /**
   * Before passport and proof are verified, only a short body of announced length is kept, and only while there is
   * room.
   */
  #admitBody(request: ClientRequest, facts: RequestFacts, { lengthBytes }: StreamedBody): BodyAdmission {
    const isShort = lengthBytes !== undefined && lengthBytes <= MEMORY_BYTES;
    const unverified = this.#memory.open(UNVERIFIED);
    if (isShort && !request.expectsContinue && !this.#runner.isBusy && unverified.atLeast(lengthBytes)) {
      return { kind: 'admitted', caller: UNVERIFIED, end: () => unverified.release() };
    }
    const awaited = this.#parts.verifier.awaitBody(facts);
    if (awaited.kind === 'denied') return awaited;
    const held = this.#memory.open(awaited.caller);
    if (!held.atLeast(MEMORY_BYTES)) {
      awaited.end();
      return { kind: 'fault', code: 'overloaded' };
    }
    const end = () => {
      awaited.end();
      held.release();
    };
    return { kind: 'admitted', caller: awaited.caller, end };
  }

  async #receiveBound(
    exchange: ClientExchange,
    facts: RequestFacts,
    body: StreamedBody,
    { caller, end }: Extract<BodyAdmission, { kind: 'admitted' }>,
  ): Promise<Served> {
    const { limits } = this.#parts;
    const { request, response } = exchange;
    if (request.expectsContinue) response.sendContinue();
    const received = await receiveBody({
      body,
      spool: { directory: limits.spoolDirectory, held: this.#disk.open(caller) },
      maxBodyBytes: limits.maxBodyBytes,
      timeoutMs: limits.bodyTimeoutMs,
    });
    switch (received.kind) {
      case 'gone':
        return breakOff(response);
      case 'fault':
        return this.#refuse(response, received.code);
      case 'received':
        try {
          const complete = { ...facts, body: received.spool.state() };
          return await this.#decide(exchange, complete, received.spool, end);
        } finally {
          await received.spool.discard();
        }
    }
  }

  /**
   * @param body body for the upstream @param onDecided called when the proof is used or denied
   */
  async #decide(
    exchange: ClientExchange,
    facts: RequestFacts,
    body: BodySpool | StreamedBody | undefined,
    onDecided?: () => void,
  ): Promise<Served> {
    const { request, response } = exchange;
    const call = httpCall(facts.headers, this.#parts.tracer, () => response.isGone());
    const pending = this.#parts.verifier.check(facts, call);
    const decision: Decision = pending instanceof Promise ? await pending : pending;
    onDecided?.();
    if (decision.kind === 'denied') return respond(response, problemOfDenial(decision));
    if (body !== undefined && !('forUpstream' in body) && request.expectsContinue) response.sendContinue();
    if (exchange.upgrade !== undefined && decision.route?.upgrade !== 'websocket') {
      return this.#refuse(response, 'upgrade_refused');
    }
    const outcome = await this.#forward(exchange, decision, body);
    switch (outcome.kind) {
      case 'completed':
        return outcome.status;
      case 'declined':
        throw new Error('the reverse proxy declines no answer');
      case 'client_gone':
        return 'gone';
      case 'upgraded':
        return this.#tunnel(exchange, decision, outcome);
      case 'broken':
        this.#parts.metrics.upstreamFailed(outcome.code);
        return outcome.status;
      case 'failed':
        return this.#failUpstream(response, outcome.code);
    }
  }

  async #tunnel(
    { request, response, upgrade }: ClientExchange,
    decision: PassedDecision,
    { lines, socket }: Extract<ForwardOutcome, { kind: 'upgraded' }>,
  ): Promise<Served> {
    const { limits, verifier } = this.#parts;
    if (upgrade === undefined || !isMatchingAnswer(request, lines)) {
      socket.destroy();
      return this.#failUpstream(response, 'upstream_response_invalid');
    }
    await this.#tunnels.run({
      client: upgrade.accept(switchingLines(lines)),
      upstream: socket,
      idleTimeoutMs: limits.idleTimeoutMs,
      isStillAllowed: () =>
        decision.kind === 'allowed' ? verifier.hasValidKey(decision) : verifier.isStillObserved(decision),
    });
    return 101;
  }

  #forward(
    { request, response, upgrade }: ClientExchange,
    decision: PassedDecision,
    body: BodySpool | StreamedBody | undefined,
  ): Promise<ForwardOutcome> {
    const { limits, pool } = this.#parts;
    const lines = headersForUpstream(request.rawHeaders, decision);
    const headers = linesForUpstream(lines, { ...request, ...this.#hostsOf(request) });
    return forward({
      pool,
      response,
      request: {
        method: request.method,
        target: request.target,
        headers: headers.flat(),
        upgrade: upgrade && 'websocket',
        ...upstreamBody(body, limits.idleTimeoutMs),
      },
      acceptsTrailers: request.protocolVersion === '2.0' || acceptsTrailers(lines),
      withheld: DENIAL_HEADERS,
      queueTimeoutMs: limits.queueTimeoutMs,
      idleTimeoutMs: limits.idleTimeoutMs,
    });
  }

  /** `Host` for the upstream, and the authority that the verifier checks. */
  #hostsOf(request: ClientRequest): { readonly host: string; readonly verifiedAuthority: string } {
    const { externalOrigin, upstreamHost } = this.#parts;
    const { scheme, authority } = externalOrigin ?? request;
    const verifiedAuthority = normalizeAuthority(scheme, authority);
    return { host: upstreamHost ?? verifiedAuthority, verifiedAuthority };
  }

  #refuse(response: ClientResponse, code: ProxyFaultCode): Served {
    this.#parts.metrics.refused(code);
    return respond(response, problemOfProxyFault(code));
  }

  #failUpstream(response: ClientResponse, code: ProxyFaultCode): Served {
    if (code === 'body_timeout' || code === 'request_not_forwardable') return this.#refuse(response, code);
    this.#parts.metrics.upstreamFailed(code);
    return respond(response, problemOfProxyFault(code));
  }
}

type PassedDecision = AllowedDecision | ObservedDecision;

type BodyAdmission =
  | DeniedDecision
  | { readonly kind: 'fault'; readonly code: ProxyFaultCode }
  /** `caller` has the body; `end` may be called more than once. */
  | { readonly kind: 'admitted'; readonly caller: string; readonly end: () => void };

const NO_BODY = { kind: 'none' } as const;
const UNREAD_BODY = { kind: 'unknown' } as const;

function factsOf({ request, upgrade }: ClientExchange, host: string): RequestFacts {
  const { authority, method, rawHeaders, scheme, target } = request;
  const headers = verifiableHeadersOf(rawHeaders, host);
  const becomes = upgrade === undefined ? 'none' : 'tunnel';
  const head = { method, scheme, authority, target, headers, upgrade: becomes } as const;
  return { ...head, body: UNREAD_BODY, removesProofs: true };
}

interface UpstreamBody {
  readonly body: Buffer | Readable | undefined;
  readonly lengthBytes: number | undefined;
}

function upstreamBody(body: BodySpool | StreamedBody | undefined, idleTimeoutMs: number): UpstreamBody {
  if (body === undefined) return { body: undefined, lengthBytes: undefined };
  if ('forUpstream' in body) {
    const bytes = body.forUpstream();
    return { body: bytes, lengthBytes: bytes === undefined ? undefined : body.lengthBytes };
  }
  return { body: bodyStream(body, idleTimeoutMs), lengthBytes: body.lengthBytes };
}
