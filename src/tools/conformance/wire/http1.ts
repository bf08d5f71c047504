/**
 * An HTTP/1.1 client that writes exactly the given bytes: repeated headers, odd spellings, wrong lengths, absolute targets.
 * Libraries correct or reject those, but a gateway must be tested with them.
 */
import { connect as connectTcp, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import {
  bodyBytes,
  defaultExchangeTimeoutMs,
  NoResponse,
  type WireAddress,
  type WireClient,
  type WireRequest,
  type WireResponse,
} from './exchange.ts';
import { readResponse } from './http1-response.ts';

export function http1Client(address: WireAddress, timeoutMs = defaultExchangeTimeoutMs): WireClient {
  return {
    protocol: 'HTTP/1.1',
    send: (request) => sendBytes(address, encodeHttp1(request), request.method, timeoutMs),
  };
}

/** The request as bytes. Values are written as Latin-1, one byte a character, so any byte can be sent. */
export function encodeHttp1(request: WireRequest): Buffer {
  const body = bodyBytes(request);
  const open = request.trailers !== undefined || request.framing === 'open';
  const lines = [`${request.method} ${request.target} HTTP/1.1`];
  if (request.authority !== '') lines.push(`Host: ${request.authority}`);
  for (const [name, value] of request.headers ?? []) lines.push(`${name}: ${value}`);
  if (open) lines.push('Transfer-Encoding: chunked');
  else if (body !== undefined || request.framing === 'length') {
    lines.push(`Content-Length: ${body?.length ?? 0}`);
  }
  const head = Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1');
  return Buffer.concat([head, open ? encodeChunks(body, request) : (body ?? Buffer.alloc(0))]);
}

function encodeChunks(body: Buffer | undefined, request: WireRequest): Buffer {
  const data =
    body === undefined || body.length === 0
      ? []
      : [Buffer.from(`${body.length.toString(16)}\r\n`), body, Buffer.from('\r\n')];
  const trailers = (request.trailers ?? []).map(([name, value]) => `${name}: ${value}\r\n`).join('');
  return Buffer.concat([...data, Buffer.from(`0\r\n${trailers}\r\n`, 'latin1')]);
}

/** More than any response that a case needs. */
const MAX_RESPONSE_BYTES = 16 * 1024 * 1024;

/**
 * Sends any bytes on a new connection and reads the first response.
 *
 * @param method the method of the bytes: a response to HEAD has no body
 * @param isLast whether the connection is half closed after the bytes, because a server may wait for more
 */
export function sendBytes(
  address: WireAddress,
  bytes: Uint8Array,
  method: string,
  timeoutMs = defaultExchangeTimeoutMs,
  isLast = false,
): Promise<WireResponse> {
  return new Promise((resolve, reject) => {
    const socket = openSocket(address);
    let received = Buffer.alloc(0);
    const finish = (settle: () => void) => {
      clearTimeout(timer);
      socket.destroy();
      settle();
    };
    const timer = setTimeout(
      () => finish(() => reject(new NoResponse('timeout', `nothing complete within ${timeoutMs} ms`))),
      timeoutMs,
    );
    const read = (ended: boolean) => {
      try {
        const found = readResponse(received, method, ended);
        if (found !== undefined) finish(() => resolve(found.response));
        else if (ended) finish(() => reject(new NoResponse('closed', `${received.length} bytes came`)));
      } catch (error) {
        finish(() => reject(error));
      }
    };
    socket.on('data', (chunk: Buffer) => {
      received = Buffer.concat([received, chunk]);
      if (received.length > MAX_RESPONSE_BYTES) {
        finish(() => reject(new NoResponse('closed', 'the response is too large')));
        return;
      }
      read(false);
    });
    socket.on('end', () => read(true));
    socket.on('error', (error) => finish(() => reject(new NoResponse('reset', error.message))));
    socket.write(bytes);
    if (isLast) socket.end();
  });
}

/** Sends any bytes on a new connection, and returns the status codes of all responses until the other side ends it. */
export async function statusesUntilClosed(
  address: WireAddress,
  bytes: Uint8Array,
): Promise<readonly number[]> {
  const socket = openSocket(address).setTimeout(defaultExchangeTimeoutMs);
  socket.on('timeout', () => socket.destroy(new NoResponse('timeout', 'nothing more, and not closed')));
  socket.write(bytes);
  const chunks: Buffer[] = await socket.toArray();
  const text = Buffer.concat(chunks).toString('latin1');
  return [...text.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => Number(status));
}

/** Opens a TCP or TLS connection. It can be written to at once; the bytes wait for the connection. */
export function openSocket(address: WireAddress, alpnProtocol = 'http/1.1'): Socket {
  const { host, port, tls } = address;
  const socket =
    tls === undefined
      ? connectTcp({ host, port })
      : connectTls({ ...tls, host, port, ALPNProtocols: [alpnProtocol] });
  return socket.setNoDelay(true);
}
