/**
 * The signing API: `POST /v1/proofs` returns the headers of one request. It is for programs in languages without an
 * SDK. It listens on a Unix socket that only its owner can open, or on loopback with a token.
 * Source: docs/operate/signer.md "Signing API".
 */
import { hash, timingSafeEqual } from 'node:crypto';
import type { ClientExchange, ClientRequest } from '../../../process/http-proxy/client-exchange.ts';
import { ExchangeRunner, type RunnerMetrics } from '../../../process/http-proxy/exchange-runner.ts';
import {
  type ExchangeServer,
  type ExchangeServerOptions,
  openExchangeServer,
} from '../../../process/http-proxy/exchange-server.ts';
import { problemOfProxyFault } from '../../../process/http-proxy/proxy-faults.ts';
import { receiveBody } from '../../../process/http-proxy/receive-body.ts';
import { breakOff, respond, type Served } from '../../../process/http-proxy/respond.ts';
import { BodySpace, UNVERIFIED } from '../../../process/request-body/body-space.ts';
import { hasTooManyLines } from '../../../protocol/header-line-limit.ts';
import { formatTime } from '../../../protocol/rfc3339.ts';
import type { RequestSigner, SignedRequest } from '../../sign/request-signer.ts';
import { openOwnerOnly } from '../owner-only.ts';
import { BROWSER_REQUEST, isOfBrowser, problemOfRefusal, type Refusal } from '../signing-refusals.ts';
import { ProofRequestError, parseProofRequest } from './proof-request.ts';

export interface ProofsApiOptions {
  /** Loopback `HOST:PORT`, or `unix:PATH`. */
  readonly listen: string;
  /** Bearer token; undefined on a Unix socket, whose mode protects it. */
  readonly token: string | undefined;
  readonly signer: Pick<RequestSigner, 'sign'>;
  readonly metrics: RunnerMetrics & ExchangeServerOptions['metrics'];
  readonly onSigned: (signed: SignedRequest) => void;
  readonly onInternalError: (error: unknown) => void;
}

const MAX_CONNECTIONS = 256;
const MAX_REQUESTS = 256;
const MAX_BODY_BYTES = 64 * 1024;
const BODY_TIMEOUT_MS = 5_000;
const IDLE_TIMEOUT_MS = 10_000;
const NO_DISK = new BodySpace({ maxBytes: 0, maxBodyBytes: 0 });

/** @throws ListenError */
export async function openProofsApi(
  options: ProofsApiOptions,
): Promise<Pick<ExchangeServer, 'address' | 'drain'>> {
  const { listen, metrics, onInternalError } = options;
  const runner = new ExchangeRunner({
    maxRequests: MAX_REQUESTS,
    idleTimeoutMs: IDLE_TIMEOUT_MS,
    ...{ metrics, onInternalError },
    serve: (exchange) => serve(exchange, options),
  });
  return openOwnerOnly(listen, () =>
    openExchangeServer({
      ...{ listen, metrics, tls: undefined, maxConnections: MAX_CONNECTIONS },
      handle: (exchange) => void runner.run(exchange),
      untilIdle: () => runner.untilIdle(),
    }),
  );
}

async function serve(exchange: ClientExchange, options: ProofsApiOptions): Promise<Served> {
  const { request, response } = exchange;
  const refuse = (refusal: Refusal): Served => {
    options.metrics.refused(refusal.code);
    return respond(response, problemOfRefusal(refusal));
  };
  if (hasTooManyLines(request.rawHeaders)) {
    options.metrics.refused('headers_too_large');
    return respond(response, problemOfProxyFault('headers_too_large'));
  }
  const refusal = refusalOf(request, options.token);
  if (refusal !== undefined) return refuse(refusal);
  const body = await textOf(exchange);
  if (body.kind === 'served') return body.served;
  try {
    const signed = options.signer.sign(parseProofRequest(body.text));
    if (signed.kind === 'failed') return refuse(signed);
    options.onSigned(signed);
    return respond(response, answerOf(signed));
  } catch (error) {
    if (!(error instanceof ProofRequestError)) throw error;
    return refuse({ code: 'request_invalid', message: error.message });
  }
}

function refusalOf(request: ClientRequest, token: string | undefined): Refusal | undefined {
  const { method, rawHeaders, target } = request;
  if (isOfBrowser(rawHeaders.filter((_text, i) => i % 2 === 0))) return BROWSER_REQUEST;
  if (token !== undefined && !hasToken(rawHeaders, token)) {
    return {
      code: 'token_invalid',
      message: 'Authorization: Bearer with the token of --api-token-file is missing',
    };
  }
  if (method === 'POST' && target === '/v1/proofs') return undefined;
  return { code: 'route_unknown', message: 'the signing API has POST /v1/proofs alone' };
}

function hasToken(rawHeaders: readonly string[], token: string): boolean {
  const values = rawHeaders.filter(
    (_text, i) => rawHeaders[i - 1]?.toLowerCase() === 'authorization' && i % 2 === 1,
  );
  const [value = '', ...more] = values;
  const digests = [value, `Bearer ${token}`].map((text) => hash('sha256', text, 'buffer'));
  return more.length === 0 && timingSafeEqual(digests[0] as Buffer, digests[1] as Buffer);
}

type ReceivedText =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'served'; readonly served: Served };

async function textOf({ request: { body }, response }: ClientExchange): Promise<ReceivedText> {
  if (body.kind === 'none') return { kind: 'text', text: '' };
  const received = await receiveBody({
    body,
    // Bodies are kept only in memory.
    spool: { directory: '', held: NO_DISK.open(UNVERIFIED) },
    maxBodyBytes: MAX_BODY_BYTES,
    timeoutMs: BODY_TIMEOUT_MS,
  });
  if (received.kind === 'gone') return { kind: 'served', served: breakOff(response) };
  if (received.kind === 'fault') {
    return { kind: 'served', served: respond(response, problemOfProxyFault(received.code)) };
  }
  const state = received.spool.state();
  if (state.kind !== 'exact') throw new Error('a body of the signing API was not in memory');
  return { kind: 'text', text: Buffer.from(state.bytes).toString('utf8') };
}

function answerOf({ expiresAtSeconds, headers }: SignedRequest) {
  const lines = headers.reveal().map(({ name, value }) => [name, value] as const);
  const answer = { headers: Object.fromEntries(lines), expires_at: formatTime(expiresAtSeconds) };
  return {
    status: 200,
    headers: [
      ['content-type', 'application/json'],
      ['cache-control', 'no-store'],
    ] as const,
    body: JSON.stringify(answer),
  };
}
