/**
 * Opens the connections of one fetch, to allowed addresses only.
 *
 * It resolves the name once, checks every address, and connects only to those addresses. So a DNS rebinding attack gets
 * no second lookup between check and connection. It checks the peer address again before it sends a byte. Literal
 * addresses in the URL, in any spelling, take the same path. A proxy gets a checked address, not the name, which it would
 * resolve itself.
 *
 * Source: docs/operate/control.md "Outbound fetches".
 */
import { request } from 'node:http';
import { isIP, connect as openTcp, type Socket } from 'node:net';
import { type SecureContext, connect as startTls, type TLSSocket } from 'node:tls';
import type { buildConnector } from 'undici';
import { hostOfUrl } from '../../protocol/url-host.ts';
import { type IssuerNetwork, isSameAddress, judgeAddress } from './address-policy.ts';
import type { FetchFailure, FetchFailureCode } from './fetch-failures.ts';

/** Resolves a name to all its addresses. If there are none, it rejects or returns an empty list. */
export type ResolveName = (hostname: string) => Promise<readonly string[]>;

/** Settings that messages name. */
export interface FetchFlags {
  readonly network: string;
  readonly caFile: string;
  readonly proxy?: string;
}

export interface GuardOptions {
  readonly openedNetworks: readonly IssuerNetwork[];
  readonly resolveName: ResolveName;
  readonly secureContext: SecureContext;
  readonly flags: FetchFlags;
  /** An HTTP proxy for every connection. */
  readonly proxy?: URL | undefined;
  /**
   * Replaces the check of the server's certificate against the CAs and the host name, before a byte is sent. Returns why
   * the server is not the expected one, or undefined.
   */
  readonly serverProblem?: (socket: TLSSocket) => string | undefined;
}

/** Carries the reason past the HTTP client's own errors. */
class ConnectionRefusal extends Error {
  override readonly name = 'ConnectionRefusal';
  readonly failure: FetchFailure;

  constructor(code: FetchFailureCode, detail: string) {
    super(code);
    this.failure = { code, detail };
  }
}

export class GuardedConnection {
  readonly #options: GuardOptions;
  readonly #sockets: Socket[] = [];
  #closed = false;
  #failure: FetchFailure | undefined;

  constructor(options: GuardOptions) {
    this.#options = options;
  }

  /** Why the last attempt failed. */
  get failure(): FetchFailure | undefined {
    return this.#failure;
  }

