/** Free loopback ports for programs that need a fixed port in their configuration. */
import { once } from 'node:events';
import { createServer } from 'node:net';

/**
 * Below those that a system gives to connections that go out (from 32,768 on Linux, `ip_local_port_range`): such a one may be
 * taken by any connection of any test before the program listens.
 */
const [LOWEST, HIGHEST] = [20_000, 32_767];
/** The usual maximum of simultaneous test processes; further ones share. */
const SHARES = 4;
const SHARE_PORTS = Math.floor((HIGHEST - LOWEST + 1) / SHARES);

/**
 * Ports that were free a moment ago, each one once. A program takes a second until it listens, and one that is killed and started again is
 * away for longer: another test process that looked then would find its port free, so that each process has a share of its own.
 */
export function portsOf(worker: number): () => Promise<number> {
  const first = LOWEST + (worker % SHARES) * SHARE_PORTS;
  // Not the same ones in each test file: the last one's connections may still close.
  let next = Math.floor(Math.random() * SHARE_PORTS);
  return async () => {
    for (let tries = 0; tries < SHARE_PORTS; tries += 1) {
      const port = first + (next % SHARE_PORTS);
      next += 1;
      if (await isFree(port)) return port;
    }
    throw new Error(`no free port between ${first} and ${first + SHARE_PORTS - 1}`);
  };
}

export const freePort = portsOf(Number(process.env.JEST_WORKER_ID ?? 0));

async function isFree(port: number): Promise<boolean> {
  const server = createServer();
  try {
    server.listen(port, '127.0.0.1');
    await once(server, 'listening');
  } catch {
    return false;
  }
  server.close();
  await once(server, 'close');
  return true;
}
