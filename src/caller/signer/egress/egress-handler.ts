/** Handles one request of an application: checks it, receives the body, signs, sends, and forwards the response. */

import type { BodySpool } from '../../../process/http-proxy/body-spool.ts';
import type {
  ClientExchange,
  ClientResponse,
  HeaderLines,
} from '../../../process/http-proxy/client-exchange.ts';
import { ExchangeRunner } from '../../../process/http-proxy/exchange-runner.ts';
import { type ForwardOptions, type ForwardOutcome, forward } from '../../../process/http-proxy/forward.ts';
import type { ProblemResponse } from '../../../process/http-proxy/problem.ts';
import { type ProxyFaultCode, problemOfProxyFault } from '../../../process/http-proxy/proxy-faults.ts';
import { receiveBody } from '../../../process/http-proxy/receive-body.ts';
import { headFaultOf } from '../../../process/http-proxy/request-head.ts';
import { acceptsTrailers } from '../../../process/http-proxy/request-lines.ts';
import { breakOff, respond, type Served } from '../../../process/http-proxy/respond.ts';
import type { UpstreamPool } from '../../../process/http-proxy/upstream-pool.ts';
import { BodySpace, UNVERIFIED } from '../../../process/request-body/body-space.ts';
import { CLOCK_AHEAD_HEADER } from '../../../protocol/wire-names.ts';
import type { RequestSigner, SignedRequest, SigningFailure } from '../../sign/request-signer.ts';
import { HEADERS_TOO_LARGE, headersTooLarge } from '../header-size.ts';
import { problemOfRefusal, type Refusal } from '../signing-refusals.ts';
import { deniedClockAhead, OWN_HEADERS } from './clock-lines.ts';
import type { EgressMetrics } from './egress-metrics.ts';
import { ROUTE_UNKNOWN, refusalOf } from './egress-refusals.ts';
import { type Destination, destinationOf, type UpstreamRoute } from './egress-routes.ts';
import { outgoingLines, signableHeaders, withCredentials } from './outgoing-lines.ts';

export interface EgressLimits {
  /** Maximum number of requests in progress; further ones are rejected. */
  readonly maxRequests: number;
  readonly maxBodyBytes: number;
  /** Directory of temporary files for bodies above 64 KiB. */
  readonly spoolDirectory: string;
  /** Maximum size of those files together. */
  readonly maxSpoolBytes: number;
  /** Maximum time to receive a body, milliseconds. */
  readonly bodyTimeoutMs: number;
  /** Maximum time without progress of a stream, milliseconds. */
  readonly idleTimeoutMs: number;
  /** Maximum time to wait for a free connection to the upstream, milliseconds. */
  readonly queueTimeoutMs: number;
}

export interface EgressRoute extends UpstreamRoute {
  readonly pool: UpstreamPool;
}

export interface EgressParts {
  readonly routes: readonly EgressRoute[];
  readonly signer: Pick<RequestSigner, 'profileFor' | 'readAnswer' | 'sign'>;
  /** How to handle a request without a profile. After an error of the key or the signer, it is always refused. */
  readonly unsigned: 'deny' | 'pass';
  readonly limits: EgressLimits;
  readonly metrics: EgressMetrics & { refused(code: string): void };
  /** Called for each signed request when its response has ended. */
  readonly onSigned: (signed: SignedRequest, outcome: ForwardOutcome) => void;
  /** Called for each request that is sent unsigned. */
  readonly onPassed: (method: string) => void;
  /** Called for each denial because of a wrong clock. @param aheadSeconds negative when the clock is behind the server's */
  readonly onWrongClock: (aheadSeconds: number) => void;
  readonly onInternalError: (error: unknown) => void;
  /** Clock for signing. Default: the system's. */
  readonly nowMs?: () => number;
}

type Received =
  | { readonly kind: 'received'; readonly spool: BodySpool | undefined }
  | { readonly kind: 'served'; readonly served: Served };

