/** Hands accepted connections to grpc-js. */
import { type ConnectionInjector, type Server, ServerCredentials } from '@grpc/grpc-js';
import { prepareConnections } from '../../runtime-internals/http2-connections.ts';

/**
 * How long connections under a replaced client CA may stay open. Connections have no maximum age or idle time, because
 * Envoy does not retry a Check that a closing connection loses.
 */
const REPLACED_CA_DRAIN_MS = 10_000;

/** One grpc-js injector for each client CA, so that the connections under a replaced CA can be drained. */
export class ConnectionAcceptor {
  readonly #server: Server;
  readonly #injectors: ConnectionInjector[] = [];
  #current: ConnectionInjector;
  #clientCa: string | undefined;

  constructor(server: Server, clientCa: string | undefined) {
    this.#server = server;
    this.#clientCa = clientCa;
    this.#current = this.#add();
  }

  accept(connection: Parameters<ConnectionInjector['injectConnection']>[0]): void {
    this.#current.injectConnection(connection);
  }

  trustClientCa(clientCa: string | undefined): void {
    if (clientCa === this.#clientCa) return;
    this.#clientCa = clientCa;
    const former = this.#current;
    this.#current = this.#add();
    former.drain(REPLACED_CA_DRAIN_MS);
  }

  /** Closes every connection now. */
  closeAll(): void {
    for (const injector of this.#injectors) injector.drain(0);
  }

  #add(): ConnectionInjector {
    // The listener has already done the TLS handshake.
    const injector = this.#server.createConnectionInjector(ServerCredentials.createInsecure());
    this.#injectors.push(injector);
    prepareConnections(this.#server);
    return injector;
  }
}
