/**
 * Fixture with a good issuer on an allowed address, traps on all other addresses of this machine, and a record of connections.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { SHARE_ENV, Worker } from 'node:worker_threads';
import { parseIssuerNetwork } from '../../../src/process/outbound-fetch/address-policy.ts';
import {
  IssuerFetcher,
  type IssuerFetcherOptions,
  readIssuerCa,
} from '../../../src/process/outbound-fetch/outbound-fetch.ts';
import {
  type ServiceAccountIssuer,
  type ServiceAccountIssuerOptions,
  startServiceAccountIssuer,
} from '../fakes/service-account-issuer.ts';
import { makeCertificates, type TestCertificates } from '../harness/certificates.ts';

/** A loopback address too, so that the rest of loopback stays forbidden while this one is allowed. */
export const GOOD_ADDRESS = '127.10.0.1';
export const GOOD_HOST = 'issuer.example';
export const AUDIENCE = 'proofgate-shop';

export class IssuerEnvironment {
  readonly #certificates: TestCertificates;
  readonly #issuers: ServiceAccountIssuer[] = [];

  private constructor(certificates: TestCertificates) {
    this.#certificates = certificates;
  }

  static async start(): Promise<IssuerEnvironment> {
    return new IssuerEnvironment(
      await makeCertificates(GOOD_HOST, 'urn:unknown', [GOOD_ADDRESS, '127.0.0.1']),
    );
  }

  get caPem(): string {
    return this.#certificates.ca.cert;
  }

  async issuer(options: Partial<ServiceAccountIssuerOptions> = {}): Promise<ServiceAccountIssuer> {
    const issuer = await startServiceAccountIssuer({
      certificate: this.#certificates.server,
      listenAddress: GOOD_ADDRESS,
      // A new RSA key takes longer than most tests.
      algorithm: 'ES256',
      ...options,
    });
    this.#issuers.push(issuer);
    return issuer;
  }

  /** Trusts the test CA and may connect to the good address, but to no other non-public one. */
  fetcher(options: IssuerFetcherOptions = {}): IssuerFetcher {
    const privateCa = readIssuerCa(this.caPem);
    if (privateCa === undefined) throw new Error('the CA of the test is none');
    return new IssuerFetcher({ privateCa, openedNetworks: networks(`${GOOD_ADDRESS}/32`), ...options });
  }

  async close(): Promise<void> {
    await Promise.all(this.#issuers.map((issuer) => issuer.close()));
    await this.#certificates.remove();
  }
}

export function networks(...cidrs: readonly string[]) {
  return cidrs.map((cidr) => {
    const network = parseIssuerNetwork(cidr);
    if (network === undefined) throw new Error(`no network: ${cidr}`);
    return network;
  });
}

/**
 * Records every address that the watched work tries to connect to, as Node reports it. It ignores other work: a closed gRPC
 * client of an earlier test file in the same process still retries once.
 */
export class ConnectionRecord {
  readonly attempts: string[] = [];
  readonly #watched = new AsyncLocalStorage<true>();
  readonly #onSocket = (message: unknown) => {
    if (this.#watched.getStore() === undefined) return;
    const { socket } = message as { socket: Socket };
    socket.on('connectionAttempt', (address: string) => this.attempts.push(address));
  };

  constructor() {
    subscribe('net.client.socket', this.#onSocket);
  }

  /** Runs the work, and records its connections and those of everything it starts. */
  watch<Result>(work: () => Result): Result {
    return this.#watched.run(true, work);
  }

  close(): void {
    unsubscribe('net.client.socket', this.#onSocket);
  }
}

/** Accepts and counts connections on every address of this machine, and never answers. */
export class Trap {
  accepted = 0;
  receivedBytes = 0;
  readonly #server: Server;

  private constructor(server: Server) {
    this.#server = server;
    server.on('connection', (socket) => {
      this.accepted += 1;
      socket.on('data', (chunk) => {
        this.receivedBytes += chunk.length;
      });
      socket.on('error', () => {});
      socket.on('end', () => socket.destroy());
    });
  }

  /** @param port 0 selects a free port. @param address default: all, including IPv6 */
  static async listen(port = 0, address = '::'): Promise<Trap> {
    const server = createServer();
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen(port, address, resolve);
    });
    return new Trap(server);
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  close(): Promise<void> {
    return new Promise((resolve) => this.#server.close(() => resolve()));
  }
}

/**
 * Sets variables of the real process environment while `work` runs. Jest gives tests a copy; Node reads the original, which a
 * worker thread can change.
 */
export async function withEnvironment(
  variables: { readonly [name: string]: string },
  work: () => Promise<void>,
): Promise<void> {
  const before = Object.keys(variables).map((name) => [name, process.env[name]] as const);
  await setEnvironment(Object.entries(variables));
  try {
    await work();
  } finally {
    await setEnvironment(before);
  }
}

async function setEnvironment(
  variables: readonly (readonly [name: string, value: string | undefined])[],
): Promise<void> {
  const code = `for (const [name, value] of require('node:worker_threads').workerData) {
    if (value === undefined) delete process.env[name]; else process.env[name] = value;
  }`;
  const worker = new Worker(code, { eval: true, env: SHARE_ENV, workerData: variables });
  await new Promise((resolve, reject) => worker.once('exit', resolve).once('error', reject));
  for (const [name, value] of variables) {
    if (value === undefined) delete process.env[name];
    else process.env[name] = value;
  }
}
