/** Loopback ports for programs that have to be told theirs. */
import { once } from 'node:events';
import { createServer } from 'node:net';

/**
 * Below those that a system gives to connections that go out (from 32,768 on Linux, `ip_local_port_range`): such a one may be
 * taken by any connection of any test before the program listens.
 */
const [LOWEST, HIGHEST] = [20_000, 32_767];
const MOST_TRIES = 100;

/** A port that was free a moment ago. */
export async function freePort(): Promise<number> {
  for (let tries = 0; tries < MOST_TRIES; tries += 1) {
    const port = LOWEST + Math.floor(Math.random() * (HIGHEST - LOWEST + 1));
    if (await isFree(port)) return port;
  }
  throw new Error(`no free port between ${LOWEST} and ${HIGHEST}`);
}

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
