/** The counting API over HTTP/2: in plain text with prior knowledge, or over TLS, where a caller may select HTTP/1.1. */
import {
  constants,
  createSecureServer,
  createServer,
  type Http2Server,
  type Http2Session,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from 'node:http2';
import { eventNameOf, idOf, type Occasion } from '../../e2e/one-delivery/upstream-events.ts';
import { type CountingUpstream, listeningUpstream } from './counting-upstream.ts';

type Act = (stream: ServerHttp2Stream, session: Http2Session) => void;

const answer =
  (status: number, headers: Readonly<Record<string, string>> = {}): Act =>
  (stream) => {
    stream.respond({ ':status': status, ...headers }, { endStream: true });
  };

const reset =
  (code: number): Act =>
  (stream) =>
    stream.close(code);

const REQUEST_EVENTS: { readonly [event: string]: Act } = {
  answered: answer(200),
  refused_stream: reset(constants.NGHTTP2_REFUSED_STREAM),
  internal_error: reset(constants.NGHTTP2_INTERNAL_ERROR),
  cancelled: reset(constants.NGHTTP2_CANCEL),
  calm_wanted: reset(constants.NGHTTP2_ENHANCE_YOUR_CALM),
  http1_wanted: reset(constants.NGHTTP2_HTTP_1_1_REQUIRED),
  reset_without_error: reset(constants.NGHTTP2_NO_ERROR),
  closed: (_, session) => session.destroy(),
  // The stream before this one is the last that it claims to have processed (RFC 9113 section 6.8).
  goaway_before: (stream, session) => {
    session.goaway(constants.NGHTTP2_NO_ERROR, Math.max(1, (stream.id ?? 1) - 2));
    setImmediate(() => session.destroy());
  },
  goaway_after: (_, session) => {
    session.goaway(constants.NGHTTP2_INTERNAL_ERROR);
    setImmediate(() => session.destroy());
  },
  reset_in_body: (stream) => {
    stream.respond({ ':status': 200 });
    stream.write('ok', () => stream.close(constants.NGHTTP2_INTERNAL_ERROR));
  },
  status_408: answer(408),
  status_421: answer(421),
  status_425: answer(425),
  status_503: answer(503, { 'retry-after': '0' }),
  silent: () => undefined,
};

const IDLE_EVENTS: { readonly [event: string]: Act } = {
  idle_goaway: (stream, session) => {
    answer(200)(stream, session);
    session.goaway();
  },
  idle_closed: (stream, session) => {
    stream.once('close', () => session.destroy());
    answer(200)(stream, session);
  },
};

export const HTTP2_OCCASIONS: readonly Occasion[] = [
  ...Object.keys(REQUEST_EVENTS).map((event) => ({ before: 'answered', event })),
  ...Object.keys(IDLE_EVENTS).map((before) => ({ before, event: 'answered' })),
];

/** @param tls undefined: plain text */
export async function startCountingHttp2Upstream(tls?: {
  readonly cert: string;
  readonly key: string;
}): Promise<CountingUpstream> {
  const deliveries = new Map<string, number>();
  const sessions = new Set<ServerHttp2Session>();
  const server: Http2Server = tls === undefined ? createServer() : createSecureServer(tls);
  server.on('session', (session) => {
    sessions.add(session);
    session.on('close', () => sessions.delete(session));
    session.on('error', () => undefined);
  });
  server.on('stream', (stream, headers) => {
    const target = headers[':path'] ?? '';
    const id = idOf(target);
    deliveries.set(id, (deliveries.get(id) ?? 0) + 1);
    stream.on('error', () => undefined);
    const { session } = stream;
    const act = REQUEST_EVENTS[eventNameOf(target)] ?? IDLE_EVENTS[eventNameOf(target)];
    if (session !== undefined) act?.(stream, session);
  });
  return listeningUpstream(server, deliveries, sessions);
}
