/** An HTTPS server that serves what a test tells it, with any certificate. */
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { IssuedSvid } from './spiffe-authority.ts';

export class FakeBundleEndpoint {
  readonly #server: Server;
  /** Answered with status 200; undefined answers 500. */
  document: unknown;
  /** Answered with a redirect when set. */
  redirectTo: string | undefined;
  requests = 0;

  private constructor(svid: IssuedSvid) {
    this.#server = createServer(svid.pem, (_request, response) => {
      this.requests += 1;
      if (this.redirectTo !== undefined) response.writeHead(302, { location: this.redirectTo }).end();
      else if (this.document === undefined) response.writeHead(500).end();
      else response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(this.document));
    });
  }

  static async start(svid: IssuedSvid): Promise<FakeBundleEndpoint> {
    const endpoint = new FakeBundleEndpoint(svid);
    await new Promise<void>((resolve) => endpoint.#server.listen(0, '127.0.0.1', resolve));
    return endpoint;
  }

  /** @param host default: its address */
  url(host = '127.0.0.1'): string {
    return `https://${host}:${(this.#server.address() as AddressInfo).port}/bundle`;
  }

  /** For new connections. */
  present(svid: IssuedSvid): void {
    this.#server.setSecureContext(svid.pem);
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}
