/**
 * The signer as a base URL for applications: signs their requests and sends them to the configured origins.
 * Source: docs/operate/signer.md.
 */
import { openExchangeServer } from '../../../process/http-proxy/exchange-server.ts';
import { openOwnerOnly } from '../owner-only.ts';
import { EgressHandler, type EgressParts } from './egress-handler.ts';
import { hostsOf } from './egress-refusals.ts';

export interface EgressServerOptions extends EgressParts {
  /** Loopback `HOST:PORT` (port 0 chooses a free one) or `unix:PATH`. */
  readonly listen: string;
  /** Maximum number of connections of applications; further ones are closed at once. */
  readonly maxConnections: number;
}

export interface EgressServer {
  /** Address it listens on, with the actual port. */
  readonly address: string;
  /** Stops accepting, closes idle connections, and waits for requests in progress, at most for the given time. */
  drain(timeoutMs: number): Promise<void>;
}

/** @throws ListenError */
export async function openEgressServer(options: EgressServerOptions): Promise<EgressServer> {
  const { listen, maxConnections, metrics, routes } = options;
  let hosts: ReadonlySet<string> = new Set();
  const handler = new EgressHandler(options, () => hosts);
  const { address, drain } = await openOwnerOnly(options.listen, () =>
    openExchangeServer({
      ...{ listen, metrics, tls: undefined, maxConnections },
      handle: (exchange) => void handler.handle(exchange),
      untilIdle: () => handler.untilIdle(),
    }),
  );
  hosts = hostsOf(address);
  return {
    address,
    drain: async (timeoutMs) => {
      await drain(timeoutMs);
      await Promise.all([...new Set(routes.map(({ pool }) => pool))].map((pool) => pool.destroy()));
    },
  };
}
