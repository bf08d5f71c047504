/** An error that the application threw where only we can catch it: it ends one connection, and not the process. */
import type { Duplex } from 'node:stream';

/** Prints the error, as Express, Fastify and Hono do with those of their handlers. */
export function endFailed(error: unknown, connection: Duplex): void {
  console.error(error);
  connection.destroy();
}
