/** HTTP/1.1 servers for the SDK's tests: they keep what arrives, and fail as upstreams do. */

import type { AddressInfo } from 'node:net';
import { createServer, type Server, type Socket } from 'node:net';
import { parseDpopProof } from '../../../../src/protocol/dpop-proof.ts';

export type Behaviour =
  | { readonly kind: 'answer'; readonly status: number; readonly headers?: Readonly<Record<string, string>> }
  /** Answers with a body that never ends: a piece of that many bytes every 50 ms. */
  | {
      readonly kind: 'endless';
      readonly status: number;
      readonly headers: Readonly<Record<string, string>>;
      readonly pieceBytes: number;
    }
  /** Resets the connection with the first bytes of the request, or after all of it. */
  | { readonly kind: 'reset'; readonly after: 'head' | 'body' }
  /** Closes the connection in order, without an answer. */
  | { readonly kind: 'close' };

/** After which clients and proxies are tempted to send a request again. */
export const FAULTS: readonly (readonly [string, Behaviour])[] = [
  ['resets after the head', { kind: 'reset', after: 'head' }],
  ['resets after the body', { kind: 'reset', after: 'body' }],
  ['closes without an answer', { kind: 'close' }],
  ...[408, 421, 425, 429, 502, 503].map(
    (status) => [`answers ${status}`, { kind: 'answer', status, headers: { 'retry-after': '0' } }] as const,
  ),
];
export interface Arrived {
  readonly line: string;
  readonly body: string;
  /** Undefined without a proof. Of an HTTP message `jti` and `content-sha256`, as its fields have them; of DPoP `jti`. */
  readonly transcript: ReadonlyMap<string, string> | undefined;
}

export class Upstream {
  readonly arrived: Arrived[] = [];
  /** Of the requests in order; 200 after these. */
  behaviours: Behaviour[] = [];
  /** Overrides the above. */
  respond: ((arrived: Arrived) => Behaviour | undefined) | undefined;
  readonly #sockets = new Set<Socket>();
  readonly #server: Server = createServer((socket) => this.#serve(socket));

  static async start(): Promise<Upstream> {
    const upstream = new Upstream();
    await new Promise<void>((resolve) => upstream.#server.listen(0, '127.0.0.1', resolve));
    return upstream;
  }

  get origin(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Identifiers of all proofs that arrived, in order. */
  get jtis(): readonly (string | undefined)[] {
    return this.arrived.map(({ transcript }) => transcript?.get('jti'));
  }

  close(): void {
    for (const socket of this.#sockets) socket.destroy();
    this.#server.close();
  }

  #serve(socket: Socket): void {
    this.#sockets.add(socket);
    let received = '';
    socket.on('error', () => {});
    socket.on('data', (chunk) => {
      received += chunk.toString('latin1');
      const [head, body = ''] = received.split('\r\n\r\n');
      if (head === undefined || !received.includes('\r\n\r\n')) return;
      const next = this.behaviours[0];
      const length = Number(/content-length: *([0-9]+)/i.exec(head)?.[1] ?? 0);
      const isWhole = body.length >= length;
      if (!isWhole && !(next?.kind === 'reset' && next.after === 'head')) return;
      received = '';
      this.behaviours.shift();
      this.#answer(socket, { line: head.split('\r\n')[0] ?? '', body, transcript: transcriptOf(head) }, next);
    });
  }

  #answer(socket: Socket, arrived: Arrived, next: Behaviour | undefined): void {
    this.arrived.push(arrived);
    const behaviour = this.respond?.(arrived) ?? next ?? { kind: 'answer', status: 200 };
    if (behaviour.kind === 'reset') return void socket.resetAndDestroy();
    if (behaviour.kind === 'close') return void socket.end();
    if (behaviour.kind === 'endless') return void this.#answerEndlessly(socket, behaviour);
    const lines = Object.entries({ 'content-length': '2', ...behaviour.headers });
    const head = [`HTTP/1.1 ${behaviour.status} X`, ...lines.map(([name, value]) => `${name}: ${value}`)];
    socket.write(`${head.join('\r\n')}\r\n\r\nok`);
  }

  #answerEndlessly(socket: Socket, { headers, pieceBytes, status }: Behaviour & { kind: 'endless' }): void {
    const lines = Object.entries({ 'transfer-encoding': 'chunked', ...headers });
    const head = [`HTTP/1.1 ${status} X`, ...lines.map(([name, value]) => `${name}: ${value}`)];
    socket.write(`${head.join('\r\n')}\r\n\r\n`);
    const piece = `${pieceBytes.toString(16)}\r\n${'x'.repeat(pieceBytes)}\r\n`;
    const writing = setInterval(() => socket.write(piece), 50);
    socket.on('close', () => clearInterval(writing));
  }
}

function transcriptOf(head: string): ReadonlyMap<string, string> | undefined {
  const encoded = /^x-proofgate-transcript: *(.*)$/im.exec(head)?.[1];
  if (encoded === undefined) return httpMessageOf(head);
  const lines = Buffer.from(encoded, 'base64url').toString().trimEnd().split('\n').slice(1);
  return new Map(lines.map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]));
}

/** Each field of the proof must occur once. */
function httpMessageOf(head: string): ReadonlyMap<string, string> | undefined {
  const only = (name: string) => {
    const [line, ...more] = head.split('\r\n').filter((each) => each.toLowerCase().startsWith(`${name}: `));
    return more.length === 0 ? line?.slice(name.length + 2) : undefined;
  };
  const proof = parseDpopProof(only('dpop') ?? '');
  if (proof !== undefined) return new Map([['jti', proof.jti]]);
  const jti = /;nonce="([^"]+)"/.exec(only('signature-input') ?? '')?.[1];
  if (jti === undefined || only('signature') === undefined) return undefined;
  return new Map([
    ['jti', jti],
    ['content-sha256', only('content-digest') ?? '-'],
  ]);
}
