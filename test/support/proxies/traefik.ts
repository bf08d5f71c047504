/** Traefik as scripts/install-traefik.sh builds it, with deploy/traefik/. */
import { connect, createServer, type Server } from 'node:net';
import { startTraefik, type TraefikEdit, traefikUnavailable } from '../harness/traefik.ts';
import { clientsAt, type ForwardProxy, type ProxyKind, type ProxyParts } from './proxy.ts';

/** With changes of the shipped configuration. */
export const traefikWith = (...edits: readonly TraefikEdit[]): ProxyKind => ({
  name: 'Traefik',
  profile: 'traefik',
  bodyMode: 'forwarded',
  unavailable: traefikUnavailable,
  start: (parts) => start(parts, edits),
});

export const traefik = traefikWith();

async function start(
  { socketPath, upstream }: ProxyParts,
  edits: readonly TraefikEdit[],
): Promise<ForwardProxy> {
  const relay = relayTo(socketPath);
  const relayPort = await listen(relay);
  try {
    const verifierUrl = `http://127.0.0.1:${relayPort}/check/all-proofs`;
    const running = await startTraefik({ verifierUrl, upstream, edits });
    return {
      ...clientsAt(running.port),
      logs: async () => running.lines().join('\n'),
      stop: async () => {
        await running.stop();
        relay.close();
      },
    };
  } catch (error) {
    relay.close();
    throw error;
  }
}

/** ForwardAuth asks over TCP alone, and the verifier of these tests listens on a socket file. */
function relayTo(socketPath: string): Server {
  return createServer((client) => {
    const verifier = connect(socketPath);
    for (const [from, to] of [
      [client, verifier],
      [verifier, client],
    ] as const) {
      from.pipe(to);
      from.on('error', () => to.destroy());
      from.on('close', () => to.destroy());
    }
  });
}

function listen(server: Server): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      resolve(typeof address === 'object' && address !== null ? address.port : 0);
    });
  });
}
