/** Open connections of the forward-authentication server and whether each may take another request. */
import type { Socket } from 'node:net';

interface Entry {
  openRequests: number;
  isRetired: boolean;
}

export class ConnectionRegister {
  readonly #entries = new Map<Socket, Entry>();

  add(socket: Socket): void {
    this.#entries.set(socket, { openRequests: 0, isRetired: false });
    socket.once('close', () => this.#entries.delete(socket));
  }

  /** @returns a function that ends the request */
  begin(socket: Socket): () => void {
    const entry = this.#entries.get(socket);
    if (entry === undefined) return () => undefined;
    entry.openRequests += 1;
    return () => {
      entry.openRequests -= 1;
      if (entry.isRetired && entry.openRequests === 0) socket.destroySoon();
    };
  }

  /** Whether the response to an open request must be the last one on its connection. */
  isRetired(socket: Socket): boolean {
    return this.#entries.get(socket)?.isRetired ?? true;
  }

  /**
   * Closes idle connections now, other connections after their request, and all of them after the time. New connections
   * are not affected.
   */
  retire(timeoutMs: number): void {
    const retired = [...this.#entries];
    for (const [socket, entry] of retired) {
      entry.isRetired = true;
      if (entry.openRequests === 0) socket.destroySoon();
    }
    setTimeout(() => {
      for (const [socket] of retired) socket.destroy();
    }, timeoutMs).unref();
  }
}
