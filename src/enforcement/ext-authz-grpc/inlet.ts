/** The way of accepted connections into gRPC. */
import { type ConnectionInjector, type Server, ServerCredentials } from '@grpc/grpc-js';
import { prepareConnections } from '../../runtime-internals/http2-connections.ts';

/** Nothing ends a connection for its age or idleness: Envoy could be asking just then, and does not ask twice. */
const FORMER_CLIENTS_LEAVE_MS = 10_000;

/** Hands connections to gRPC, those of one clients' CA together. */
export class Inlet {
  readonly #server: Server;
  readonly #injectors: ConnectionInjector[] = [];
  #current: ConnectionInjector;
  #clientCa: string | undefined;

  constructor(server: Server, clientCa: string | undefined) {
    this.#server = server;
    this.#clientCa = clientCa;
    this.#current = this.#add();
  }

  take(connection: Parameters<ConnectionInjector['injectConnection']>[0]): void {
    this.#current.injectConnection(connection);
  }

  trust(clientCa: string | undefined): void {
    if (clientCa === this.#clientCa) return;
    this.#clientCa = clientCa;
    const former = this.#current;
    this.#current = this.#add();
    former.drain(FORMER_CLIENTS_LEAVE_MS);
  }

  /** Ends every connection now. */
  cut(): void {
    for (const injector of this.#injectors) injector.drain(0);
  }

  #add(): ConnectionInjector {
    // TLS, where there is any, has been spoken before.
    const injector = this.#server.createConnectionInjector(ServerCredentials.createInsecure());
    this.#injectors.push(injector);
    prepareConnections(this.#server);
    return injector;
  }
}
