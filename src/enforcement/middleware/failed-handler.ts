/** Handles an error of the application that only this code can catch: it ends one connection instead of the process. */
import type { Duplex } from 'node:stream';

/** Prints the error, as Express, Fastify and Hono print errors of their handlers. */
export function endFailed(error: unknown, connection: Duplex): void {
  console.error(error);
  connection.destroy();
}