export class EgressHandler {
  readonly #parts: EgressParts;
  readonly #hosts: () => ReadonlySet<string>;
  readonly #space: BodySpace;
  readonly #runner: ExchangeRunner;

  /** @param hosts authorities of the listener */
  constructor(parts: EgressParts, hosts: () => ReadonlySet<string>) {
    const { limits, metrics, onInternalError } = parts;
    this.#parts = parts;
    this.#hosts = hosts;
    // All applications of the owner are one caller, so they do not need separate shares.
    this.#space = new BodySpace({
      maxBytes: limits.maxSpoolBytes,
      maxBodyBytes: limits.maxSpoolBytes,
      onChange: metrics.spooled,
    });
    this.#runner = new ExchangeRunner({
      ...limits,
      metrics,
      onInternalError,
      serve: (exchange) => this.#serve(exchange),
    });
  }

  handle(exchange: ClientExchange): Promise<void> {
    return this.#runner.run(exchange);
  }

  /** Resolves when every request has its response. */
  untilIdle(): Promise<void> {
    return this.#runner.untilIdle();
  }

  async #serve(exchange: ClientExchange): Promise<Served> {
    const { request, response } = exchange;
    const fault = headFaultOf(exchange);
    if (fault !== undefined) return this.#refuse(response, fault.code, fault.problem);
    const refusal = refusalOf(request, this.#hosts());
    if (refusal !== undefined) return this.#refuseSigning(response, refusal);
    if (exchange.upgrade !== undefined) return this.#refuseFault(response, 'upgrade_refused');
    const destination = destinationOf(this.#parts.routes, request.target);
    if (destination === undefined) return this.#refuseSigning(response, ROUTE_UNKNOWN);
    const found = this.#parts.signer.profileFor({ method: request.method, url: urlOf(destination) });
    if (found.kind === 'failed' && !this.#mayPass(found)) return this.#refuseSigning(response, found);
    const received = await this.#receive(exchange);
    if (received.kind === 'served') return received.served;
    try {
      return await this.#signAndSend(exchange, destination, received.spool);
    } finally {
      await received.spool?.discard();
    }
  }

  /** Nothing is sent upstream before the whole body has arrived, because the proof precedes the body. */
  async #receive({ request, response }: ClientExchange): Promise<Received> {
    const { body, expectsContinue } = request;
    const { limits } = this.#parts;
    if (body.kind === 'none') return { kind: 'received', spool: undefined };
    if ((body.lengthBytes ?? 0) > limits.maxBodyBytes) {
      return { kind: 'served', served: this.#refuseFault(response, 'body_too_large') };
    }
    if (expectsContinue) response.sendContinue();
    const received = await receiveBody({
      body,
      spool: { directory: limits.spoolDirectory, held: this.#space.open(UNVERIFIED) },
      maxBodyBytes: limits.maxBodyBytes,
      timeoutMs: limits.bodyTimeoutMs,
    });
    switch (received.kind) {
      case 'received':
        return received;
      case 'fault':
        return { kind: 'served', served: this.#refuseFault(response, received.code) };
      default:
        return { kind: 'served', served: breakOff(response) };
    }
  }

  async #signAndSend(
    { request, response }: ClientExchange,
    destination: Destination<EgressRoute>,
    spool: BodySpool | undefined,
  ): Promise<Served> {
    const { onPassed, onSigned, signer } = this.#parts;
    const lines = outgoingLines(request, destination.route.origin.authority);
    const toSign = {
      method: request.method,
      url: urlOf(destination),
      headers: signableHeaders(lines, spool?.lengthBytes ?? 0),
      body: spool && signedBodyOf(spool),
    };
    for (let isRepeated = false; ; isRepeated = true) {
      const signed = signer.sign(toSign);
      if (signed.kind === 'failed') {
        if (!this.#mayPass(signed)) return this.#refuseSigning(response, signed);
        onPassed(request.method);
        return this.#answer(response, await this.#send({ request, response }, destination, lines, spool));
      }
      const withProof = withCredentials(lines, signed.headers);
      if (headersTooLarge(withProof)) return this.#refuseSigning(response, HEADERS_TOO_LARGE);
      const outcome = await this.#send(
        { request, response },
        destination,
        withProof,
        spool,
        (status, upstream) => {
          const answered = upstream.map(([name, value]) => ({ name, value }));
          return signer.readAnswer(signed.url.origin, status, answered) && !isRepeated;
        },
      );
      onSigned(signed, outcome);
      if (outcome.kind !== 'declined') return this.#answer(response, outcome);
    }
  }

  #clockLines(upstream: HeaderLines, sentMs: number): HeaderLines {
    const { nowMs = Date.now, onWrongClock } = this.#parts;
    const ahead = deniedClockAhead(upstream, { sentMs, nowMs: nowMs() });
    if (ahead === undefined) return [];
    onWrongClock(ahead);
    return [[CLOCK_AHEAD_HEADER, String(ahead)]];
  }

  #send(
    { request, response }: ClientExchange,
    { route, target }: Destination<EgressRoute>,
    lines: HeaderLines,
    spool: BodySpool | undefined,
    declines: ForwardOptions['declines'] = () => false,
  ): Promise<ForwardOutcome> {
    const { limits, nowMs = Date.now } = this.#parts;
    const { idleTimeoutMs, queueTimeoutMs } = limits;
    const sentMs = nowMs();
    const body = spool?.forUpstream();
    return forward({
      pool: route.pool,
      response,
      request: {
        method: request.method,
        target,
        headers: lines.flat(),
        body,
        lengthBytes: body === undefined ? undefined : spool?.lengthBytes,
      },
      acceptsTrailers: request.protocolVersion === '2.0' || acceptsTrailers(lines),
      withheld: OWN_HEADERS,
      declines,
      linesBeside: (upstream) => this.#clockLines(upstream, sentMs),
      queueTimeoutMs,
      idleTimeoutMs,
    });
  }

  #answer(response: ClientResponse, outcome: ForwardOutcome): Served {
    const { metrics } = this.#parts;
    switch (outcome.kind) {
      case 'completed':
        return outcome.status;
      case 'client_gone':
        return 'gone';
      case 'declined':
        throw new Error('a request that was not signed again');
      case 'upgraded':
        // An upstream must not upgrade a request that asked for no upgrade.
        outcome.socket.destroy();
        return respond(response, problemOfProxyFault('upstream_response_invalid'));
      case 'broken':
        metrics.upstreamFailed(outcome.code);
        return outcome.status;
      case 'failed':
        if (outcome.code === 'request_not_forwardable') return this.#refuseFault(response, outcome.code);
        metrics.upstreamFailed(outcome.code);
        return respond(response, problemOfProxyFault(outcome.code));
    }
  }

  #mayPass({ code }: SigningFailure): boolean {
    return code === 'profile_not_found' && this.#parts.unsigned === 'pass';
  }

  #refuseSigning(response: ClientResponse, refusal: Refusal): Served {
    return this.#refuse(response, refusal.code, problemOfRefusal(refusal));
  }

  #refuseFault(response: ClientResponse, code: ProxyFaultCode): Served {
    return this.#refuse(response, code, problemOfProxyFault(code));
  }

  #refuse(response: ClientResponse, code: string, problem: ProblemResponse): Served {
    this.#parts.metrics.refused(code);
    return respond(response, problem);
  }
}

const urlOf = ({ route: { origin }, target }: Destination<EgressRoute>) =>
  `${origin.scheme}://${origin.authority}${target}`;

function signedBodyOf(spool: BodySpool) {
  const state = spool.state();
  return state.kind === 'exact' ? state.bytes : { sha256: state.sha256, byteLength: spool.lengthBytes };
}
