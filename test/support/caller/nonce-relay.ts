/** A server between DPoP callers and a verifier, also as an HTTP proxy: it records each request, and can answer in place of the verifier. */
import {
  createServer,
  request as httpRequest,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type ServerResponse,
} from 'node:http';
import type { AddressInfo } from 'node:net';
import { parseDpopProof } from '../../../src/protocol/dpop-proof.ts';
import type { WireAddress } from '../../../src/tools/conformance/wire/exchange.ts';

export interface Relayed {
  readonly headers: IncomingHttpHeaders;
  readonly status: number;
  readonly target: string;
  readonly body: string;
  /** Undefined without a proof. */
  readonly jti: string | undefined;
  readonly nonce: string | undefined;
  /** That of the answer. */
  readonly given: string | undefined;
}

export class NonceRelay {
  readonly relayed: Relayed[] = [];
  /** Nonces for the next answers with status 200. */
  readonly nextNonces: (string | undefined)[] = [];
  /** Whether every answer asks for another nonce. */
  alwaysAsks = false;
  readonly #server = createServer((request, response) => void this.#relay(request, response));
  readonly #to: WireAddress;

  private constructor(to: WireAddress) {
    this.#to = to;
  }

  static async start(to: WireAddress): Promise<NonceRelay> {
    const relay = new NonceRelay(to);
    await new Promise<void>((resolve) => relay.#server.listen(0, '127.0.0.1', resolve));
    return relay;
  }

  get address(): { readonly host: string; readonly port: number } {
    return { host: '127.0.0.1', port: (this.#server.address() as AddressInfo).port };
  }

  /** Status and target of each request since the last call. Fails for a proof that was sent twice. */
  take(): readonly Relayed[] {
    const jtis = this.relayed.map(({ jti }) => jti);
    if (new Set(jtis).size !== jtis.length) throw new Error(`a proof was sent twice: ${jtis}`);
    return this.relayed.splice(0);
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  async #relay(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const body = Buffer.concat(chunks);
    const target = (request.url ?? '').replace(/^http:\/\/[^/]*/, '');
    const answer = this.alwaysAsks ? this.#refusal() : await this.#forward(request, target, body);
    const proof = parseDpopProof(String(request.headers.dpop ?? ''));
    const given = answer.headers['dpop-nonce'];
    const { status } = answer;
    const sent = { headers: request.headers, target, body: body.toString() };
    this.relayed.push({ ...sent, status, jti: proof?.jti, nonce: proof?.nonce, given });
    response.writeHead(status, answer.headers).end(answer.body);
  }

  #refusal() {
    const headers = {
      'www-authenticate': 'DPoP error="use_dpop_nonce"',
      'dpop-nonce': `n-${this.relayed.length}`,
      'x-proofgate-reason': 'invalid_request_proof',
    };
    return { status: 401, headers: headers as Record<string, string>, body: Buffer.alloc(0) };
  }

  #forward({ headers, method }: IncomingMessage, path: string, body: Buffer) {
    const { host, port } = this.#to;
    const { 'proxy-connection': _, ...sent } = headers;
    return new Promise<{ status: number; headers: Record<string, string>; body: Buffer }>(
      (resolve, reject) => {
        const options = { host, port, method: method ?? '', path, headers: sent, agent: false };
        const forwarded = httpRequest(options, (answer) => {
          const chunks: Buffer[] = [];
          answer.on('data', (chunk: Buffer) => chunks.push(chunk));
          answer.on('error', reject);
          answer.on('end', () => {
            const status = answer.statusCode ?? 0;
            const lines = { ...answer.headers } as Record<string, string>;
            delete lines['transfer-encoding'];
            const nonce = status === 200 ? this.nextNonces.shift() : undefined;
            if (nonce !== undefined) lines['dpop-nonce'] = nonce;
            resolve({ status, headers: lines, body: Buffer.concat(chunks) });
          });
        });
        forwarded.on('error', reject);
        forwarded.end(body);
      },
    );
  }
}