  /** Replaces undici's own connector. */
  readonly connector: buildConnector.connector = (target, callback) => {
    const host = hostOfUrl(target);
    const port = target.port === '' ? 443 : Number(target.port);
    this.#open(host, port).then(
      (socket) => callback(null, socket),
      (error: unknown) => {
        const refusal = error instanceof ConnectionRefusal ? error : unforeseen();
        this.#failure = refusal.failure;
        callback(refusal, null);
      },
    );
  };

  /** Destroys all open and connecting sockets. */
  close(): void {
    this.#closed = true;
    for (const socket of this.#sockets) socket.destroy();
  }

  async #open(host: string, port: number): Promise<TLSSocket> {
    const addresses = await this.#judgedAddresses(host);
    if (this.#closed) throw unforeseen();
    const { proxy } = this.#options;
    if (proxy !== undefined) return this.#startTls(await this.#openTunnel(proxy, addresses, port), host);
    const tcp = await this.#openTcp(host, port, addresses);
    if (!isJudged(tcp.remoteAddress, addresses)) {
      tcp.destroy();
      throw new ConnectionRefusal('address_forbidden', 'the connection went elsewhere than was looked up');
    }
    return this.#startTls(tcp, host);
  }

  async #judgedAddresses(host: string): Promise<readonly string[]> {
    const addresses = isIP(host) === 0 ? await this.#resolve(host) : [host];
    for (const address of addresses) {
      const verdict = judgeAddress(address, this.#options.openedNetworks);
      if (verdict.kind === 'forbidden') {
        // The message hides the address: operators must not be able to read the internal name service.
        const detail = `the host has an address that is not public (${verdict.range}); ${this.#options.flags.network} opens a range`;
        throw new ConnectionRefusal('address_forbidden', detail);
      }
    }
    return addresses;
  }

  async #resolve(host: string): Promise<readonly string[]> {
    let addresses: readonly string[] = [];
    try {
      addresses = await this.#options.resolveName(host);
    } catch {
      // Treated like a name without addresses.
    }
    if (addresses.length === 0) throw new ConnectionRefusal('name_not_found', 'the host name has no address');
    return addresses;
  }

  #openTcp(host: string, port: number, addresses: readonly string[]): Promise<Socket> {
    const socket = openTcp({
      host,
      port,
      autoSelectFamily: true,
      // Called for names only; Node connects to a literal address, which is checked above, without a lookup.
      lookup: (_name, _options, callback) =>
        callback(
          null,
          addresses.map((address) => ({ address, family: isIP(address) })),
        ),
    });
    return this.#opened(socket, 'connect', 'connection_failed', 'no connection to the host');
  }

  /** Opens a tunnel (RFC 9110 section 9.3.6) to the first address that the proxy can reach. */
  async #openTunnel(proxy: URL, addresses: readonly string[], port: number): Promise<Socket> {
    let detail = '';
    for (const address of addresses) {
      if (this.#closed) throw unforeseen();
      const answer = await this.#connectThrough(
        proxy,
        isIP(address) === 6 ? `[${address}]:${port}` : `${address}:${port}`,
      );
      if (typeof answer !== 'string') return answer;
      detail = answer;
    }
    throw new ConnectionRefusal('connection_failed', `the proxy of ${this.#options.flags.proxy} ${detail}`);
  }

  /** @returns the socket, or the reason why the proxy did not open the tunnel */
  #connectThrough(proxy: URL, authority: string): Promise<Socket | string> {
    return new Promise((resolve) => {
      const { hostname, port } = proxy;
      const connecting = request({
        ...{ method: 'CONNECT', host: hostname.replace(/^\[|\]$/g, ''), port: port === '' ? 80 : port },
        ...{ path: authority, headers: { host: authority }, agent: false },
      });
      connecting.on('socket', (socket) => this.#track(socket));
      connecting.on('connect', ({ statusCode }, socket, head) => {
        socket.on('error', () => undefined);
        if (statusCode === 200 && head.length === 0) return resolve(socket);
        socket.destroy();
        resolve(`answered ${statusCode} in place of 200`);
      });
      connecting.on('response', (response) => {
        response.destroy();
        resolve(`answered ${response.statusCode} in place of 200`);
      });
      connecting.on('error', () => resolve('cannot be reached'));
      connecting.on('close', () => resolve('ended the connection'));
      connecting.end();
    });
  }

  async #startTls(tcp: Socket, host: string): Promise<TLSSocket> {
    const { flags, secureContext, serverProblem } = this.#options;
    const opening = startTls({
      socket: tcp,
      host,
      ...(isIP(host) === 0 ? { servername: host } : {}),
      secureContext,
      ALPNProtocols: ['http/1.1'],
      // Set explicitly, so that NODE_TLS_REJECT_UNAUTHORIZED has no effect.
      rejectUnauthorized: serverProblem === undefined,
    });
    const detail =
      serverProblem === undefined
        ? `no TLS connection; is the certificate valid for the host, and its CA known (${flags.caFile})?`
        : 'no TLS connection';
    const socket = await this.#opened(opening, 'secureConnect', 'tls_failed', detail);
    const problem = serverProblem?.(socket);
    if (problem === undefined) return socket;
    socket.destroy();
    throw new ConnectionRefusal('tls_failed', problem);
  }

  #opened<S extends Socket>(
    socket: S,
    event: 'connect' | 'secureConnect',
    code: FetchFailureCode,
    detail: string,
  ): Promise<S> {
    this.#track(socket);
    return new Promise((resolve, reject) => {
      socket.once(event, () => resolve(socket));
      // This listener stays, because an error of a socket that is destroyed late must not end the process.
      socket.on('error', () => reject(new ConnectionRefusal(code, detail)));
      socket.once('close', () => reject(new ConnectionRefusal(code, detail)));
    });
  }

  #track(socket: Socket): void {
    this.#sockets.push(socket);
    // `close` will not be emitted again.
    if (this.#closed) socket.destroy();
  }
}

function isJudged(remoteAddress: string | undefined, addresses: readonly string[]): boolean {
  return remoteAddress !== undefined && addresses.some((address) => isSameAddress(address, remoteAddress));
}

function unforeseen(): ConnectionRefusal {
  return new ConnectionRefusal('connection_failed', 'no connection to the host');
}
