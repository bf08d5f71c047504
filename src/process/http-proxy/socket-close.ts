/**
 * Supports many listeners for the end of one connection, because Node.js emits no `close` on responses that wait for an
 * earlier one.
 */
import type { Socket } from 'node:net';

const LISTENERS = new WeakMap<Socket, Set<() => void>>();

/** @returns a function that removes the listener */
export function onSocketClose(socket: Socket, listener: () => void): () => void {
  let listeners = LISTENERS.get(socket);
  if (listeners === undefined) {
    const created = new Set<() => void>();
    socket.once('close', () => {
      for (const one of created) one();
    });
    LISTENERS.set(socket, created);
    listeners = created;
  }
  const ofSocket = listeners.add(listener);
  return () => ofSocket.delete(listener);
}
