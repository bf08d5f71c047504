/** Wrong answers of an issuer's server. */
import type { ServerResponse } from 'node:http';

export type IssuerFault =
  | { readonly kind: 'status'; readonly status: number }
  /** Says nothing for that long, then answers well. */
  | { readonly kind: 'delay'; readonly delayMs: number }
  /** Head at once, then one byte at a time. */
  | { readonly kind: 'drip'; readonly intervalMs: number }
  /** Head at once, then nothing. */
  | { readonly kind: 'stall' }
  /** JSON of at least that many bytes; without a Content-Length when `chunked`. */
  | { readonly kind: 'huge'; readonly bytes: number; readonly chunked?: boolean }
  | { readonly kind: 'huge_header'; readonly bytes: number }
  | { readonly kind: 'redirect'; readonly status: number; readonly location: string }
  | { readonly kind: 'content_type'; readonly contentType: string | undefined }
  | { readonly kind: 'header'; readonly name: string; readonly value: string }
  | { readonly kind: 'body'; readonly body: string | Uint8Array }
  /** Raw bytes in place of an HTTP answer, then the end. */
  | { readonly kind: 'raw'; readonly bytes: string }
  /** Ends the connection in the middle of the body. */
  | { readonly kind: 'cut' };

export interface GoodAnswer {
  readonly type: string;
  readonly body: string;
}

export function answerWithFault(
  response: ServerResponse,
  good: GoodAnswer,
  fault: IssuerFault | undefined,
): void {
  const head = { 'content-type': good.type, 'cache-control': 'public, max-age=3600' };
  switch (fault?.kind) {
    case undefined:
      response.writeHead(200, head).end(good.body);
      return;
    case 'status':
      response.writeHead(fault.status, head).end(good.body);
      return;
    case 'delay':
      later(response, fault.delayMs, () => response.writeHead(200, head).end(good.body));
      return;
    case 'drip':
      response.writeHead(200, head);
      drip(response, good.body, fault.intervalMs);
      return;
    case 'stall':
      response.writeHead(200, head).flushHeaders();
      return;
    case 'huge':
      sendHuge(response, head, fault.bytes, fault.chunked === true);
      return;
    case 'huge_header':
      response.writeHead(200, { ...head, 'x-filler': 'a'.repeat(fault.bytes) }).end(good.body);
      return;
    case 'redirect':
      response.writeHead(fault.status, { ...head, location: fault.location }).end(good.body);
      return;
    case 'content_type':
      response.writeHead(200, fault.contentType === undefined ? {} : { 'content-type': fault.contentType });
      response.end(good.body);
      return;
    case 'header':
      response.writeHead(200, { ...head, [fault.name]: fault.value }).end(good.body);
      return;
    case 'body':
      response.writeHead(200, head).end(fault.body);
      return;
    case 'raw':
      response.socket?.end(fault.bytes);
      return;
    case 'cut':
      response.writeHead(200, { ...head, 'content-length': good.body.length });
      response.write(good.body.slice(0, 10), () => response.socket?.destroy());
      return;
  }
}

function later(response: ServerResponse, delayMs: number, answer: () => void): void {
  const timer = setTimeout(answer, delayMs);
  response.once('close', () => clearTimeout(timer));
}

function drip(response: ServerResponse, body: string, intervalMs: number): void {
  let sent = 0;
  const timer = setInterval(() => {
    if (sent === body.length) response.end();
    else response.write(body.charAt(sent++));
  }, intervalMs);
  response.once('close', () => clearInterval(timer));
}

/** A good key set with a long member in it, so that nothing but its size is wrong. */
function sendHuge(
  response: ServerResponse,
  head: { readonly [name: string]: string },
  bytes: number,
  chunked: boolean,
): void {
  const body = `{"keys":[],"filler":"${'a'.repeat(bytes)}"}`;
  response.writeHead(200, chunked ? head : { ...head, 'content-length': String(body.length) });
  response.end(body);
}
