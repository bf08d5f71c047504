/** An HTTP/2 client that sends any header lines: pseudo headers, repetitions, upper case, trailers. */
import { type ClientHttp2Session, type ClientHttp2Stream, connect, constants } from 'node:http2';
import {
  bodyBytes,
  defaultExchangeTimeoutMs,
  type HeaderLine,
  NoResponse,
  type WireAddress,
  type WireClient,
  type WireRequest,
  type WireResponse,
} from './exchange.ts';
import { openSocket } from './http1.ts';
import { HeaderReplacingStream } from './http2-frames.ts';

export function http2Client(address: WireAddress, timeoutMs = defaultExchangeTimeoutMs): WireClient {
  return {
    protocol: 'HTTP/2',
    send: (request) => sendLines(address, request, requestLines(request), timeoutMs),
  };
}

/** The header block of a well-formed request. */
export function requestLines(request: WireRequest): readonly HeaderLine[] {
  const announced: readonly HeaderLine[] =
    request.framing === 'length' ? [['content-length', String(bodyBytes(request)?.length ?? 0)]] : [];
  const authority: readonly HeaderLine[] =
    request.authority === '' ? [] : [[':authority', request.authority]];
  return [
    [':method', request.method],
    [':scheme', request.scheme ?? 'http'],
    ...authority,
    [':path', request.target],
    ...(request.headers ?? []),
    ...announced,
  ];
}

/** As {@link WireClient.send}, with any `lines` as the request's header block. */
export function sendLines(
  address: WireAddress,
  request: WireRequest,
  lines: readonly HeaderLine[],
  timeoutMs = defaultExchangeTimeoutMs,
): Promise<WireResponse> {
  const { trailers } = request;
  const blocks = trailers === undefined ? [lines] : [lines, trailers];
  const session = connect('http://stand-in.invalid', {
    createConnection: () => new HeaderReplacingStream(openSocket(address, 'h2'), blocks),
  });
  return new Promise<WireResponse>((resolve, reject) => {
    const timer = setTimeout(
      () => reject(new NoResponse('timeout', `nothing complete within ${timeoutMs} ms`)),
      timeoutMs,
    );
    exchange(session, request)
      .then(resolve, reject)
      .finally(() => clearTimeout(timer));
  }).finally(() => session.destroy());
}

function exchange(session: ClientHttp2Session, request: WireRequest): Promise<WireResponse> {
  const body = bodyBytes(request);
  const { trailers, framing } = request;
  const endStream = body === undefined && trailers === undefined && framing !== 'open';
  return new Promise((resolve, reject) => {
    session.on('error', (error) => reject(new NoResponse('reset', error.message)));
    session.on('close', () => reject(new NoResponse('closed', 'the connection was closed')));
    const stream = session.request(standIn(request), {
      endStream,
      waitForTrailers: trailers !== undefined,
    });
    // The replacement block is sent; Node only needs a placeholder.
    stream.on('wantTrailers', () => stream.sendTrailers({ 'stand-in': '1' }));
    collect(stream, request.method, resolve, reject);
    if (!endStream) stream.end(body);
  });
}

/**
 * The request that Node is given. It does not use the caller's method, from which Node would derive whether there is a
 * body. But Node accepts an answer to HEAD, or an interim one, only if it was given HEAD.
 */
function standIn(request: WireRequest): Record<string, string> {
  const expects = (request.headers ?? []).some(([name]) => name === 'expect');
  return {
    ':method': request.method === 'HEAD' ? 'HEAD' : 'POST',
    ...(expects ? { expect: '100-continue' } : {}),
  };
}

function collect(
  stream: ClientHttp2Stream,
  method: string,
  resolve: (response: WireResponse) => void,
  reject: (error: Error) => void,
): void {
  const chunks: Buffer[] = [];
  let status = 0;
  let headers: readonly HeaderLine[] = [];
  const finish = () => {
    if (status === 0)
      return reject(new NoResponse('reset', `${method}: stream reset, code ${stream.rstCode}`));
    resolve({ status, headers, body: Buffer.concat(chunks) });
  };
  stream.on('response', (received) => {
    status = Number(received[constants.HTTP2_HEADER_STATUS] ?? 0);
    headers = Object.entries(received).flatMap(([name, value]) => responseLines(name, value));
  });
  stream.on('data', (chunk: Buffer) => chunks.push(chunk));
  stream.on('end', finish);
  // A reset after a complete answer, such as to a request that was refused before its body was read, does not
  // invalidate that answer.
  stream.on('error', finish);
  stream.on('close', finish);
}

function responseLines(name: string, value: string | string[] | number | undefined): readonly HeaderLine[] {
  if (name.startsWith(':') || value === undefined) return [];
  return (Array.isArray(value) ? value : [String(value)]).map((one): HeaderLine => [name, one]);
}
